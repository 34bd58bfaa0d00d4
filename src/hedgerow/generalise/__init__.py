"""From the sample to the population: what differential privacy, and few words, say about people who are not in the table.

``transfer``: the theorems, both ways. ``statement``: what a session says of the population. ``holdout``: a test set that may be
asked again and again, with its ``metrics``, its ``widths``, its ``search`` (feature selection, early stopping, leaderboard) and
``scoring`` (scikit-learn's scorer and cross-validation object). ``analysts``: adaptive analysts to test with.
"""
