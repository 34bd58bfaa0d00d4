"""Convex questions: which parameters have the least average loss.

``losses`` and ``sets`` are what one can name, ``features`` the linear predictors of a universe, ``bound_loss`` the loss of every
record of it, ``minimize`` the question, and ``solver`` finds minima with proven bounds, on public weights and on private counts.
"""
