"""Forms of offline releases in the document of a release file: "mwem" (also of small_db), "convex" and "matrix"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hedgerow._json import Json, fields, read_list, refuse
from hedgerow._types import Names
from hedgerow.convex.minimize import BoundMinimize, Minimize
from hedgerow.engine.offline_answers import ConvexReleaseEngine, ReleaseEngine
from hedgerow.engine.practical.measurement import Measurement, varying_names
from hedgerow.engine.public import PublicAnswers
from hedgerow.errors import InvalidInput
from hedgerow.privacy.events import Gaussian
from hedgerow.release_file.values import (
    are_ordinary,
    read_attributes,
    read_count,
    read_hypothesis,
    read_positive,
    read_query,
    require_measurement,
    write_hypothesis,
)
from hedgerow.serialize import decode, encode, question_of
from hedgerow.serialize.values import read_array, write_array, write_names, write_number
from hedgerow.universe.universe import Universe, subsets


def write_offline(public: ReleaseEngine) -> dict[str, Json]:
    """Return the state of an offline release as JSON."""
    from hedgerow.engine.matrix_answers import MatrixEngine

    if type(public) is ReleaseEngine:
        return {
            "profile": "mwem",
            "hypothesis": write_hypothesis(public.hypothesis),
            "rows": write_number("rows", public.rows),
            "error": write_number("error", public.error),
            "promised": [encode(query) for query in public.promised.values()],
        }
    if type(public) is ConvexReleaseEngine:
        return {
            "profile": "convex",
            "hypothesis": write_hypothesis(public.hypothesis),
            "rows": write_number("rows", public.rows),
            "error": None if public.alpha is None else write_number("error", public.alpha),
            "losses": [[_write_question(question), write_array(theta)] for question, theta in public.found],
        }
    if type(public) is MatrixEngine:
        plan = public.plan
        return {
            "profile": "matrix",
            "rows": plan.rows,
            "beta": write_number("beta", plan.beta),
            "measurements": [encode(measurement) for measurement in public.measurements],
            "tables": [write_names("A name", names) for names in plan.tables],
            "queries": [encode(query) for query in plan.queries],
        }
    raise InvalidInput(f"A release must be of a known method. Found {type(public).__name__}. Publish another.")


def _write_question(question: BoundMinimize) -> Json:
    """Return the JSON form of a declared question, whose loss is the package's own."""
    asked = question_of(question)
    if asked is None:
        raise InvalidInput("A declared loss must be one of hedgerow.losses to be published. Found a function. Drop it.")
    return encode(asked[0])


# Reading: called within ``container.one_error`` and a memory limit.


def read_loss(universe: Universe, record: Json, theta: Json) -> tuple[BoundMinimize, np.ndarray[Any, Any]]:
    """Read a convex question with its parameters; refuse parameters that do not fit it."""
    question = decode("a convex question", record, Minimize).on(universe)
    found = read_array(theta, "float64")
    if found.size != question.risk.dimension or not are_ordinary(found):
        refuse("The parameters of a loss", f"{question.risk.dimension} ordinary numbers", f"{found.size} numbers")
    return question, found


def _read_mwem(universe: Universe, record: Json, _: int | None) -> ReleaseEngine:
    _, hypothesis, rows, error, promised = fields(record, "profile", "hypothesis", "rows", "error", "promised")
    queries = [read_query(universe, query) for query in read_list("promised", promised)]
    return ReleaseEngine(
        read_hypothesis(universe, hypothesis), max(1.0, read_positive("rows", rows)), read_positive("error", error),
        {query.key: query for query in queries},
    )  # fmt: skip


def _read_convex(universe: Universe, record: Json, _: int | None) -> ConvexReleaseEngine:
    """Read the release of a list of convex questions."""
    _, hypothesis, rows, error, losses = fields(record, "profile", "hypothesis", "rows", "error", "losses")
    found = []
    for pair in read_list("losses", losses):
        if type(pair) is not list or len(pair) != 2:
            refuse("A declared loss", "a question and its parameters", pair)
        found.append(read_loss(universe, *pair))
    return ConvexReleaseEngine(
        read_hypothesis(universe, hypothesis),
        max(1.0, read_positive("rows", rows)),
        None if error is None else read_positive("error", error),
        found,
    )


def _read_matrix(universe: Universe, record: Json, public_rows: int | None) -> PublicAnswers:
    """Read the release of a factorization: its residuals and the workload that they answer."""
    from hedgerow.engine.matrix_answers import MatrixEngine, MatrixPlan

    _, rows, beta, measurements, tables, queries = fields(
        record, "profile", "rows", "beta", "measurements", "tables", "queries"
    )
    if public_rows is None or read_count("rows", rows) != public_rows:
        refuse("rows", "those of the block, and public", rows)
    measured = [decode("a measurement", each, Measurement) for each in read_list("measurements", measurements)]
    for each in measured:
        require_measurement(universe, universe, each, list(range(each.values.ndim)))
        if not each.residual or each.ranged or each.rounding or not isinstance(each.event, Gaussian):
            refuse("A measurement of a factorization", "a residual with Gaussian noise", "another")
    sets = tuple(each.attributes for each in measured)
    asked = tuple(read_attributes(universe, names) for names in read_list("tables", tables))
    others = tuple(read_query(universe, query) for query in read_list("queries", queries))
    _require_closed(universe, sets, [*asked, *(query.attributes for query in others)])
    promised = sum(map(universe.cells, asked)) + len(others)
    beta = read_positive("beta", beta, 1.0)
    if not 0 < beta < 1 or not promised > 0:
        refuse("A workload", "of some numbers, with a beta between 0 and 1", beta)
    events = tuple(each.event for each in measured if isinstance(each.event, Gaussian))
    plan = MatrixPlan(universe, public_rows, beta, sets, events, promised, asked, others)
    return MatrixEngine(plan, measured)


def _require_closed(universe: Universe, sets: tuple[Names, ...], asked: list[Names]) -> None:
    """Refuse residuals that lack one below another, or below a table of the workload: an estimate needs all of them."""
    known = set(sets)
    if len(known) != len(sets) or () in known or list(sets) != sorted(sets, key=lambda names: (len(names), names)):
        refuse("The residuals of a factorization", "different, in order", "others")
    for names in {*sets, *(varying_names(universe, each) for each in asked)}:
        if 2 ** len(names) - 1 > len(sets) or not all(s in known for s in subsets(names) if s):
            refuse("The residuals of a factorization", "all that its tables need", "fewer")


OFFLINE: dict[str, Callable[[Universe, Json, int | None], PublicAnswers]] = {
    "mwem": _read_mwem,
    "convex": _read_convex,
    "matrix": _read_matrix,
}
"""Readers of offline releases, by the name of their form."""
