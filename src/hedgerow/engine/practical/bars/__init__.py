"""Error bars that released measurements imply, about values and about groups of values."""
