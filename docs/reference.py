"""Writes docs/api.md: every public name with its signature and what it says of itself. Run by `make docs`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

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


def section(module: ModuleType, names: Iterable[str]) -> str:
    said = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
    entries = "\n".join(entry(name, getattr(module, name)) for name in sorted(names))
    return f"## `{module.__name__}`\n\n{said}\n\n{entries}"


def main() -> None:
    own = [name for name in vars(hr) if not name.startswith("_") and not inspect.ismodule(getattr(hr, name))]
    sections = [section(hr, own), *(section(module, module.__all__) for module in (hr.losses, hr.erm))]
    (Path(__file__).parent / "api.md").write_text("# API\n\nWritten by `make docs`.\n\n" + "\n".join(sections))


if __name__ == "__main__":
    main()
