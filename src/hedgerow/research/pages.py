"""Pages that commands write: their prose is broken into lines of at most 120 columns."""

from __future__ import annotations

import re
import textwrap

WIDEST = 120
FIXED = ("|", "    ", "![", "#", "<", "```")  # rows of tables, code, pictures, headings, comments: a break changes them
ITEM = re.compile(r"(?:[-*]|\d+\.) ")  # the marker of an item of a list
STUCK = "\0"  # a space at which no line may break
JOINED = re.compile(r"(?<=\S) (?=(?:[-+*=#>]+|\d+\.) )")  # before a sign that would make a list or a heading of a line


def short_lines(page: str) -> str:
    """Return a Markdown page with its prose in lines of at most 120 columns.

    A paragraph or an item with a longer line is filled anew. Everything else keeps its lines.

    Parameters
    ----------
    page : str
        The page.

    Returns
    -------
    str
    """
    filled: list[str] = []
    prose: list[str] = []
    is_code = False
    for line in page.split("\n"):
        is_fence = line.lstrip().startswith("```")
        if is_code or not line or line.startswith(FIXED):
            filled += [*_fill(prose), line]
            prose = []
        elif ITEM.match(line):
            filled += _fill(prose)
            prose = [line]
        else:
            prose.append(line)
        is_code ^= is_fence
    return "\n".join([*filled, *_fill(prose)])


def _fill(prose: list[str]) -> list[str]:
    """Return the lines of a paragraph or an item, filled anew if one of them is too long."""
    if all(len(line) <= WIDEST for line in prose):
        return prose
    marker = ITEM.match(prose[0])
    text = JOINED.sub(STUCK, " ".join(line.strip() for line in prose))
    indent = " " * len(marker[0]) if marker else ""
    lines = textwrap.wrap(text, WIDEST, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace(STUCK, " ") for line in lines]
