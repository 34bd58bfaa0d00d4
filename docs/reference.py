"""Writes docs/api.md: every public name with its signature and what it says of itself. Run by `make docs`."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import hedgerow as hr

MODULES = (hr.losses, hr.erm, hr.estimators, hr.serialize, hr.audit, hr.unsafe)
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (  # headings of the names in `hedgerow`, by the module that defines them
    ("Opening a table", ("hedgerow.opening", "hedgerow.session", "hedgerow.privacy", "hedgerow.profiles", "hedgerow.data",
                         "hedgerow.client", "hedgerow.release_file")),
    ("Declaring columns", ("hedgerow.universe", "builtins")),
    ("Questions", ("hedgerow.query", "hedgerow.convex.minimize")),
    ("Answers", ("hedgerow.answer",)),
    ("Sets of parameters", ("hedgerow.convex.sets",)),
    ("Planning", ("hedgerow.planning",)),
    ("Test sets", ("hedgerow.generalise",)),
    ("Errors and warnings", ("hedgerow.errors",)),
)  # fmt: skip
OF_USERS = (hr.Session, hr.Answer, hr.Universe, hr.Holdout, hr.Plan)  # classes whose methods are shown in full
OF_USERS_MADE = (hr.Session, hr.Answer, hr.Plan)  # made by the package: no one calls them
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
INTRODUCTION = """\
# Python

Every public name, from its docstring; written by `make docs`. `import hedgerow as hr` is assumed, so that `open` below
is `hr.open`. [Asking questions](questions.md) and [Reading answers](answers.md) show most of them at work.
"""


class Name:
    """A default that is shown as the constant it is, not as its digits."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def as_written(parameter: inspect.Parameter, constants: dict[str, object]) -> inspect.Parameter:
    """Return a parameter with its annotation as written, and a default that is a table by the name of the table.

    The digits that a power function gave vary by processor.
    """
    if isinstance(parameter.annotation, str):
        parameter = parameter.replace(annotation=Name(parameter.annotation))
    if not isinstance(parameter.default, tuple) or not parameter.default:
        return parameter
    names = [name for name, constant in constants.items() if constant is parameter.default]
    return parameter.replace(default=Name(names[0])) if names else parameter


def signature(thing: object) -> str:
    """Return the signature of a callable, one parameter a line if it is long; "" of anything else."""
    if not callable(thing):
        return ""
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    constants = getattr(inspect.unwrap(thing), "__globals__", {})
    given = [as_written(each, constants) for each in found.parameters.values() if each.name not in ("self", "cls")]
    returned = found.return_annotation
    if inspect.isclass(thing):
        returned = inspect.Signature.empty
    elif isinstance(returned, str):
        returned = Name(returned)
    text = str(found.replace(parameters=given, return_annotation=returned))
    if len(text) > 90:
        text = (
            _by_line(given)
            + text[len(str(found.replace(parameters=given, return_annotation=inspect.Signature.empty))) :]
        )
    return re.sub(r" at 0x[0-9a-f]+", "", text)  # addresses say nothing


def _by_line(given: Sequence[inspect.Parameter]) -> str:
    """Write parameters, one a line."""
    lines, kinds = [], [each.kind for each in given]
    for i, each in enumerate(given):
        before, after = kinds[:i], kinds[i + 1 :]
        if each.kind is each.KEYWORD_ONLY and not {each.KEYWORD_ONLY, each.VAR_POSITIONAL} & {*before}:
            lines.append("    *,")
        lines.append(f"    {each},")
        if each.kind is each.POSITIONAL_ONLY and each.POSITIONAL_ONLY not in after:
            lines.append("    /,")
    return "(\n" + "\n".join(lines) + "\n)"


def docstring(thing: object) -> str:
    """Return a docstring as Markdown: sections in bold, parameters as a list, examples as code."""
    first, *rest = SECTION.split(inspect.getdoc(thing) or "")
    text = first.strip() + "\n"
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        if title.startswith("Example"):
            body = body.strip().replace("  # doctest: +SKIP", "")
            text += f"\n**Example**\n\n```pycon\n{body}\n```\n"
        else:
            text += f"\n**{title}**\n\n{_listed(title, body)}\n"
    return text


def _listed(title: str, body: str) -> str:
    """Return the entries of a section as a list. A result without a description is a line of text."""
    entries: list[tuple[str, list[str]]] = []
    for line in body.strip("\n").splitlines():
        if line.startswith(" ") or not line:
            entries[-1][1].append(line.strip())
        else:
            entries.append((line.strip(), []))
    lines = []
    for head, said in entries:
        name, colon, kind = head.partition(" : ")
        told = " ".join(part for part in said if part)
        shown = f"`{name}`" + (f" ({kind})" if colon else "")
        lines.append(_item(f"{shown}: {told}" if told else shown))
    return "\n".join(lines) + "\n"


def _item(text: str) -> str:
    """Return an item of a list, in lines of at most 120 columns."""
    return "\n".join(
        textwrap.wrap(f"- {text}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    )


def entry(name: str, thing: object) -> str:
    if isinstance(thing, str):  # a constant, whose documentation would be that of Python's texts
        return f"### `{name}`\n\nThe constant `{thing!s}`.\n"
    text = f"### `{name}`\n\n"
    if shown := ("" if thing in OF_USERS_MADE else signature(thing)):
        text += f"```py\n{name}{shown}\n```\n\n"
    text += docstring(thing)
    if inspect.isclass(thing):
        text += "\n" + _methods(name, thing)
    return text


def _methods(name: str, thing: type) -> str:
    """Return the public methods and properties of a class: in full for classes that users call, else a line each."""
    text = ""
    for method, function in vars(thing).items():
        inner = getattr(function, "__func__", function)
        if method.startswith("_") or not (callable(inner) or isinstance(inner, property)):
            continue
        if thing in OF_USERS:
            shown = "" if isinstance(inner, property) else signature(getattr(thing, method))
            code = f"```py\n{method}{shown}\n```\n\n" if shown else ""
            text += f"#### `{name}.{method}`\n\n{code}{docstring(inner)}\n"
        else:
            said = (inspect.getdoc(inner) or "").split("\n\n")[0].replace("\n", " ")
            text += _item(f"`{method}`" + (f": {said}" if said else "")) + "\n"
    if thing not in OF_USERS and text:
        text = f"**Methods and properties**\n\n{text}"
    return text + "\n" if text else ""


def title_of(thing: object) -> str:
    """Return the heading under which a public name is listed."""
    module = getattr(thing, "__module__", "builtins")
    return next((title for title, modules in GROUPS if module.startswith(modules)), GROUPS[-1][0])


def section(title: str, said: str, module: ModuleType, names: Iterable[str]) -> str:
    entries = "\n".join(entry(name, getattr(module, name)) for name in sorted(names, key=str.lower))
    return f"## {title}\n\n{said}\n\n{entries}"


def written() -> str:
    own = [name for name in hr.__all__ if not inspect.ismodule(getattr(hr, name))]
    sections = [
        section(title, "", hr, [name for name in own if title_of(getattr(hr, name)) == title]) for title, _ in GROUPS
    ]
    for module in MODULES:
        said = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
        sections.append(section(f"`{module.__name__}`", said, module, module.__all__))
    return re.sub(r"\n{3,}", "\n\n", f"{INTRODUCTION}\n" + "\n".join(sections))


if __name__ == "__main__":
    (Path(__file__).parent / "api.md").write_text(written())
