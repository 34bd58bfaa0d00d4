"""Losses of convex questions.

- ``loss``: the interface of every loss of a linear predictor.
- ``families``: the losses that the package offers. To add one, write it there, add it to ``__all__``, and run
  tests/convex/test_losses.py on it.
- ``custom``: a loss that the user defines.
"""
