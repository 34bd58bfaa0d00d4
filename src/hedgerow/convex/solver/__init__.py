"""Certified minimisers.

On public cells: ``public_minimum`` with its ``certificate``, by Newton or by ``first_order`` steps on ``weighted_cells``. On
private counts, where every number is bounded for every table that could exist: ``private_minimum``, ``excess`` (n·err as a whole
number) and ``gradient_sums``.
"""
