"""Hooks of MkDocs, which turn the Markdown of this repository into the pages of the site.

The pages are written for readers of the repository too, in the Markdown that code hosts show. Here links to files outside
``docs/`` become links to pages that are made from them, or plain text; lists get the blank lines and the indentation that
Python-Markdown wants; notebooks become pages.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

LOG = logging.getLogger("mkdocs.hooks.site_pages")
ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = "examples/README.md"
OUTSIDE = {
    "README.md": "README.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md", EXAMPLES: "examples.md",
}  # fmt: skip
"""Files beside ``docs/`` and the pages that stand for them."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s:]+?)(#[^)\s]*)?\)")
LOADED = re.compile(
    r"<(?:script|link|img|iframe|source|video|object|use)\b[^>]*\b(?:src|href|data)=[\"']?((?:https?:)?//[^\"'\s>]+)"
)
STARS = re.compile(r"(?<=[\w.)])\*{1,2}(?=[-\w(])|(?<=[^A-Za-z*][θfQu])\*(?!\*)")  # in 2**-20 and θ*
ITEM = re.compile(r"( *)([-*]|\d+\.) ")


def on_config(config: Any) -> Any:
    """List pages of measurements that the menu does not name yet: commands write them."""
    menu = next(section["Measurements"] for section in config.nav if "Measurements" in section)
    listed = {path for each in menu for path in each.values()}
    menu += sorted(path.name for path in (ROOT / "docs").glob("benchmarks*.md") if path.name not in listed)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made from files outside ``docs/`` and from notebooks."""
    for name, page in OUTSIDE.items():
        if name != "README.md":
            text = (ROOT / name).read_text(encoding="utf-8")
            text = with_scripts(text) if name == EXAMPLES else relocate(text, "", "")
            files.append(File.generated(config, page, content=text))
    for notebook in list(files):
        if notebook.src_uri.endswith(".ipynb"):
            text = notebook_page(json.loads(notebook.content_string))
            files.append(File.generated(config, str(Path(notebook.src_uri).with_suffix(".md")), content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Return the Markdown of a page as the site needs it."""
    if page.file.generated_by is None:
        markdown = relocate(markdown, "docs", posixpath.dirname(page.file.src_uri))
    return spaced_lists(plain_stars(markdown))


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Warn of a page that would load something from elsewhere: the site is read without a network."""
    for address in loaded_from_elsewhere(output):
        LOG.warning("Page '%s' must load nothing from outside the site. Found %s.", page.file.src_uri, address)
    return output


def loaded_from_elsewhere(html: str) -> list[str]:
    """Return the addresses outside the site from which a page would load scripts, styles, pictures or frames."""
    return LOADED.findall(html)


def relocate(text: str, folder: str, below: str) -> str:
    """Point links of a file at pages of the site.

    ``folder`` is the file's root in the repository ("docs", or "" for the repository itself), ``below`` its folder
    under it. A link to a file that is no page becomes its text.
    """

    def link(found: re.Match[str]) -> str:
        picture, said, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(folder, below, target))
        if path.startswith("docs/"):
            page = path.removeprefix("docs/")
        elif path in OUTSIDE:
            page = OUTSIDE[path]
        else:
            return said
        if (ROOT / path).is_dir():
            page += "/README.md"
        page = re.sub(r"\.ipynb$", ".md", page)
        return f"{picture}[{said}]({posixpath.relpath(page, below or '.')}{anchor or ''})"

    return "".join(part if is_code else LINK.sub(link, part) for part, is_code in parts(text))


def parts(text: str) -> list[tuple[str, bool]]:
    """Return prose and fenced code in turn, each with True if it is code."""
    pieces = re.split(r"(^ *```.*?^ *```$)", text, flags=re.DOTALL | re.MULTILINE)
    return [(piece, i % 2 == 1) for i, piece in enumerate(pieces)]


def with_scripts(text: str) -> str:
    """Return the page of examples with every script below it, and with links to the scripts on the page."""
    scripts = sorted((ROOT / EXAMPLES).parent.glob("*.py"))
    for script in scripts:
        text = text.replace(f"]({script.name})", f"](#{script.name.replace('.', '')})")
        text += f"\n## {script.name}\n```python\n{script.read_text(encoding='utf-8')}```\n"
    return text


def plain_stars(text: str) -> str:
    """Escape stars of formulas, as in 2**-20 and θ*, which Python-Markdown takes for emphasis."""
    pieces = []
    for piece, is_code in parts(text):
        spans = [piece] if is_code else re.split(r"(`[^`\n]*`)", piece)
        pieces += [
            span if is_code or span.startswith("`") else STARS.sub(lambda found: r"\*" * len(found[0]), span)
            for span in spans
        ]
    return "".join(pieces)


def spaced_lists(text: str) -> str:
    """Put a blank line before each list, and indent what is inside an item by four columns instead of two."""
    found: list[str] = []
    for piece, is_code in parts(text):
        if is_code:
            found.append(piece)
            continue
        lines: list[str] = []
        is_item = False
        for line in piece.split("\n"):
            item = ITEM.match(line)
            if item and lines and lines[-1].strip() and not is_item and not lines[-1].startswith("|"):
                lines.append("")
            if is_item and line.startswith("  ") and not line.startswith("    "):
                line = "  " + line
            elif is_item and line.startswith("    "):
                line = "    " + line
            if item:
                is_item = True
            elif line.strip() and not line.startswith(" ") and not (is_item and lines and lines[-1].strip()):
                is_item = False
            lines.append(line.replace("`\\|`", "`|`") if line.startswith("|") else line)
        found.append("\n".join(lines))
    return "".join(found)


def notebook_page(notebook: dict[str, Any]) -> str:
    """Return a notebook as Markdown: its texts, its code, and what the code printed."""
    found = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        found.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        said = "".join("".join(output.get("text", [])) for output in cell.get("outputs", []))
        if said:
            found.append(f"```text\n{said.rstrip()}\n```")
    return "\n\n".join(found) + "\n"
