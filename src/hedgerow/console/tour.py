"""The tour: five steps on the bundled table, from a question to the end of the budget.

The bundled table is public, so the tour may show true values and true errors. They are computed from the file of the
package, never from a session's table. Answers and refusals are those of the service.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from starlette.responses import Response

import hedgerow as hr
from hedgerow import demo, serialize
from hedgerow.answer import Answer
from hedgerow.console import bars, wording
from hedgerow.console.analysts import answers
from hedgerow.console.page_request import PageRequest
from hedgerow.data import Table
from hedgerow.display import titles
from hedgerow.privacy.noise import Noise
from hedgerow.query.counts import Query
from hedgerow.research.stories.false_discovery import Discovery, false_discovery
from hedgerow.server.problems import Refusal, not_found
from hedgerow.unsafe import unsafe_answer

NAME = "demo"
TITLES = ("A question", "The thousandth", "The picture", "A false discovery", "The end of the budget")
QUESTIONS = 1_000
ROWS, FEATURES = 5_000, 1_000  # of the false discovery
SMALLEST = 5e-5  # an error that no budget of the demo pays for
FIRST = demo.SHOWN[1]


@dataclass(frozen=True)
class ManyQuestions:
    """Many questions about the bundled table with their true answers."""

    queries: tuple[Query, ...]
    truth: Any


async def show(asked: PageRequest) -> Response:
    """Show a step."""
    served = asked.application.service.datasets.get(NAME)
    if served is None or not asked.visit.token.may_use(NAME) or served.session.universe != demo.universe():
        raise not_found()
    asked.dataset = NAME
    given = dict(asked.pairs).get("step", "1")
    step = int(given) if given in ("1", "2", "3", "4", "5") else 1
    facts = await (_question, _thousandth, _picture, _discovery, _end)[step - 1](asked)
    return asked.page("tour.html", step=step, titles=TITLES, **facts)


async def chart(asked: PageRequest) -> Response:
    """Return the picture of errors, as an SVG."""
    if asked.application.service.datasets.get(NAME) is None or not asked.visit.token.may_use(NAME):
        raise not_found()
    asked.dataset = NAME
    asking, off, _ = await _ask_many(asked)
    session = asked.application.service.datasets[NAME].session
    drawn = await asyncio.to_thread(demo.chart, session.budget, session.rows, np.maximum(off, 1e-6), asking.truth)
    return Response(drawn, media_type="image/svg+xml")


async def _question(asked: PageRequest) -> dict[str, Any]:
    """Return one question with its bar and, because the table is public, the truth."""
    (answer,) = await answers(asked, [FIRST], "fraction")
    (panel,) = bars.panels(answer, "share", whole="answer")
    truth = (await asyncio.to_thread(_truth_of, FIRST))[0]
    return {
        "panel": panel,
        "title": titles.sentence(FIRST),
        "truth": wording.number(truth, "share", panel.bars[0].value / 100),
    }


async def _ask_many(asked: PageRequest) -> tuple[ManyQuestions, Any, list[Answer]]:
    """Ask many questions, and return the true error of each answer."""
    asking = await asyncio.to_thread(_questions)
    found = await answers(asked, asking.queries, "fraction")
    return asking, np.abs(np.array([float(answer) for answer in found]) - asking.truth), found


async def _thousandth(asked: PageRequest) -> dict[str, Any]:
    """Return the errors of the first and of the last hundred of a thousand answers, and what they cost."""
    asking, off, found = await _ask_many(asked)
    lines = []
    for name, part in (("first hundred", slice(0, 100)), ("last hundred", slice(-100, None))):
        lines.append(
            (
                name,
                wording.number(float(off[part].mean()), "points", 0.0003),
                wording.number(float(off[part].max()), "points", 0.0003),
            )
        )
    return {
        "lines": lines, "count": len(found), "cost": sum(answer.cost for answer in found),
        "last": titles.sentence(asking.queries[-1]), "panel": bars.panels(found[-1], "share", whole="answer")[0],
    }  # fmt: skip


async def _picture(asked: PageRequest) -> dict[str, Any]:
    return {"count": QUESTIONS}


async def _discovery(asked: PageRequest) -> dict[str, Any]:
    """Return the claims made by a vote of features without information."""
    found = await asyncio.to_thread(_coins)
    claims = zip(found.voters, found.naive, [*found.scores, *[None] * len(found.voters)], strict=False)
    return {
        "claims": [
            (k, wording.number(naive, "share", 0.01), None if score is None else wording.number(score.value, "share", 0.01), round(100 * naive, 2), None if score is None else round(100 * score.value, 2))
            for k, naive, score in claims
        ],
        "features": FEATURES,
    }  # fmt: skip


async def _end(asked: PageRequest) -> dict[str, Any]:
    """Return the refusal of a purchase that the whole budget would not cover, and the free answer that remains."""
    body = {"question": serialize.to_json(FIRST), "within": SMALLEST}
    quote = await asked.call("price", body=body)
    budget = asked.application.service.datasets[NAME].session.budget
    detail = ""
    if quote["cost"] > budget.total:  # else it might be sold
        try:
            await asked.call("ask", body=body)
        except Refusal as refused:
            detail = refused.detail
    (answer,) = await answers(asked, [FIRST], "fraction")
    return {
        "detail": detail, "cost": wording.amount(quote["cost"], quote["currency"]),
        "total": wording.amount(budget.total, quote["currency"]), "title": titles.sentence(FIRST),
        "panel": bars.panels(answer, "share", whole="answer")[0], "within": wording.number(SMALLEST, "points", SMALLEST),
    }  # fmt: skip


def _truth_of(*queries: Query) -> Any:
    """Return true answers about the bundled table, which is public."""
    table = Table(demo.path(), demo.universe())
    return np.array([float(unsafe_answer(table, query)) for query in queries])


@cache
def _questions() -> ManyQuestions:
    queries = tuple(demo.questions(QUESTIONS, Noise().generator()))
    return ManyQuestions(queries, _truth_of(*queries))


@cache
def _coins() -> Discovery:
    return false_discovery(
        budget=hr.Budget(1.0, 0.0), rng=Noise().generator(), voters=(20, 50, 100, 200), rows=ROWS, features=FEATURES
    )
