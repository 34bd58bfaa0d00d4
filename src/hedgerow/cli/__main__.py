"""The command ``hedgerow``, which also runs as ``python -m hedgerow.cli`` if it is not on the path."""

import os

# set before NumPy loads: the package uses one thread, and starting others takes time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hedgerow.cli import app


def main() -> None:
    """Run the command line."""
    app(prog_name="hedgerow")


if __name__ == "__main__":
    main()
