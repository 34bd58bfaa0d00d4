"""``python -m hedgerow.cli``: the command ``hedgerow``, where it is not on the path."""

from hedgerow.cli import app

app(prog_name="hedgerow")
