"""The page of models: coefficients with intervals, the risk and its baseline, predicted and observed shares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from hedgerow.console import recipes, wording
from hedgerow.console.analysts import read_place
from hedgerow.console.exploration import numeric_columns
from hedgerow.console.page_request import PageRequest
from hedgerow.server.problems import Refusal

LOSSES = {
    "Logistic": "logistic: yes or no",
    "Squared": "linear: a number",
    "Huber": "robust linear",
    "Absolute": "median",
    "Poisson": "Poisson: events",
    "Hinge": "classifier (SVM)",
}
SETS = {"L2Ball": "ball", "L1Ball": "ball by sums", "Box": "box"}
BASES = {
    "guaranteed": "The errors are guaranteed, together with those of all other answers.",
    "bootstrap": "The errors are estimates: 95 % for each coefficient alone, from the noise of what was released.",
}
LEAST_GAIN = 0.0005  # part of the baseline's risk below which a model says about as much as none
RADIUS = re.compile(r"\d{1,4}(\.\d{1,4})?")


async def models(asked: PageRequest) -> Response:
    """Fit a model by the names of its columns, and show its coefficients and how it agrees with the hypothesis."""
    given = asked.pairs
    chosen, names = dict(given), list(asked.universe.names)
    numbers = set(numeric_columns(asked.universe))
    target = read_place(chosen.get("target"), len(names), -1)
    features = [read_place(value, len(names), 0) for name, value in given if name == "feature"]
    loss, over = chosen.get("loss", "Logistic"), chosen.get("over", "L2Ball")
    record, fault, recipe = None, "", []
    if target >= 0 and features:
        body = {
            "loss": loss, "target": names[target], "features": [names[k] for k in features if k != target], "over": over,
            "radius": float(chosen["radius"]) if RADIUS.fullmatch(chosen.get("radius", "")) else 5.0,
        }  # fmt: skip
        try:
            record = await asked.call("fit", body=body)
            recipe = recipes.of_questions(asked, [record["question"]])
        except Refusal as refused:
            fault = refused.detail
    return asked.page(
        "models.html", names=[(k, name, name in numbers) for k, name in enumerate(names)], target=target, features=features,
        loss=loss, losses=LOSSES, over=over, sets=SETS, record=record, fault=fault, recipes=recipe, radius=chosen.get("radius", "5"),
        lines=[] if record is None else [_coefficient(line) for line in record["coefficients"]],
        risk=None if record is None or record["answer"]["error"] is None else f"{record['answer']['error']:.3g}",
        judged=None if record is None else _judgement(record["judgement"]),
        target_name=wording.short(names[target]) if target >= 0 else "",
    )  # fmt: skip


def _coefficient(line: Mapping[str, Any]) -> dict[str, str]:
    """Return one line of the table of coefficients as texts."""
    names = [wording.short(part) for name, part in line.items() if name not in ("value", "error", "basis")]
    error = line.get("error")
    return {
        "name": " · ".join(names),
        "value": wording.number(line["value"], "mean", error or abs(line["value"]) / 100 or None),
        "error": "not bounded" if error is None else f"± {wording.number(error, 'mean', error)}",
        "basis": "" if error is None else BASES.get(str(line.get("basis")), str(line.get("basis"))),
    }


def _judgement(judged: Mapping[str, Any]) -> dict[str, Any]:
    """Return the risks as texts, and groups of records with their places in a picture."""
    measure = "share" if judged["unit"] == "share" else "mean"
    groups: Sequence[Mapping[str, float]] = judged["groups"]
    ends = [each[name] for each in groups for name in ("predicted", "observed")]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    room = (high - low) or 1.0
    error = room / 100
    return {
        "risk": f"{judged['risk']:.4g}",
        "baseline": f"{judged['baseline']:.4g}",
        "is_better": (judged["gain"] or 0) > LEAST_GAIN,
        "gain": wording.percent(judged["gain"] or 0),
        "low": wording.number(low, measure, error),
        "high": wording.number(high, measure, error),
        "groups": [
            {
                "share": wording.percent(each["share"]),
                "predicted": wording.number(each["predicted"], measure, error),
                "observed": wording.number(each["observed"], measure, error),
                "x": round(4 + 92 * (each["predicted"] - low) / room, 2),
                "y": round(4 + 92 * (each["observed"] - low) / room, 2),
            }
            for each in groups
        ],
    }
