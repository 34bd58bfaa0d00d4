"""Statements about the population that the rows come from, including people who are not in the table.

They follow from differential privacy, or from how little the answers reveal (description length). ``transfer`` has
the theorems, in both directions, and ``statement`` is a session's statement about the population. ``holdout`` is a
test set that may be asked again and again, with its ``metrics``, its interval ``widths``, its ``search`` tools
(feature selection, early stopping) and ``scoring`` (scikit-learn's scorer and cross-validation object).
"""
