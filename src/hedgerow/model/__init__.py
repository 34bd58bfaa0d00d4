"""The public hypothesis: a log-linear model with exact marginals.

``hypothesis`` is the distribution that mechanisms reweight and sessions answer from, and ``mixture`` combines
several. ``junction_tree`` and ``triangulation`` keep it exact on many attributes, and ``small_tables`` computes many
marginals at once. ``log_linear`` fits a model to measurements. ``memory_layout`` and ``kernels`` are the inner loops.
"""
