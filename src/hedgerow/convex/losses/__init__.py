"""Losses of convex questions.

- ``loss``: the interface of every loss of a linear predictor.
- ``families``: the losses that the package offers. A new one is a class in a file here, decorated by ``LOSSES.add``,
  and a line in hedgerow/losses.py. tests/test_adding.py shows one and holds it to every contract.
- ``custom``: a loss that the user defines.
"""
