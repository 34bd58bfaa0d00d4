"""Convex questions: find the parameters θ with the least average loss.

- ``losses`` and ``sets``: the losses and the constraint sets that a question can name.
- ``features``: the linear predictors over a universe.
- ``bound_loss``: a loss bound to a universe, with the loss of every record.
- ``minimize``: the question itself.
- ``solver``: minimizers with proven bounds, on public weights and on private counts.
"""
