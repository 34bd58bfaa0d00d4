"""Write docs/mutants.md: what became of the mutants of the catalogue, and of those that operators drew."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from judgements import JUDGED, WRITTEN, Judgement
from mutant import Mutant
from mutant_operators import OPERATORS, Site
from mutant_runs import BROKEN, CAUGHT, NOT_RUN, NOT_SETTLED, OUT_OF_TIME, SURVIVED, Verdict

HEAD = """# Mutants

`make mutants` writes this page. It makes small changes to the library and checks that the tests notice them.
Comparisons with stored seeded results are left out.

"""
MARK, FRESH = "<!-- operators -->\n", re.compile(r"<!-- fresh (\d+) -->\n")


def renewed(
    page: Path, *, catalogue: str = "", operators: str = "", fresh: Mapping[int, str] = MappingProxyType({})
) -> None:
    """Write the parts that are given, and keep the others. ``fresh`` has a part for the seed of each fresh draw."""
    before = page.read_text() if page.exists() else ""
    first, _, rest = before.partition(MARK)
    second, *others = FRESH.split(rest)
    draws = {int(seed): text for seed, text in zip(others[::2], others[1::2], strict=True)} | dict(fresh)
    parts = [HEAD, catalogue or first.removeprefix(HEAD), MARK, operators or second]
    parts += [f"<!-- fresh {seed} -->\n{draws[seed]}" for seed in sorted(draws)]
    from hedgerow.research.pages import short_lines  # not above: whoever runs the tests imports this file first

    page.write_text(short_lines("".join(parts)))


def counted(chosen: Sequence[Mutant], verdicts: Mapping[str, Verdict]) -> str:
    """Return the table of the catalogue, and the mutants that were not caught."""
    asked = [m for m in chosen if not m.equivalent]
    lines = ["| area | caught | survived | not settled |", "|---|---|---|---|"]
    for area in dict.fromkeys(m.area for m in asked):
        found = [verdicts[m.id].outcome for m in asked if m.area == area]
        lines.append(f"| {area} | " + " | ".join(str(found.count(o)) for o in (CAUGHT, SURVIVED, NOT_SETTLED)) + " |")
    total = [verdicts[m.id].outcome for m in asked]
    lines.append("| **all** | " + " | ".join(f"**{total.count(o)}**" for o in (CAUGHT, SURVIVED, NOT_SETTLED)) + " |")
    for outcome in (SURVIVED, NOT_SETTLED):
        left = [m for m in asked if verdicts[m.id].outcome == outcome]
        lines += ["", f"### {outcome.capitalize()}", ""]
        lines += [f"- {m.id} (`{m.file}`): {m.note}" for m in left] or ["None."]
    return "\n".join(lines)


def of_catalogue(chosen: Sequence[Mutant], verdicts: Mapping[str, Verdict], not_written: Sequence[str]) -> str:
    equivalent = [f"- {m.id} (`{m.file}`): {m.equivalent}" for m in chosen if m.equivalent]
    return "\n".join(
        [
            "## The catalogue",
            "",
            "Harmful changes that were written by hand, each with the tests that must notice it. They are in `tests/mutants/`, with the harm that",
            "each would do to a user.",
            "",
            counted(chosen, verdicts),
            "",
            "### Equivalent: no test can notice them, and why",
            "",
            *(equivalent or ["None."]),
            "",
            "### Not possible: changes for which the design has no line of code",
            "",
            *(f"- {line}" for line in not_written),
            "",
            "",
        ]
    )


def tallied(drawn: Sequence[Site], verdicts: Mapping[str, Verdict]) -> str:
    """Return two tables of the drawn mutants, by folder and by operator, and the share that is caught."""
    folders = list(dict.fromkeys(_folder(site) for site in drawn))
    lines = [*_table("folder", folders, drawn, verdicts, _folder), ""]
    lines += _table("operator", OPERATORS, drawn, verdicts, lambda site: site.operator)
    outcomes = [_fate(site, verdicts) for site in drawn]
    counts = len(outcomes) - outcomes.count("equivalent")
    late = sum(verdicts[site.id].by == OUT_OF_TIME for site in drawn)
    broken = sum(verdicts[site.id].by == BROKEN for site in drawn)
    share = outcomes.count(CAUGHT) / max(1, counts)
    caught, harmless = outcomes.count(CAUGHT), outcomes.count("harmless")
    lines += [
        "",
        f"Caught: {caught} of {counts} that are not equivalent, {share:.1%}; and {caught / max(1, counts - harmless):.1%} of the {counts - harmless} that are not",
        f"harmless either. Of these {late} because the tests no longer end, and {broken} because a module or a test file can no longer be imported.",
    ]
    return "\n".join(lines)


def of_operators(drawn: Sequence[Site], verdicts: Mapping[str, Verdict], seed: int, *, is_fresh: bool = False) -> str:
    """Return the section of drawn mutants. A fresh draw is one that no test was written for before it was run."""
    folders = ", ".join(f"`{folder}`" for folder in dict.fromkeys(_folder(site) for site in drawn))
    kept = [
        "fastest first, as far as the time goes. Survivors are judged in `tests/mutants/judgements.py`. A place stays drawn, and one that is",
        "gone is replaced. Tests were written for survivors, so the share that is caught is of these mutants; another seed draws others.",
    ]
    fresh = [
        "fastest first, as far as the time goes. Survivors are judged in `tests/mutants/judgements.py`. No test was written for these mutants",
        f"before they were run. For {WRITTEN.get(seed, 0)} of the survivors one was written then, and these count as caught below: without them the share",
        f"says what the tests of {folders} notice of changes that nobody thought of.",
    ]
    lines = [
        f"## A fresh draw, seed {seed}" if is_fresh else "## Random mutants",
        "",
        f"{len(drawn)} changes that operators made (`tools/mutant_operators.py`), drawn with seed {seed}: from each folder in proportion to the",
        "root of the number of its places, and from each operator alike. Each was run with the tests that run the line, the nearest and",
        *(fresh if is_fresh else kept),
        "",
        tallied(drawn, verdicts),
    ]
    for kind, title in (
        ("", "Not settled: not run yet, or not judged yet"),
        ("harmful", "Harmful, and caught by no test yet"),
        ("harmless", "Harmless: accuracy, speed or wording only"),
        ("equivalent", "Equivalent: no test can notice them"),
    ):
        left = [site for site in drawn if verdicts[site.id].outcome != CAUGHT and _judged(site).kind == kind]
        lines += ["", f"### {title}", ""]
        lines += [_line(site) + _why(verdicts[site.id]) for site in left] or ["None."]
    return "\n".join([*lines, ""])


def _line(site: Site) -> str:
    reason = _judged(site).reason
    change = f"`{_short(site.old)}` → `{_short(site.new)}`".replace("|", "\\|")
    return f"- {site.id} `{site.file}` {site.where or 'module'}, {site.operator}: {change}" + (
        f". {reason}" if reason else ""
    )


def _why(verdict: Verdict) -> str:
    return f" ({verdict.by})" if verdict.by == NOT_RUN else ""


def _short(text: str, most: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _folder(site: Site) -> str:
    return site.file.partition("/")[0].removesuffix(".py")


def _judged(site: Site) -> Judgement:
    return JUDGED.get(site.key, Judgement("", ""))


def _fate(site: Site, verdicts: Mapping[str, Verdict]) -> str:
    outcome = verdicts[site.id].outcome
    return outcome if outcome == CAUGHT else _judged(site).kind or outcome


def _table(
    title: str, rows: Sequence[str], drawn: Sequence[Site], verdicts: Mapping[str, Verdict], of: object
) -> list[str]:
    assert callable(of)
    lines = [f"| {title} | drawn | caught | harmless | equivalent | left |", "|---|---|---|---|---|---|"]
    for row in (*rows, ""):
        fates = [_fate(site, verdicts) for site in drawn if not row or of(site) == row]
        known = [fates.count(fate) for fate in (CAUGHT, "harmless", "equivalent")]
        cells = [len(fates), *known, len(fates) - sum(known)]
        lines.append(
            f"| {row or '**all**'} | " + " | ".join(str(cell) if row else f"**{cell}**" for cell in cells) + " |"
        )
    return lines
