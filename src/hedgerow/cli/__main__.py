"""The command ``hedgerow``, also as ``python -m hedgerow.cli`` where it is not on the path."""

import os

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # before NumPy loads: the package uses one thread, and starting others takes time

from hedgerow.cli import app


def main() -> None:
    """Run the command line."""
    app(prog_name="hedgerow")


if __name__ == "__main__":
    main()
