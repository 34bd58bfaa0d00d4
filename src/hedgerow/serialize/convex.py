"""JSON forms of losses, constraint sets and minimization questions.

A loss or a set is written as the fields of its class, under the name of its class. A user-defined loss (``Custom``) is
made of functions, which have no JSON form: reading functions back would run whatever code a record contains.
"""

from __future__ import annotations

from typing import Any

from hedgerow._json import Json
from hedgerow.convex.losses.custom import Custom
from hedgerow.convex.losses.families import Loss
from hedgerow.convex.losses.loss import LOSSES
from hedgerow.convex.minimize import Minimize, minimize
from hedgerow.convex.sets import SETS, ConvexSet
from hedgerow.serialize.registry import decode, encode, register, register_dataclass, register_refusal

for constraint in SETS:
    register_dataclass(constraint)

LOSSES.each(lambda name, loss: register_dataclass(loss, name, omitted={"coding": "full"}))

register_refusal(
    Custom,
    "A loss must be one of hedgerow.losses other than Custom to be stored or sent. Found Custom, and functions have "
    "no JSON form. Ask it of a session in the process that defines it.",
)


def _write_minimize(question: Minimize) -> dict[str, Json]:
    return {"loss": encode(question.loss), "over": encode(question.over)}


def _read_minimize(loss: Json, over: Json) -> Any:
    return minimize(decode("loss", loss, Loss), decode("over", over, ConvexSet))


register("minimize", Minimize, _write_minimize, _read_minimize)
