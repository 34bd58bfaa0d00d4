"""Certified minimizers.

On public cells: ``public_minimum`` with its ``certificate``. It uses Newton's method, or the methods of
``first_order``, on the functions of ``weighted_cells``.

On private counts, where every number is bounded for every table that could exist: ``private_minimum``, ``excess``
(n·err as a whole number) and ``gradient_sums``.
"""
