"""One solver a file, each with ``plan`` and ``run``."""
