"""A report as a page for people: a cover for a committee, what was asked, what it cost, and what is promised.

The page is one file without anything from outside. It prints on A4: the cover is a page of its own, and tables repeat
their heads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hedgerow import _html
from hedgerow._numbers import few_digits
from hedgerow.display.titles import UNINFORMATIVE, label, sentence, title, unit
from hedgerow.engine.certificate import NONE
from hedgerow.privacy.conversion import epsilon_of_rho
from hedgerow.privacy.renyi_events import HitRound, RandomRuns
from hedgerow.query.counts import Count
from hedgerow.query.ratios import Mean, mean
from hedgerow.query.statistics import QuantileStatistic
from hedgerow.universe.dates import date_of

DATES = "columns of dates"  # the names of these, beside the facts of a report
SERIES = 3  # as many questions that differ in one value are a table
SHOWN = 60  # a table of counts lists at most this many cells
STYLE = """
:root{color-scheme:light}
body{font:15px/1.5 system-ui,"Segoe UI",Roboto,sans-serif;color:#1b1b1b;background:#fff;max-width:54rem;
margin:2.5rem auto;padding:0 1.2rem}
h1{font-size:1.9rem;line-height:1.2;margin:.2em 0 .6em}h2{font-size:1.3rem;margin:2.2em 0 .5em;
border-bottom:2px solid #2f6b4f;padding-bottom:.2em}h3{font-size:1.02rem;margin:1.6em 0 .4em}
table{border-collapse:collapse;width:100%;margin:.6em 0 1.2em}th{font-weight:600;text-align:left;
border-bottom:1.5px solid #1b1b1b;padding:.3em .6em;vertical-align:bottom}
td{padding:.3em .6em;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:break-word}
time{white-space:nowrap}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
small,code{color:#555;font-size:.82rem}code{font-family:ui-monospace,Menlo,Consolas,monospace;
overflow-wrap:anywhere}
.warning{border:2px solid #b00020;color:#b00020;padding:.6em 1em;font-weight:600}
.brand{letter-spacing:.08em;text-transform:uppercase;color:#2f6b4f;font-weight:600}
.key{font-size:1.08rem}.sign td{height:2.4em;width:50%;border-bottom:1px solid #888}
.facts td:first-child{width:40%;color:#444}
@media print{@page{size:A4;margin:18mm 16mm}body{max-width:none;margin:0;padding:0;font-size:10pt}
.cover{min-height:245mm;break-after:page}h2,h3{break-after:avoid}tr{break-inside:avoid}
thead{display:table-header-group}details{display:none}}
"""
PURPOSES = {
    "prefit": "measuring the table when it was opened",
    "certificate": "certifying the bars of questions not asked",
    "guard": "checking free answers",
    "measured": "answers that had to be more accurate",
}
"""Purposes of charges, by the first word of their entry in the ledger."""


CURRENCIES = {"rho": "ρ", "epsilon": "ε"}
AT_ONE_ORDER = {HitRound.__name__, RandomRuns.__name__}  # events whose price is no ρ
KIND = re.compile(r"\b[A-Z]\w*(?=\()")
NOISE = re.compile(r"(Gaussian|Laplace|Exponential)\(.*?(?:sigma|scale|epsilon)=([\d.e+-]+)")


def report_page(report: Any) -> str:
    """Return the report as a complete page."""
    called = "Report of a differentially private session"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{called}</title>'
        f"<style>{STYLE}</style></head><body>{report_body(report)}</body></html>"
    )


def report_body(report: Any) -> str:
    """Return the report as HTML that may stand inside another page."""
    answers = _distinct(report.answers)
    facts = {**report.facts, DATES: frozenset(name for name, kind, _ in report.attributes if kind == "Dates")}
    return "".join(
        [
            f'<section class="cover">{"".join(_cover(report, answers))}</section>',
            _html.heading("What was asked"),
            *_question_sections(answers, facts),
            *_part_section(report.parts, facts),
            _html.heading("What it cost"),
            *_cost_sections(report),
            _html.heading("What is promised"),
            *_promise_sections(report),
        ]
    )


def _cover(report: Any, answers: Sequence[tuple[Any, int]]) -> Iterable[str]:
    """Yield the parts of the cover."""
    facts = report.facts
    rows = facts.get("rows", facts.get("rows_estimated"))
    spent = facts["spent"] / facts["spent_of"]
    private = facts["private"] == "yes"
    yield '<p class="brand">hedgerow</p><h1>What was asked of a confidential table, and what it cost</h1>'
    if not private:
        yield f'<p class="warning">{_html.text(facts["private"])}. Nothing here is protected.</p>'
    about = f"about {rows:,.0f} rows" if "rows" in facts else f"about an estimated {rows:,.0f} rows"
    yield (
        f'<p class="key">{len(answers):,} different questions {about} were answered under one privacy budget of '
        f"ε = {facts['epsilon']:g}{_delta(facts)}. {spent:.0%} of it is spent. The budget is fixed: it bounds what all "
        f"answers together, whoever asks and however many follow, can reveal about any {_unit(facts)}.</p>"
    )
    if "draft_epsilon" in facts:
        yield _html.paragraph(
            f"Before that, drafting the columns from the rows cost ε = {facts['draft_epsilon']:g}, "
            f"δ = {facts['draft_delta']:g}. Columns and answers together are bounded by "
            f"ε = {facts['epsilon'] + facts['draft_epsilon']:g}, δ = {facts['delta'] + facts['draft_delta']:g}."
        )
    yield _html.paragraph(_protection(facts))
    shown = [
        ("Rows", f"{rows:,.0f}" + ("" if "rows" in facts else " (a private estimate)")),
        ("Columns", f"{len(report.attributes):,}"),
        ("Budget", f"ε = {facts['epsilon']:g}{_delta(facts)}"),
        ("Spent so far", _amount(facts["spent"], facts)),
        *([("Spent so far, as an ε", f"{facts['spent_epsilon']:.4g}")] if "spent_epsilon" in facts else []),
        ("Unit of protection", _unit(facts)),
        ("Charges to the budget", f"{len(report.charges):,}"),
        *[(name.replace("_", " ").capitalize(), _fact(facts[name])) for name in facts if name not in KNOWN],
    ]
    yield _table(("", ""), shown, "facts")
    yield '<table class="sign"><tr><td>Table and owner:</td><td>Date:</td></tr>'
    yield "<tr><td>Prepared by:</td><td>Reviewed by:</td></tr></table>"
    yield _html.paragraph(
        "Every number in this report is an estimate with noise, or follows from such estimates. No row of the table is "
        "in it."
    )


KNOWN = {
    "private", "epsilon", "delta", "neighbours", "rows_per_unit", "rows", "rows_estimated", "spent", "spent_of",
    "currency", "spent_epsilon", "draft_epsilon", "draft_delta",
}  # fmt: skip


def _question_sections(answers: Sequence[tuple[Any, int]], facts: dict[str, Any]) -> Iterable[str]:
    """Yield the questions and their answers, in groups of one kind."""
    if not answers:
        yield _html.paragraph("Nothing was asked yet.")
        return
    yield _html.paragraph(
        "Guaranteed errors hold for all answers of this report together, with the probability stated below. Typical "
        "errors are averages over similar questions and guarantee nothing. The form in which a question was asked is "
        "in small print."
    )
    models = [each for each in answers if each[0].query.is_convex]
    numbers = [each for each in answers if not each[0].query.is_convex and np.ndim(each[0].value) == 0]
    tables = [each for each in answers if not each[0].query.is_convex and np.ndim(each[0].value)]
    head = ("question", "answer", "guaranteed ±", "typical ±", "how")
    for name, of_counts in (("Counts and shares", True), ("Means and other statistics", False)):
        series, single = _series([each for each in numbers if _counts(each[0]) is of_counts])
        lines = [_line(answer, times, facts) for answer, times in single]
        if lines or series:
            yield f"<h3>{name}</h3>"
        if lines:
            yield _table(head, lines, "", numeric=(1, 2, 3))
        for said, by, same in series:
            shown = [(_html.text(label(value)), *_line(answer, times, facts)[1:]) for value, answer, times in same]
            yield f"<p>{_html.text(said)}</p>{_table((by, *head[1:]), shown, '', numeric=(1, 2, 3))}"
    for group, name in ((tables, "Tables"), (models, "Models")):
        if group:
            yield f"<h3>{name}</h3>"
        for answer, times in group:
            yield _cells(answer, times, facts)


def _series(numbers: Sequence[tuple[Any, int]]) -> tuple[list[tuple[str, str, list[Any]]], list[tuple[Any, int]]]:
    """Put questions together that differ only in the value of their last column, as the groups of a statement do.

    Returns the title, the column and the values with their answers of each series, and all other answers.
    """
    found: dict[Any, list[Any]] = {}
    for answer, times in numbers:
        query = answer.query
        count = (
            query if isinstance(query, Count) else getattr(query, "where", None) if isinstance(query, Mean) else None
        )
        *rest, (name, value) = count.predicates if isinstance(count, Count) and count.predicates else [("", ())]
        if isinstance(value, tuple | list | set | frozenset | np.ndarray | dict) or value is None:
            found[id(answer)] = [(None, answer, times)]
            continue
        fewer = Count(tuple(rest))
        said = f"rows{_where(fewer)}" if query is count else title(mean(query.attribute, where=fewer if rest else None))
        found.setdefault((f"{said[:1].upper()}{said[1:]}, by {name}", name), []).append((value, answer, times))
    series = [(*key, same) for key, same in found.items() if len(same) >= SERIES]
    single = [(answer, times) for same in found.values() if len(same) < SERIES for _, answer, times in same]
    return series, single


def _where(count: Count) -> str:
    return title(count).removeprefix("rows") if count.predicates else ""


def _line(answer: Any, times: int, facts: dict[str, Any]) -> tuple[Any, ...]:
    """Return one answer with one number as cells of a table."""
    as_share = _counts(answer) and abs(float(answer.value)) <= 1
    is_date = isinstance(answer.query, Mean | QuantileStatistic) and answer.query.attribute in facts.get(DATES, ())

    def show(number: Any) -> str:
        if number is None or not np.isfinite(number):
            return UNINFORMATIVE
        if is_date:
            return f"{float(number):.3g} days"
        return f"{100 * float(number):.3g} %" if as_share else few_digits(float(number), 5)

    value = date_of(answer.value).isoformat() if is_date else show(answer.value)
    typical = "–" if answer.typical is None else show(answer.typical)
    return _question(answer, times), value, show(answer.error), typical, _how(answer, facts)


def _cells(answer: Any, times: int, facts: dict[str, Any]) -> str:
    """Return an answer with many numbers as a table with a heading."""
    frame = answer.to_frame()
    # A model names the basis of each of its errors in a column of its own.
    names = {
        "error": "±" if answer.query.is_convex else "guaranteed ±",
        "typical": "typical ±",
        "basis": "the error is",
    }
    axes = [name for name, _ in answer.labels]
    head = [str(name) if name in axes else names.get(str(name), str(name)) for name in frame.columns]
    as_share = _counts(answer) and bool(np.nanmax(np.abs(np.asarray(answer.value, float)), initial=0.0) <= 1)

    def show(cell: Any) -> str:
        if not isinstance(cell, float):
            return _html.text(label(cell))
        if np.isnan(cell):
            return "–"
        if np.isinf(cell):
            return UNINFORMATIVE
        return f"{100 * cell:.3g} %" if as_share else f"{cell:,.4g}"

    lines = [[show(cell) for cell in row] for row in frame.head(SHOWN).itertuples(index=False)]
    if answer.query.is_convex:
        said = "excess risk not bounded" if answer.error is None else f"excess risk at most {float(answer.error):.3g}"
    else:
        said = unit(answer.query, not as_share)
    more = "" if len(frame) <= SHOWN else _html.paragraph(f"… and {len(frame) - SHOWN:,} more cells.")
    numeric = tuple(range(len(axes), len(head)))
    return f"<p>{_question(answer, times)}<br><small>{_html.text(said)} · {_how(answer, facts)}</small></p>" + (
        _table(head, lines, "", numeric=numeric) + more
    )


def _part_section(parts: Sequence[Any], facts: dict[str, Any]) -> Iterable[str]:
    """Yield the counts that other answers are composed of, which nobody asked for by themselves."""
    if not parts:
        return
    yield f"<details><summary>{len(parts):,} counts that these answers are composed of</summary>"
    yield _table(
        ("count", "answer", "guaranteed ±", "typical ±", "how"), [_line(part, 1, facts) for part in parts if not np.ndim(part.value)],
        "", numeric=(1, 2, 3),
    )  # fmt: skip
    yield "</details>"


def _cost_sections(report: Any) -> Iterable[str]:
    """Yield what the budget was spent on: by purpose, then charge by charge."""
    facts = report.facts
    if facts["currency"] == "rho":
        yield _html.paragraph(
            "Costs are in ρ, the currency of zero-concentrated differential privacy: costs in ρ add up, and "
            f"{facts['spent_of']:.4g} ρ make up the budget of ε = {facts['epsilon']:g}{_delta(facts)}. Beside each "
            "cost stands the ε that it would be worth alone, at the same δ, or a dash where ρ is its price in this "
            "budget only. These ε do not add up: together they make less."
        )
    purposes: dict[str, list[Any]] = {}
    for charge in report.charges:
        purposes.setdefault(_purpose(charge.why), []).append(charge)
    shown = [(_html.text(name), f"{len(some):,}", *_cost(some, facts)) for name, some in purposes.items()]
    names = _cost_names(facts)
    yield _table(("spent on", "charges", *names), shown, "", numeric=tuple(range(1, 2 + len(names))))
    named = any(charge.when for charge in report.charges)
    lines = [
        (
            *([f"<time>{_html.text(first.when)}</time>", _html.text(first.who or "opening")] if named else []),
            _html.text(first.why)
            + (f" × {len(same)}" if len(same) > 1 else "")
            + (f"<br><code>{_html.text(first.asked)}</code>" if first.asked else ""),
            _html.text(_noise([charge.noise for charge in same])),
            *_cost(same, facts),
        )
        for first, same in _alike(report.charges)
    ]
    head = (*(("when (UTC)", "who") if named else ()), "charge", "noise and its scale", *names)
    yield "<h3>Every charge, in order</h3>"
    yield _table(head, lines, "", numeric=tuple(range(len(head) - len(names), len(head))))


def _promise_sections(report: Any) -> Iterable[str]:
    """Yield the certificate, the columns, and the meaning of the terms."""
    yield _html.paragraph(_protection(report.facts))
    yield f"<h3>Certificate</h3>{_html.paragraph(report.certificate or NONE)}"
    lines = [(_html.text(name), _html.text(kind), f"{cells:,}") for name, kind, cells in report.attributes]
    yield f"<h3>Columns, as they were declared</h3>{_table(('column', 'kind', 'values'), lines, '', numeric=(2,))}"
    yield "<h3>Terms</h3>"
    yield _table(
        ("", ""),
        [
            ("ε", "The most that the answers can change the odds of any statement about one person: by a factor e^ε."),
            ("δ", "The probability with which that bound may fail. It is far below one divided by the number of rows."),
            ("ρ", "The currency in which charges are added up. ε follows from ρ and δ."),
            ("guaranteed error", "The truth is within this distance of the answer, for all answers together."),
            ("typical error", "The average distance of similar answers from the truth. It guarantees nothing."),
        ],
        "facts",
    )


def _distinct(answers: Sequence[Any]) -> list[tuple[Any, int]]:
    """Return each question once, with its last answer and the number of times it was asked."""
    found: dict[Any, list[Any]] = {}
    for answer in answers:
        value = np.asarray(answer.value)
        found.setdefault((answer.query, value.tobytes()), []).append(answer)
    return [(max(same, key=lambda answer: answer.cost), len(same)) for same in found.values()]


def _question(answer: Any, times: int) -> str:
    again = f" <small>(asked {times} times)</small>" if times > 1 else ""
    return f"{_html.text(sentence(answer.query))}{again}<br><code>{_html.text(repr(answer.query))}</code>"


def _how(answer: Any, facts: dict[str, Any]) -> str:
    """Return how an answer was found, and what it cost."""
    found = {"hypothesis": "from the model", "measured": "measured", "repeat": "repeated", "combined": "combined"}
    share = f"{answer.cost / facts['spent_of']:.1%} of the budget"
    cost = f"{answer.cost:.3g} {CURRENCIES[facts['currency']]}, {share}" if answer.cost else "free"
    return f"{found.get(answer.source, _html.text(answer.source))}, {cost}"


def _counts(answer: Any) -> bool:
    return unit(answer.query, False).startswith(("share", "number"))


def _alike(charges: Sequence[Any]) -> list[tuple[Any, list[Any]]]:
    """Put charges of one kind together that follow each other, each group after its first charge."""
    found: list[tuple[Any, list[Any]]] = []
    for charge in charges:
        kind = (charge.why, charge.asked, charge.who, charge.when)
        if found and kind == (found[-1][0].why, found[-1][0].asked, found[-1][0].who, found[-1][0].when):
            found[-1][1].append(charge)
        else:
            found.append((charge, [charge]))
    return found


def _noise(texts: Sequence[str]) -> str:
    """Describe the noise of some charges: its kind and the range of its scales."""
    found = [NOISE.search(text) for text in texts]
    if not all(found):
        return ", ".join(dict.fromkeys(text.partition("(")[0] for text in texts))
    kinds = ", ".join(dict.fromkeys(match[1] for match in found if match))
    scales = [float(match[2]) for match in found if match]
    low, high = f"{min(scales):.3g}", f"{max(scales):.3g}"
    return f"{kinds}, {low}" + ("" if low == high else f" to {high}")


def _purpose(why: str) -> str:
    first = why.partition(":")[0].split()[0] if why else ""
    return PURPOSES.get(first, why or "other")


def _cost_names(facts: dict[str, Any]) -> tuple[str, ...]:
    return ("ρ", "ε if alone", "of the budget") if facts["currency"] == "rho" else ("ε", "of the budget")


def _cost(charges: Sequence[Any], facts: dict[str, Any]) -> tuple[str, ...]:
    """Return the cost of some charges in its currency, as an ε of what is protected, and as a share of the budget.

    The price of an event at the budget's one Rényi order is no ρ, and no ε follows from it alone.
    """
    cost = sum(charge.cost for charge in charges)
    share = f"{cost / facts['spent_of']:.2%}"
    if facts["currency"] != "rho":
        return f"{cost:.4g}", share
    if any(name in AT_ONE_ORDER for charge in charges for name in KIND.findall(charge.noise)):
        return f"{cost:.4g}", "–", share
    alone = epsilon_of_rho(facts.get("rows_per_unit", 1) ** 2 * cost, facts["delta"])
    return f"{cost:.4g}", f"{min(alone, facts['epsilon']):.3g}", share


def _amount(cost: float, facts: dict[str, Any]) -> str:
    return f"{cost:.4g} of {facts['spent_of']:.4g} {CURRENCIES[facts['currency']]} ({cost / facts['spent_of']:.1%})"


def _delta(facts: dict[str, Any]) -> str:
    return f", δ = {facts['delta']:g}" if facts["delta"] else ""


def _unit(facts: dict[str, Any]) -> str:
    rows_per_unit = facts.get("rows_per_unit", 1)
    return "one row" if rows_per_unit == 1 else f"one person, with at most {rows_per_unit} rows"


def _protection(facts: dict[str, Any]) -> str:
    """Return what is protected, in a sentence."""
    rows_per_unit = facts.get("rows_per_unit", 1)
    who = "any one row" if rows_per_unit == 1 else f"any one person (at most {rows_per_unit} rows)"
    if facts["neighbours"] == "replace":
        return (
            f"Protected is the content of {who}: nobody who sees this report can tell much better than before what it "
            "says. The number of rows is public."
        )
    return (
        f"Protected is the presence of {who}: nobody who sees this report can tell much better than before whether it "
        "is in the table."
    )


def _fact(fact: Any) -> str:
    return f"{fact:.6g}" if isinstance(fact, float) else f"{fact:,}" if isinstance(fact, int) else _html.text(fact)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]], kind: str, numeric: Sequence[int] = ()) -> str:
    """Return a table of HTML cells, with the numeric columns to the right. An empty head is left out."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{' class=n' if i in numeric else ''}>{cell}</{tag}>" for i, cell in enumerate(row))

    top = f"<thead><tr>{cells('th', [_html.text(name) for name in head])}</tr></thead>" if any(head) else ""
    named = f' class="{kind}"' if kind else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in lines)
    return f"<table{named}>{top}<tbody>{body}</tbody></table>"
