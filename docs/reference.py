"""Writes docs/api.md: every public name with its signature and what it says of itself. Run by `make docs`."""

from __future__ import annotations

import inspect
from pathlib import Path

import hedgerow as hr


def entry(name: str, thing: object) -> str:
    try:
        signature = str(inspect.signature(thing)) if callable(thing) else ""  # type: ignore[arg-type]
    except ValueError:
        signature = ""
    text = f"### `{name}{signature}`\n\n{inspect.getdoc(thing) or ''}\n"
    if inspect.isclass(thing):
        for method, function in vars(thing).items():
            if not method.startswith("_") and (callable(function) or isinstance(function, property)):
                said = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
                text += f"\n- `{method}`: {said}"
        text += "\n"
    return text


def main() -> None:
    names = sorted(n for n in vars(hr) if not n.startswith("_") and not inspect.ismodule(getattr(hr, n)))
    body = "\n".join(entry(name, getattr(hr, name)) for name in names)
    (Path(__file__).parent / "api.md").write_text(f"# API\n\nWritten by `make docs`.\n\n{body}")


if __name__ == "__main__":
    main()
