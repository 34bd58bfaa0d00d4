"""Run the pages whose pictures and printed output come from their own code, and renew both. Run by `make pictures`.

    python tools/doc_pictures.py             all of them
    python tools/doc_pictures.py tutorial    one page

Code runs as printed, in an empty folder. A ``text`` block that follows a block of code becomes what the code printed; a
picture that the code saves becomes docs/pictures/<page>-<name>.png, and so does the top of an HTML page that it saves.
Noise is drawn anew, so numbers differ between runs.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = ("start", "tutorial", "large-enough", "synthetic", "models", "regressions")
BLOCK = re.compile(r"```(python|sh)\n(.*?)```(\n+```text\n.*?```)?", re.DOTALL)
WIDTH = 96  # columns of printed output


def main(pages: list[str]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["savefig.dpi"] = 150
    for page in pages or PAGES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            os.environ["HEDGEROW_LEDGER_KEY_FILE"] = str(Path(folder) / "ledger.key")
            path = next(DOCS.glob(f"{page}.*"))
            renew = renewed_notebook if path.suffix == ".ipynb" else renewed
            path.write_text(renew(path.read_text(encoding="utf-8")), encoding="utf-8")
            for report in Path(folder).glob("*.html"):
                photograph(report)
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, DOCS / "pictures" / f"{page}-{picture.name}")
        print(page)


def renewed(text: str) -> str:
    """Run the code of a page in order, and return the page with what the code printed."""
    names: dict[str, Any] = {}

    def block(found: re.Match[str]) -> str:
        kind, code, printed = found.groups()
        said = run_shell(code) if kind == "sh" else run_python(code, names)
        shown = f"```{kind}\n{code}```"
        lines = [textwrap.fill(line, WIDTH) if len(line) > WIDTH else line for line in said.rstrip().splitlines()]
        return shown if printed is None else "\n".join([shown, "", "```text", *lines, "```"])

    return BLOCK.sub(block, text)


def renewed_notebook(text: str) -> str:
    """Run the cells of a notebook in order, and return it with what they printed."""
    notebook = json.loads(text)
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            said = run_python("".join(cell["source"]), names)
            stream = {"name": "stdout", "output_type": "stream", "text": said.splitlines(keepends=True)}
            cell["outputs"] = [stream] if said else []
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def photograph(page: Path) -> None:
    """Save a picture of the top of a page that the code wrote, if there is a Chromium."""
    if (browser := shutil.which("chromium") or shutil.which("google-chrome")) is None:
        print(f"Chromium must be installed to photograph {page.name}. Its picture stays as it is.")
        return
    to = f"--screenshot={page.with_suffix('.png')}"
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1180", to)
    subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True)


def run_python(code: str, names: dict[str, Any]) -> str:
    """Run Python and return what it printed."""
    import pandas as pd

    pd.set_option("display.width", WIDTH, "display.max_columns", 20, "display.precision", 3)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "page", "exec", dont_inherit=True), names)
    return said.getvalue()


def run_shell(code: str) -> str:
    """Run commands of hedgerow and return what they printed."""
    from typer.testing import CliRunner

    from hedgerow.cli import app

    said = ""
    for line in code.strip().splitlines():
        _, *command = shlex.split(line, comments=True)
        ran = CliRunner().invoke(app, command)
        if ran.exit_code:
            raise SystemExit(f"{line}\n{ran.output}")
        said += ran.output
    return said


if __name__ == "__main__":
    main(sys.argv[1:])
