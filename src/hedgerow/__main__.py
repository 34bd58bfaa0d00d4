"""The command ``hedgerow`` as ``python -m hedgerow``, where it is not on the path."""

from hedgerow.cli.__main__ import main

if __name__ == "__main__":
    main()
