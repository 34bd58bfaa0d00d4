"""The public hypothesis: a log-linear model with exact marginals.

``hypothesis`` is what mechanisms reweight and sessions answer from; ``junction_tree`` and ``triangulation`` make it exact on many
attributes; ``log_linear`` fits one to what was measured; ``memory_layout`` and ``kernels`` are its inner loops.
"""
