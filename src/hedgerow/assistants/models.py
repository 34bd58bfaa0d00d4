"""The tools fit_model and score_on_holdout. A model is data: its family, its columns and its coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow._json import canonical
from hedgerow.answer import Answer
from hedgerow.assistants.arguments import Schema, arguments_schema, column_list
from hedgerow.assistants.asking import read_question
from hedgerow.assistants.desk import AssistantDesk
from hedgerow.assistants.holdout import metric_of_family
from hedgerow.assistants.quoting import column_words, quote_label
from hedgerow.assistants.results import outward, plain_number
from hedgerow.assistants.tool import Tool, ToolCall, ToolResult
from hedgerow.convex.bound_loss import GlmRisk
from hedgerow.errors import InvalidInput
from hedgerow.query.bound import GUARANTEED
from hedgerow.universe.universe import Universe

MODELS = {  # families by name, and the loss of each
    "linear": "Squared",
    "logistic": "Logistic",
    "multinomial": "MultinomialLogistic",
    "svm": "Hinge",
    "huber": "Huber",
    "quantile": "Pinball",
    "poisson": "Poisson",
}
MOST_FEATURES = 20  # columns of one model
MOST_COEFFICIENTS = 600


def loss_of(about: Mapping[str, Any]) -> Any:
    """Return the loss that a description of a model names."""
    given: dict[str, Any] = {"target": about["target"], "features": list(about["features"])}
    if about.get("where") is not None:
        given["where"] = read_question(about["where"])
    if about["family"] == "quantile":
        given["quantile"] = float(about.get("quantile", 0.5))
    return getattr(hr.losses, MODELS[about["family"]])(**given)


def risk_of(universe: Universe, about: Mapping[str, Any]) -> GlmRisk:
    """Return the loss that a description of a model means on this universe."""
    risk: GlmRisk = loss_of(about).on(universe)
    if risk.dimension > MOST_COEFFICIENTS:
        raise InvalidInput(
            f"A model must have at most {MOST_COEFFICIENTS} coefficients. Found {risk.dimension}. Name fewer columns."
        )
    return risk


def family_for(universe: Universe, target: str) -> str:
    """Return the family that suits a target: logistic for two values, linear for numbers, else multinomial."""
    declared = universe[target]
    if declared.size == 2 and (declared.is_truth or declared.values is None):
        return "logistic"
    return "linear" if declared.values is not None and declared.ordered else "multinomial"


def fit_model(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Fit a model on what was released. It is free."""
    view, given = desk.view, dict(call.arguments)
    _require_target(view.universe, given)
    given["family"] = given.get("family") or family_for(view.universe, given["target"])
    risk = risk_of(view.universe, given)
    call.require_wanted()
    answer: Answer = view.ask(hr.minimize(loss_of(given), over=hr.L2Ball(float(given["radius"]))))
    names = risk.features.feature_names
    desk.numbers += int(np.size(answer.value))
    model: dict[str, Any] = {
        name: given[name] for name in ("family", "target", "features", "where", "quantile") if name in given
    }
    model["coefficients"] = coefficients_record(np.asarray(answer.value), risk)
    guaranteed = answer.coefficient_basis == GUARANTEED
    bars = answer.coefficient_errors
    errors = _by_name(names, bars)
    hints = _by_name(names, view.bootstrap_errors(answer) if guaranteed else None)
    risk_bar = None if answer.error is None else plain_number(float(np.max(answer.error)))
    data = {
        "model": model,
        "coefficient_bars": errors,
        "basis": answer.coefficient_basis,
        "bootstrap_bars": hints if guaranteed else errors,
        "excess_risk": risk_bar,
        "charged": 0.0,
    }
    lines = [f"{given['family']} model of {column_words(given['target'])}:"]
    classes = 1 if not risk.outputs else int(np.prod(risk.outputs))
    shown = max(1, desk.limits.cells // classes)  # features
    for name, value in list(model["coefficients"].items())[:shown]:
        values = dict(list(value.items())[: desk.limits.cells]) if isinstance(value, dict) else {"": value}
        told = ", ".join(f"{quote_label(k)} {v:+.4g}" if k else f"{v:+.4g}" for k, v in values.items())
        bar = None if errors is None else errors.get(name)
        hint = None if hints is None else hints.get(name)
        lines.append(
            f"- {column_words(name)}: {told}"
            + ("" if bar is None else f" ± {bar:.2g}{_sign(value, bar) if guaranteed else ''}")
            + ("" if hint is None else f" (bootstrapped ± {hint:.2g})")
        )
    if shown < len(names):
        lines.append(f"… and {len(names) - shown} more features, which the structured result has.")
    lines.append(
        "Numbers are scaled to [−1, 1] by their declared ends; flags are 0 or 1; categories are compared with their "
        "first value."
    )
    if hints is not None:
        lines.append(
            "Bars are guaranteed together, and wide. Those in brackets are bootstrapped 95 % intervals of the "
            "released noise, each for one coefficient: a hint, not a guarantee. To settle a sign, compare groups "
            "with ask, or ask a trend."
        )
    if errors is None:
        lines.append("No coefficient has a bar here: report no sign from a coefficient alone, compare groups with ask.")
    elif not guaranteed:
        lines.append(
            "These bars are bootstrapped 95 % intervals of the released noise, each for one coefficient. They are not "
            "guaranteed: report no sign as settled from them, compare groups with ask."
        )
    said = "is not bounded" if risk_bar is None else f"is at most {risk_bar:g}"
    lines.append(f"The excess risk on the table {said}. Free.")
    return ToolResult("\n".join(lines), data, asked=f"{given['family']} model of {given['target']}")


def score_on_holdout(desk: AssistantDesk, call: ToolCall) -> ToolResult:
    """Score a model on rows that were held out, within a budget of their own."""
    view, holdout, given = desk.view, desk.holdout, dict(call.arguments["model"])
    if holdout is None:
        raise InvalidInput("A holdout must be set up by the owner. Found none. Report fits as unconfirmed.")
    _require_target(view.universe, given)
    risk = risk_of(view.universe, given)
    theta = coefficients_of(given["coefficients"], risk)
    call.require_wanted()
    key = canonical({name: given[name] for name in ("family", "target", "features", "coefficients")})
    score = holdout.score(key, risk, theta, given["family"], view.hypothesis)
    metric = metric_of_family(given["family"])
    data = {
        "metric": metric, "value": plain_number(score.value), "low": outward(score.low, -1, 7),
        "high": outward(score.high, 1, 7), "source": score.source, "rows": holdout.rows,
        "holdout_budget_left": plain_number(holdout.remaining),
    }  # fmt: skip
    said = (
        f"On rows that were held out, {metric}: {score.value:.4g}, and on the population certainly between "
        f"{data['low']:.4g} and {data['high']:.4g}, together with all earlier scores, if the rows are independent "
        f"draws from it. All {holdout.rows:,} rows are scored, also those that a where left out. "
        f"{holdout.remaining:.0%} of the holdout's own budget is left."
    )
    return ToolResult(said, data, asked=f"score of a {given['family']} model of {given['target']}")


def _require_target(universe: Universe, given: Mapping[str, Any]) -> None:
    if given["target"] not in universe.names:
        raise InvalidInput(
            f"target must be a column. Found {quote_label(given['target'])}. describe_dataset lists the columns."
        )


def _by_name(names: Sequence[str], bars: Any) -> dict[str, Any] | None:
    """Return bars by feature; Return None if there are none, or if each feature has one for each class."""
    if bars is None or np.size(bars) != len(names):
        return None
    return dict(zip(names, map(plain_number, np.ravel(bars).tolist()), strict=True))


def _sign(value: Any, bar: float) -> str:
    return ", its sign is settled" if isinstance(value, float) and abs(value) > bar else ", its sign is not settled"


def coefficients_record(theta: np.ndarray[Any, Any], risk: GlmRisk) -> dict[str, Any]:
    """Return coefficients by the name of their feature, and by class if there are several."""
    names = risk.features.feature_names
    rows = theta.reshape(len(names), -1)
    if not risk.outputs:
        return {name: plain_number(float(row[0])) or 0.0 for name, row in zip(names, rows, strict=True)}
    classes = [str(label) for label in risk.universe[risk.target].labels]
    return {
        name: {c: plain_number(float(v)) or 0.0 for c, v in zip(classes, row, strict=True)}
        for name, row in zip(names, rows, strict=True)
    }


def coefficients_of(given: Mapping[str, Any], risk: GlmRisk) -> np.ndarray[Any, Any]:
    """Return the array of coefficients that a record describes. Its names must be those of the features."""
    names = risk.features.feature_names
    classes = [str(label) for label in risk.universe[risk.target].labels] if risk.outputs else []
    if set(given) != set(names):
        raise InvalidInput(
            f"coefficients must have exactly the {len(names)} features of the model. Found other names. Use those that "
            "fit_model returns for the same columns."
        )
    theta = np.zeros((len(names), max(1, len(classes))))
    for i, name in enumerate(names):
        value = given[name]
        row = [value] if not classes else [value.get(c) for c in classes] if isinstance(value, dict) else [None]
        if any(isinstance(v, bool) or not isinstance(v, int | float) or not abs(v) < 1e6 for v in row):
            raise InvalidInput(
                "coefficients must be numbers below a million" + (", one for each class" if classes else "")
                + f". Found something else for {quote_label(name)}. Correct it."
            )  # fmt: skip
        theta[i] = row
    return theta.reshape((-1, *risk.outputs))


def _fit_schema(desk: AssistantDesk) -> Schema:
    """Return the schema of the arguments of the tool ``fit_model``."""
    return arguments_schema(
        ("target", "features"),
        target={"type": "string", "maxLength": 1000, "description": "The column to predict."},
        features=column_list(MOST_FEATURES, "The columns to predict it from."),
        family=_family(),
        where={"type": "string", "maxLength": 20_000, "description": "Use only these records: count(age=(40, 65))."},
        quantile={"type": "number", "exclusiveMinimum": 0, "maximum": 0.999, "description": "Of the quantile family."},
        radius={
            "type": "number", "exclusiveMinimum": 0, "maximum": 1000, "default": 5.0,
            "description": "The largest norm of the coefficients.",
        },
    )  # fmt: skip


def _score_schema(desk: AssistantDesk) -> Schema:
    """Return the schema of the arguments of the tools that score a model."""
    number = {"type": "number", "minimum": -1_000_000, "maximum": 1_000_000}
    each = {"anyOf": [number, {"type": "object", "additionalProperties": number}]}
    model = arguments_schema(
        ("family", "target", "features", "coefficients"),
        family=_family(),
        target={"type": "string", "maxLength": 1000},
        features={"type": "array", "items": {"type": "string", "maxLength": 1000}, "maxItems": MOST_FEATURES},
        coefficients={
            "type": "object", "additionalProperties": each,
            "description": "A number for each feature, or one for each class, as fit_model returns them.",
        },
        where={"type": "string", "maxLength": 20_000},
        quantile={"type": "number", "exclusiveMinimum": 0, "maximum": 0.999},
    )  # fmt: skip
    return arguments_schema(("model",), model=model | {"description": "A model, in the form that fit_model returns."})


def _family() -> Schema:
    return {"type": "string", "enum": list(MODELS), "description": "The family. Default: chosen by the target."}


TOOLS = (
    Tool(
        "fit_model", "Fit a model",
        "A regression or a classifier, fitted on what was released: coefficients, a bound on the excess risk, and bars "
        "of the coefficients where a theorem gives them. Free.",
        _fit_schema, fit_model,
    ),
    Tool(
        "score_on_holdout", "Score a model on a holdout",
        "Score a model of fit_model, or one with other coefficients, on rows that were held out, with an interval for "
        "the population that holds for all scores together. It has a budget of its own. Use it before you report that "
        "a model predicts well.",
        _score_schema, score_on_holdout, is_offered=lambda desk: desk.holdout is not None, spends=True, needs_session=True,
    ),
)  # fmt: skip
