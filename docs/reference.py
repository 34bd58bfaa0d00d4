"""Writes docs/api.md: every public name with its signature and what it says of itself. Run by `make docs`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import hedgerow as hr

MODULES = (hr.losses, hr.erm, hr.estimators, hr.serialize, hr.audit, hr.unsafe)


class Name:
    """A default that is shown as the constant it is, not as its digits."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def by_name(parameter: inspect.Parameter, constants: dict[str, object]) -> inspect.Parameter:
    """Write a default that is a table by the name of the table: digits that a power function gave vary by processor."""
    if not isinstance(parameter.default, tuple) or not parameter.default:
        return parameter
    names = [name for name, constant in constants.items() if constant is parameter.default]
    return parameter.replace(default=Name(names[0])) if names else parameter


def signature(thing: object) -> str:
    if not callable(thing):
        return ""
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    constants = getattr(inspect.unwrap(thing), "__globals__", {})
    shown = str(found.replace(parameters=[by_name(each, constants) for each in found.parameters.values()]))
    return re.sub(r" at 0x[0-9a-f]+", "", shown).replace("'", "")  # annotations are texts; addresses say nothing


def entry(name: str, thing: object) -> str:
    text = f"### `{name}{signature(thing)}`\n\n{inspect.getdoc(thing) or ''}\n"
    if inspect.isclass(thing):
        for method, function in vars(thing).items():
            if not method.startswith("_") and (callable(function) or isinstance(function, property | classmethod)):
                said = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
                text += f"\n- `{method}`" + (f": {said}" if said else "")
        text += "\n"
    return text


def section(module: ModuleType, names: Iterable[str]) -> str:
    said = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
    entries = "\n".join(entry(name, getattr(module, name)) for name in sorted(names))
    return f"## `{module.__name__}`\n\n{said}\n\n{entries}"


def written() -> str:
    own = [name for name in hr.__all__ if not inspect.ismodule(getattr(hr, name))]
    sections = [section(hr, own), *(section(module, module.__all__) for module in MODULES)]
    return "# API\n\nWritten by `make docs`.\n\n" + "\n".join(sections)


if __name__ == "__main__":
    (Path(__file__).parent / "api.md").write_text(written())
