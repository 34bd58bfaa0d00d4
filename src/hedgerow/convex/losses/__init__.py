"""Losses.

``loss`` is what every loss of a linear predictor can do, ``families`` are those there are, ``custom`` one of the user's own. A
new one goes into ``families``, into its list of names, and through tests/convex/test_losses.py.
"""
