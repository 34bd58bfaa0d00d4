"""The configuration file: the table, its universe, the budget, the ledger, and the options of a session.

    source = "people.csv"                     # or a database URL with table = "…"
    ledger = "sqlite:///people.ledger"

    [budget]
    epsilon = 1.0
    delta = 1e-6

    [universe.age]                            # or universe = "people-universe.toml"
    kind = "Integers"
    low = 17
    high = 90

Paths are relative to the file's folder. docs/cli.md has every key.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hedgerow as hr
from hedgerow._checks import did_you_mean, number
from hedgerow.cli.environment import expand, require_no_secret
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from hedgerow.data.csv_file import Csv
    from hedgerow.privacy.budget import Budget
    from hedgerow.universe.universe import Universe

DEFAULT = Path("hedgerow.toml")
# keys of the file and of its tables
KEYS = (
    "source", "table", "csv", "universe", "budget", "draft", "ledger", "options", "practical", "theory", "block", "blocks",
)  # fmt: skip
BLOCK = ("name", "source", "table", "epsilon", "delta")
CSV = ("delimiter", "quote", "encoding", "columns", "multiline")
OPTIONS = ("profile", "queries", "beta", "alpha", "workload", "guard", "reserve", "keep_rows", "rows")
PRACTICAL = ("queries", "beta", "workload", "guard", "reserve", "model_cells", "pay_for_hits")
THEORY = ("queries", "beta", "alpha", "workload")

Place = Annotated[
    Path, typer.Option("--file", "-f", envvar="HEDGEROW_FILE", help="Configuration file, as `hedgerow init` drafts it.")
]


class File:
    """Contents of the configuration file. Each part is checked when needed: reading a ledger needs no universe."""

    def __init__(self, path: Path) -> None:
        self.path, self.folder = path, path.absolute().parent
        try:
            self.content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except OSError:
            raise InvalidInput(
                f"A file must describe the table. Found none at {str(path)!r}. Make one with `hedgerow init SOURCE`, "
                "or name it with --file."
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            from hedgerow.universe.files import toml_problem

            raise InvalidInput(f"{path} must be TOML. {toml_problem(problem)}") from None
        self._require_keys(self.content, KEYS, "")

    # The table

    @property
    def source(self) -> str:
        """Path or URL of the table, with values from the environment. It may contain a password and is never shown."""
        return self._locate(self._text("source", "Name the table's file, or the URL of its database."))

    def _locate(self, given: str) -> str:
        """Return a path relative to the file's folder, or a URL, with values from the environment."""
        found = expand(given, f"source in {self.path.name}")
        scheme, mark, rest = found.partition("://")
        if not mark:
            return str(self.folder / found)
        if scheme in ("sqlite", "duckdb") and rest and not rest.startswith(("/", ":memory:", "md:")):
            return f"{scheme}://{self.folder / rest}"
        return found

    @property
    def source_shown(self) -> str:
        """Path or URL of the table as written in the file, without values from the environment."""
        return self._text("source", "Name the table's file, or the URL of its database.")

    @property
    def table(self) -> str | None:
        """Name of the table in a database, or None."""
        return self._text("table", "") if "table" in self.content else None

    @property
    def csv(self) -> Csv | None:
        """Format of a CSV file, or None."""
        given = self._table("csv", CSV)
        if "quote" in given and given["quote"] == "":
            given = {**given, "quote": None}  # TOML has no null
        return hr.Csv(**given) if given else None

    # Appended blocks

    @property
    def block(self) -> dict[str, Any]:
        """Argument of ``hr.open`` that names the first table, if it has a name."""
        return {"block": self._text("block", "")} if "block" in self.content else {}

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """Arguments of ``session.append`` for each appended block, in order."""
        listed = self.content.get("blocks", [])
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise InvalidInput(
                f"blocks must be tables in {self.path.name}. Found a value that is no list of tables. Write "
                "[[blocks]] above each block."
            )
        return [self.block_arguments(each) for each in listed]

    def block_arguments(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of ``session.append`` for one [[blocks]] table."""
        self._require_keys(block, BLOCK, "[[blocks]] of ")
        name, source = block.get("name"), block.get("source")
        if not isinstance(name, str) or not isinstance(source, str):
            raise InvalidInput(
                f"[[blocks]] of {self.path.name} must each have a name and a source. Found one without. Write both."
            )
        require_no_secret(source, "source")
        given = {"block": name, "source": self._locate(source), "table": block.get("table"), "csv": self.csv}
        if "epsilon" in block or "delta" in block:
            usual = self.budget
            given["budget"] = hr.Budget(
                block.get("epsilon", usual.epsilon), block.get("delta", usual.delta), usual.neighbours
            )
        return given

    # The universe and the budget

    @cached_property
    def universe(self) -> Universe:
        """The declared universe."""
        given = self.content.get("universe")
        if isinstance(given, str):
            return hr.Universe.load(self.folder / given)
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(
                f"{self.path.name} must declare the universe. Found no [universe.…]. Declare each column from public "
                "knowledge, or "
                'name a file: universe = "people-universe.toml". docs/universe.md explains it.'
            )
        return hr.Universe.from_json(given)

    @property
    def total(self) -> Budget:
        """Budget for everything, the draft of the universe included."""
        given = self._table("budget", ("epsilon", "delta", "neighbours"))
        if "epsilon" not in given or "delta" not in given:
            raise InvalidInput(
                f"{self.path.name} must declare a budget. Found no epsilon and delta. Write [budget], for example with "
                "epsilon = 1.0 and delta = 1e-6. There is no default."
            )
        return hr.Budget(**given)

    @property
    def draft(self) -> tuple[float, float]:
        """The ε and δ that the draft of the universe has cost, out of the total."""
        return draft_cost(self.content)

    @property
    def budget(self) -> Budget:
        """Budget of the session: the total minus the cost of the draft."""
        return self._without_draft(self.total)

    def budget_with(self, epsilon: float, delta: float) -> Budget:
        """Return ``budget`` as if the file declared this ε and δ. Neighbors and the cost of the draft stay the same."""
        given = self._table("budget", ("epsilon", "delta", "neighbours"))
        return self._without_draft(hr.Budget(**{**given, "epsilon": epsilon, "delta": delta}))

    def _without_draft(self, total: Budget) -> Budget:
        """Subtract the cost of the draft from a budget."""
        epsilon, delta = self.draft
        left = [less(total.epsilon, epsilon), less(total.delta, delta)]
        if left[0] <= 0 or left[1] < 0 or (delta and left[1] == 0):
            raise InvalidInput(
                f"The budget must exceed the cost of the draft, epsilon = {epsilon:g} and delta = {delta:g}. Found "
                f"{total.epsilon:g} and {total.delta:g}. Raise it; the draft stays spent."
            )
        return hr.Budget(left[0], left[1], total.neighbours)

    # The ledger and the options of a session

    @property
    def ledger(self) -> str:
        """URL of the ledger, with values from the environment. Never shown."""
        given = self._text(
            "ledger", 'Write ledger = "sqlite:///people.ledger". Without one, every command would spend again.'
        )
        found = expand(given, f"ledger in {self.path.name}")
        path = found.removeprefix("sqlite:///")
        return found if path == found or path.startswith("/") else f"sqlite:///{self.folder / path}"

    @property
    def ledger_shown(self) -> str:
        """URL of the ledger as written in the file."""
        return self._text("ledger", "")

    @property
    def options(self) -> dict[str, Any]:
        """Further arguments of ``hr.open``: those of [options], and the profile of [practical] or [theory]."""
        given = _with_workload(self._table("options", OPTIONS))
        tables = [(name, keys) for name, keys in (("practical", PRACTICAL), ("theory", THEORY)) if name in self.content]
        if len(tables) + ("profile" in given) > 1:
            raise InvalidInput(
                f"{self.path.name} must name one profile. Found {', '.join(self._profiles_named())}. Keep one of them."
            )
        for name, keys in tables:
            made = hr.Practical if name == "practical" else hr.Theory
            given["profile"] = made(**_with_workload(self._table(name, keys)))
        if "rows" in given:  # the name in files of earlier versions
            given["keep_rows"] = given.pop("rows")
        if isinstance(given.get("keep_rows"), str):
            given["keep_rows"] = self.folder / given["keep_rows"]
        return given

    @property
    def is_practical(self) -> bool:
        """True if the file chooses the practical profile, or none."""
        profile = self.options.get("profile", "practical")
        return profile == "practical" or isinstance(profile, hr.Practical)

    @property
    def reserve(self) -> float:
        """Share of the budget that the opening keeps at least, by the file or by the default rule."""
        least = 0.01
        given = {**self._table("options", OPTIONS), **self._table("practical", PRACTICAL)}.get("reserve", least)
        return least if isinstance(given, bool) or not isinstance(given, int | float) else given  # refused by hr.open

    def _profiles_named(self) -> Iterator[str]:
        """Name the places of the file that choose a profile."""
        yield from (f"[{name}]" for name in ("practical", "theory") if name in self.content)
        if "profile" in self._table("options", OPTIONS):
            yield "profile in [options]"

    def require_other(self, out: Path | None) -> None:
        """Refuse to overwrite the table, the ledger, this file, or a file that it names.

        Without its ledger, a table's budget could be spent again.
        """
        if out is not None and self.is_own(out):
            raise InvalidInput(
                f"--out must be a file of its own. Found {str(out)!r}, which is the table, the ledger or a file that "
                "describes them. Name another."
            )

    def is_own(self, path: Path) -> bool:
        """Return True if a path leads, perhaps by a link, to the table, a block, the ledger or a file about them."""
        return any(is_same_file(path, own) for own in self._own())

    def _own(self) -> Iterator[Path]:
        """Paths of all files of the desk.

        A path that cannot be resolved, for example without its environment variable, is left out.
        """
        yield self.path
        content = self.content
        blocks = content.get("blocks", [])
        named = [each.get("source") for each in blocks if isinstance(each, dict)] if isinstance(blocks, list) else []
        for given in (content.get("source"), content.get("ledger"), content.get("universe"), *named):
            if isinstance(given, str):
                with contextlib.suppress(InvalidInput):
                    place = expand(given, self.path.name).rpartition("://")[2].partition("?")[0]
                    for end in ("", "-wal", "-shm", "-turn", "-journal"):  # what SQLite and a ledger keep beside
                        yield from (self.folder / f"{each}{end}" for each in {place, place.lstrip("/")})

    def _text(self, key: str, way_out: str) -> str:
        """Return a text of the file. Refuse a missing one, and one with a password."""
        found = self.content.get(key)
        if not isinstance(found, str) or not found:
            kind = "nothing" if found is None else f"a {type(found).__name__}"
            raise InvalidInput(f"{key} must be a text in {self.path.name}. Found {kind}. {way_out}".strip())
        require_no_secret(found, key)
        return found

    def _table(self, key: str, known: tuple[str, ...]) -> dict[str, Any]:
        """Return a table of the file. Refuse unknown keys."""
        found = self.content.get(key, {})
        if not isinstance(found, dict):
            raise InvalidInput(
                f"[{key}] must be a table in {self.path.name}. Found {type(found).__name__}. Write [{key}]."
            )
        self._require_keys(found, known, f"[{key}] of ")
        return found

    def _require_keys(self, found: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
        """Refuse unknown keys."""
        for name in found:
            if name not in known:
                raise InvalidInput(
                    f"{where}{self.path.name} must have only {', '.join(known)}. Found "
                    f"{name!r}.{did_you_mean(name, known)} Correct it, or take it out."
                )


def is_same_file(one: Path, other: Path) -> bool:
    """Tell whether two paths are one file, by whatever links."""
    try:
        return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
    except (OSError, ValueError):
        return False


def replace_file(path: Path, text: str) -> None:
    """Replace an existing file, completely or not at all: it may say what was spent."""
    path = path.resolve()
    partly = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partly.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, partly)
        os.replace(partly, path)
    finally:
        partly.unlink(missing_ok=True)


def draft_cost(content: Mapping[str, Any]) -> tuple[float, float]:
    """Return the cost in a file's [draft] table; 0 if there is none."""
    given = content.get("draft", {})
    found = [number(given.get(name, 0.0)) for name in ("epsilon", "delta")] if isinstance(given, Mapping) else []
    if len(found) != 2 or not all(0 <= each < float("inf") for each in found):
        raise InvalidInput(
            "[draft] must have the epsilon and delta that it cost. Found other keys or values. Restore what "
            "`hedgerow init` wrote."
        )
    return found[0], found[1]


def less(a: float, b: float) -> float:
    """Return a − b in decimal arithmetic: 1.0 minus 0.1 is 0.9."""
    return float(Decimal(repr(a)) - Decimal(repr(b)))


def more(a: float, b: float) -> float:
    """Return a + b in decimal arithmetic."""
    return float(Decimal(repr(a)) + Decimal(repr(b)))


def _with_workload(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with their workload, if they have one, read from its text."""
    return {name: workload_in(value) if name == "workload" else value for name, value in options.items()}


def workload_in(given: Any) -> Any:
    """Return a workload as ``hr.open`` takes it: a text, or a list of texts and of lists of columns."""
    return (
        [tuple(each) if isinstance(each, list) else str(each) for each in given]
        if isinstance(given, list)
        else str(given)
    )
