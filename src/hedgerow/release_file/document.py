"""The document of a release file: a publication as JSON, and back, with every field checked (docs/release-file.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hedgerow._json import Json, fields, read_list, read_text, refuse
from hedgerow._memory import MODEL, require, require_values
from hedgerow.answering.answers_on_record import RecordedAnswer
from hedgerow.engine.offline_answers import ReleaseEngine
from hedgerow.engine.practical.fit.interactions import RELATIVE
from hedgerow.engine.practical.measurement import Measurement
from hedgerow.engine.practical.public import PracticalAnswers, practical_state, restore_practical
from hedgerow.engine.public import PublicAnswers
from hedgerow.engine.theory_answers import TheoryAnswers
from hedgerow.errors import InvalidInput
from hedgerow.model.junction_tree import junction_cells
from hedgerow.privacy.budget import Budget
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.counts import BoundMarginal
from hedgerow.query.linear import Linear
from hedgerow.release_file.offline import OFFLINE, read_loss, write_offline
from hedgerow.release_file.publication import Publication, PublishedBlock
from hedgerow.release_file.values import (
    LARGEST,
    read_attributes,
    read_count,
    read_hypothesis,
    read_positive,
    read_query,
    read_table,
    require_measurement,
    write_hypothesis,
)
from hedgerow.report import Charge
from hedgerow.serialize import AnsweredQuestion, bound_question, decode, decode_state, encode, encode_state, question_of
from hedgerow.serialize.values import (
    read_array,
    read_flag,
    read_number,
    read_whole,
    write_array,
    write_number,
    write_text,
)
from hedgerow.universe.attributes import Integers
from hedgerow.universe.universe import Universe

MOST_NUMBERS = 1_000_000  # most released numbers that are not counts
MOST_BITS = 1_000  # a step of a certificate is at least 2^-1000 rows and at most 2^1000


# Writing


def write_document(published: Publication) -> dict[str, Json]:
    """Return a publication as JSON."""
    return {
        "hedgerow": write_text("version", published.version),
        "universe": encode(published.universe),
        "private": published.private,
        "blocks": [_write_block(block) for block in published.blocks],
        "answers": _write_answers(published.answers),
        "numbers_given": published.numbers_given,
        "statement": published.statement,
    }


def _write_block(block: PublishedBlock) -> dict[str, Json]:
    """Return the JSON form of a published block."""
    public = block.budget.neighbours == "replace"
    return {
        "name": write_text("name", block.name),
        "budget": encode(block.budget),
        "spent": write_number("spent", block.spent),
        "spent_epsilon": write_number("spent_epsilon", block.spent_epsilon),
        "beta": write_number("beta", block.beta),
        "rows": round(block.public.rows) if public else None,
        "guarded": block.guarded,
        "public": _write_public(block.public),
        "charges": [[c.why, c.asked, c.noise, write_number("cost", c.cost)] for c in block.charges],
        "answers": _write_answers(block.answers),
        "ledger": {"entries": block.entries, "head": block.head},
    }


def _write_answers(answers: Sequence[RecordedAnswer]) -> Json:
    """Return the answers as JSON; a question with functions of the user has no JSON form and is left out."""
    found = []
    for each in answers:
        asked = question_of(each.bound)
        if asked is not None:
            found.append([write_number("cost", each.cost), encode(AnsweredQuestion(asked[0], each.estimate, asked[1]))])
    return found


def _write_public(public: PublicAnswers) -> Json:
    """Return the JSON form of the public part of an engine, by its profile."""
    match public:
        case PracticalAnswers():
            return _write_practical(public)
        case TheoryAnswers():
            return {
                "profile": "theory",
                "hypothesis": write_hypothesis(public.hypothesis),
                "rows": write_number("rows", public.rows),
                "doubt": write_number("doubt", public.doubt),
            }
        case ReleaseEngine():
            return write_offline(public)
    raise InvalidInput(
        f"What is published must be of a known profile. Found {type(public).__name__}. Publish a session of hr.open or "
        "hr.release."
    )


def _write_practical(public: PracticalAnswers) -> Json:
    """Return the state of the practical profile; a loss with functions of the user has no JSON form and is left out."""
    state = practical_state(public)
    losses = []
    for question, theta, bar in state.pop("losses"):
        asked = question_of(question)
        if asked is not None:
            losses.append([encode(asked[0]), write_array(theta), write_number("bar", bar)])
    return {"profile": "practical", **encode_state(state), "losses": losses}


# Reading: called within ``container.one_error`` and a memory limit.


def read_document(record: Json) -> Publication:
    """Rebuild a publication; refuse a record that is not what ``write_document`` writes."""
    version, universe_record, private, blocks, answers, given, statement = fields(
        record, "hedgerow", "universe", "private", "blocks", "answers", "numbers_given", "statement"
    )
    universe = decode("a universe", universe_record, Universe)
    require_values(dict(zip(universe.names, universe.shape, strict=True)))
    found = tuple(_read_block(universe, block) for block in read_list("blocks", blocks))
    names = [block.name for block in found]
    if not found or len(set(names)) != len(names):
        refuse("blocks", "at least one, of different names", len(names))
    if len({(block.budget.neighbours, block.budget.pure, block.budget.rows_per_unit) for block in found}) > 1:
        refuse("The budgets of all blocks", "of one kind", "several")
    if not isinstance(statement, dict):
        refuse("statement", "an object", statement)
    return Publication(
        universe,
        read_flag("private", private),
        found,
        _read_answers(universe, answers),
        read_count("numbers_given", given),
        statement,
        read_text("hedgerow", version),
    )


def _read_block(universe: Universe, record: Json) -> PublishedBlock:
    """Read a published block, and check each of its fields."""
    name, budget, spent, spent_epsilon, beta, rows, guarded, public, charges, answers, ledger = fields(
        record, "name", "budget", "spent", "spent_epsilon", "beta", "rows", "guarded", "public", "charges", "answers",
        "ledger",
    )  # fmt: skip
    promised = decode("a budget", budget, Budget)
    read_positive("epsilon", promised.epsilon)
    entries, head = fields(ledger, "entries", "head")
    if (rows is None) != (promised.neighbours != "replace"):
        refuse("rows", "a number where it is public, and null where it is private", rows)
    known = None if rows is None else max(1, read_count("rows", rows, 2**53))
    return PublishedBlock(
        read_text("name", name),
        promised,
        read_positive("spent", spent),
        read_positive("spent_epsilon", spent_epsilon),
        read_positive("beta", beta, 1.0),
        _read_public(universe, public, known),
        read_flag("guarded", guarded),
        tuple(_read_charge(charge) for charge in read_list("charges", charges)),
        _read_answers(universe, answers),
        read_count("entries", entries),
        None if head is None else read_text("head", head),
    )


def _read_charge(record: Json) -> Charge:
    if type(record) is not list or len(record) != 4:
        refuse("A charge", "a purpose, a question, a noise and a cost", record)
    why, asked, noise, cost = record
    return Charge(
        read_text("why", why), read_text("asked", asked), read_text("noise", noise), read_positive("cost", cost)
    )


def _read_answers(universe: Universe, record: Json) -> tuple[RecordedAnswer, ...]:
    """Read recorded answers with their costs."""
    found = []
    for pair in read_list("answers", record):
        if type(pair) is not list or len(pair) != 2:
            refuse("An answer", "a cost and an answered question", pair)
        answered = decode("an answer", pair[1], AnsweredQuestion)
        bound = bound_question(answered.question, universe, answered.resolution)
        found.append(
            RecordedAnswer(bound, check_estimate(universe, bound, answered.estimate), read_positive("cost", pair[0]))
        )
    return tuple(found)


def check_estimate(universe: Universe, bound: Bound[Any], estimate: Estimate) -> Estimate:
    """Refuse an estimate whose shape does not fit its question, or whose numbers are not finite."""
    value, shape = np.asarray(estimate.value), np.shape(estimate.value)
    numbers = value.dtype.kind in "iuf" and not np.isnan(value).any()
    if not numbers or (bound.is_fraction and np.isinf(value).any()):  # a ratio may be infinite
        refuse("The value of an answer", "numbers, and finite if it is a fraction", "others")
    wanted = () if isinstance(bound, Linear) else universe.sizes(bound.attributes) if isinstance(bound, BoundMarginal) else shape  # fmt: skip
    for part in (estimate.error, estimate.typical, estimate.resolution):
        if part is not None and (np.shape(part) not in ((), shape) or not np.all(np.asarray(part) >= 0)):
            refuse("The bar of an answer", "at least 0, one for each cell", "another")
    for part in (estimate.lower, estimate.upper, estimate.coefficients):
        if part is not None and (np.shape(part) not in ((), shape) or np.isnan(np.asarray(part, float)).any()):
            refuse("The ends of an answer", "numbers, one for each cell", "others")
    if shape != wanted:
        refuse("The value of an answer", f"of shape {wanted}", f"shape {shape}")
    return estimate


def _read_public(universe: Universe, record: Json, rows: int | None) -> PublicAnswers:
    """Read the public part of an engine, by its profile."""
    readers: dict[str, Callable[[Universe, Json, int | None], PublicAnswers]] = {
        "practical": _read_practical,
        "theory": _read_theory,
        **OFFLINE,
    }
    profile = record.get("profile") if isinstance(record, dict) else None
    if profile not in readers:
        refuse("profile", "one of " + ", ".join(readers), profile)
    return readers[profile](universe, record, rows)


def _read_theory(universe: Universe, record: Json, _: int | None) -> TheoryAnswers:
    _, hypothesis, rows, doubt = fields(record, "profile", "hypothesis", "rows", "doubt")
    return TheoryAnswers(
        read_hypothesis(universe, hypothesis), max(1.0, read_positive("rows", rows)), read_positive("doubt", doubt)
    )


def _read_practical(universe: Universe, record: Json, rows: int | None) -> PracticalAnswers:
    """Read the public part of an engine of the practical profile."""
    _, learned, opening, certified, losses, beta, shares = fields(
        record, "profile", "learned", "opening", "certified", "losses", "beta", "shares"
    )
    _require_learned(universe, learned)
    if opening is not None:
        _require_learned(universe, opening)
    if certified is not None:
        _require_certified(certified)
    read_positive("beta", beta, 1.0)
    counts = [read_count("shares", share, MOST_NUMBERS) for share in read_list("shares", shares)]
    if counts != sorted(counts) or len(counts) > MOST_NUMBERS:
        refuse("shares", "whole numbers that grow", "others")
    answers = []
    for loss in read_list("losses", losses):
        if type(loss) is not list or len(loss) != 3:
            refuse("A certified loss", "a question, its parameters and its bar", loss)
        answers.append((*read_loss(universe, loss[0], loss[1]), read_positive("bar", loss[2])))
    state = {name: decode_state(part) for name, part in record.items() if name not in ("profile", "losses")}
    return restore_practical(universe, {**state, "losses": answers}, rows)


def _require_learned(universe: Universe, record: Json) -> None:
    """Refuse what was learned if its tables do not fit the universe and one another, or the memory limit."""
    if isinstance(record, dict):
        record = {"interactions": None, "factors": None, **record}  # older files lack them
    merging, measurements, layouts, sets, queries, theta, priors, overview, interactions, factors = fields(
        record,
        *("merging", "measurements", "layouts", "sets", "queries", "theta", "priors", "overview", "interactions"),
        "factors",
    )
    groups = _require_merging(universe, merging)
    measured = read_list("measurements", measurements)
    if len(read_list("layouts", layouts)) != len(measured):
        refuse("layouts", "one for each measurement", len(layouts))
    for each, axes in zip(measured, layouts, strict=True):
        require_measurement(universe, groups, decode("a measurement", each, Measurement), axes)
    tables = [read_attributes(groups, names) for names in read_list("sets", sets)]
    asked = [read_query(groups, query) for query in read_list("queries", queries)]
    if len(set(tables)) != len(tables) or len({query.key for query in asked}) != len(asked):
        refuse("The tables and queries of a model", "different", "the same twice")
    if tables != sorted(tables, key=lambda names: (len(names), names)):
        refuse("The tables of a model", "in order", "another order")
    if not {name for query in asked for name in query.attributes} <= {name for names in tables for name in names}:
        refuse("The queries of a model", "about attributes of its tables", "others")
    shapes = [groups.sizes(names) for names in tables] + [()] * len(asked)
    require("The model of a release file", sum(map(math.prod, shapes)), MODEL, "Raise limit=")
    spans = [*tables, *(query.attributes for query in asked)]
    require("The model of a release file", junction_cells(groups, spans) if spans else 0, MODEL, "Raise limit=")
    read_table("theta", theta, (sum(map(math.prod, shapes)),))
    if len(read_list("priors", priors)) != len(shapes):
        refuse("priors", "one for each table and query", len(priors))
    for prior, shape in zip(priors, shapes, strict=True):
        read_table("A prior", prior, shape)
    read_count("overview", overview, len(measured))
    if interactions is not None:
        # Without factors, the weights are those of an earlier fit, which knew of no empty cells.
        weights = read_table("interactions", interactions, (len(RELATIVE) + (factors is not None),))
        if (weights < 0).any() or not np.isclose(weights.sum(), 1.0):
            refuse("interactions", "weights that add up to 1", "others")
    if factors is not None:
        _require_factors(sum(groups.shape), factors)


def _require_factors(values: int, record: Json) -> None:
    """Refuse common factors that are not of this number of values."""
    vectors, signs, kept = fields(record, "vectors", "signs", "kept")
    directions = read_array(signs, "float64")
    if directions.ndim != 1 or directions.size > values or not np.isin(directions, (-1.0, 1.0)).all():
        refuse("signs", "-1 or 1 for each direction", "others")
    read_table("vectors", vectors, (values, directions.size))
    shares = read_table("kept", kept, (values,))
    if (shares < 0).any() or (shares > 1 + 1e-6).any():
        refuse("kept", "shares between 0 and 1", "others")


def _require_merging(universe: Universe, record: Json) -> Universe:
    """Refuse groups that do not divide the values of their attribute; return the universe of groups."""
    if not isinstance(record, dict) or not set(record) <= set(universe.names):
        refuse("merging", "groups of attributes of the universe", record)
    attributes = {name: universe[name] for name in universe.names}
    for name, each in record.items():
        if type(each) is not list or len(each) != 2:
            refuse("merging", "groups and shares", each)
        size = universe[name].size
        group = read_array(each[0], "int64")
        shares = read_table("shares", each[1], (size,))
        if (
            group.shape != (size,)
            or (shares < 0).any()
            or not (group.min() >= 0 and group.max() < size)
            or not np.bincount(group).all()
        ):
            refuse("merging", "a group for each value, numbered from 0", "another")
        if not np.allclose(np.bincount(group, shares), 1.0, atol=1e-6):
            refuse("shares", "parts that add up to 1 in each group", "others")
        attributes[name] = Integers(0, int(group.max()))
    return Universe(attributes)


def _require_certified(record: Json) -> None:
    """Refuse the numbers of a certificate that are of the wrong type."""
    of_means = "means" if "means" in record else "sums"  # "means" in files of older versions
    margin, bits, anything, rounding, typical, means, stated, beta_of_rows = fields(
        record, "margin", "bits", "anything", "rounding", "typical", of_means, "stated", "beta_of_rows"
    )
    if not abs(read_number("margin", margin)) <= LARGEST:
        refuse("margin", f"at most {LARGEST:g} in size", margin)
    if not -MOST_BITS <= read_whole("bits", bits) <= MOST_BITS:
        refuse("bits", f"at most {MOST_BITS} in size", bits)
    for pair in read_list("anything", anything):
        if type(pair) is not list or len(pair) != 2:
            refuse("anything", "pairs of a size and a bound", pair)
        read_count("size", pair[0])
        read_positive("bound", pair[1])
    for number in (*read_list("rounding", rounding), *([] if typical is None else [typical])):
        read_positive("A bound of a certificate", number)
    if means is not None and not abs(read_number("A bound of means", means)) <= LARGEST:
        refuse("A bound of means", f"at most {LARGEST:g} in size", means)
    for limit in read_list("stated", stated):
        if type(limit) is not list or len(limit) != 6 or limit[0] not in ("products", "any", "means"):
            refuse("stated", "limits of a certificate", limit)
        for name, number in zip(("size", "sets", "of"), (limit[1], limit[3], limit[4]), strict=True):
            read_count(name, number)
        read_positive("bar", limit[2])
        read_positive("beta", limit[5], 1.0)
    if len({(limit[0], limit[1]) for limit in stated}) < len(stated):
        refuse("stated", "limits of different classes and sizes", "the same twice")
    read_positive("beta_of_rows", beta_of_rows, 1.0)
