"""Small pieces of HTML for notebooks and reports. All input is treated as text and escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = (
    "body{font-family:system-ui,sans-serif;margin:2em auto;max-width:60em}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}"
)


def text(words: object) -> str:
    """Escape a text for HTML."""
    return escape(str(words), quote=True)


def paragraph(words: object) -> str:
    """Return a paragraph."""
    return f"<p>{text(words)}</p>"


def heading(words: object) -> str:
    """Return a heading."""
    return f"<h2>{text(words)}</h2>"


def table(head: Sequence[object], lines: Iterable[Sequence[object]], caption: object = "") -> str:
    """Return a table of plain texts."""
    above = f"<caption>{text(caption)}</caption>" if caption else ""
    names = "".join(f"<th>{text(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in lines)
    return f"<table>{above}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def page(title: object, *parts: str) -> str:
    """Return a complete, self-contained document."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{text(title)}</h1>{''.join(parts)}</body></html>"
    )
