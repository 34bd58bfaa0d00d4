"""Hostile JSON: arbitrary values, and valid records with a part replaced, removed or added."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from hedgerow import serialize
from hedgerow.errors import InvalidInput

WORDS = [
    "v", "kind", "count", "not", "combined", "mean", "linear", "bound", "Universe", "Integers", "Range", "Laplace", "Repeated",
    "L2Ball", "Box", "Logistic", "minimize", "Custom", "array", "tuple", "value", "predicates", "parts", "attributes", "low",
    "high", "__class__", "builtins.eval", "os.system", "nan", "inf", "and", "",
]  # fmt: skip
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=5),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
        st.fixed_dictionaries(
            {"kind": st.sampled_from(WORDS)}, optional={"value": inner, "part": inner, "event": inner}
        ),
    ),
    max_leaves=12,
)


def places(record: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every part of a record."""
    keys = list(record) if isinstance(record, dict) else range(len(record)) if isinstance(record, list) else ()
    return [path, *(place for key in keys for place in places(record[key], (*path, key)))]


def part_at(record: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        record = record[key]
    return record


@st.composite
def tampered(draw: st.DrawFn, records: list[dict[str, Any]]) -> dict[str, Any]:
    """A good record in which one part became another, from anywhere, or is gone, or is one too many."""
    record = copy.deepcopy(draw(st.sampled_from(records)))
    path = draw(st.sampled_from([path for path in places(record) if path and path != ("v",)]))
    around = part_at(record, path[:-1])
    deed = draw(st.sampled_from(["replace", "swap", "swap", "remove", "add"]))
    if deed == "remove":
        del around[path[-1]]
    elif deed == "replace":
        around[path[-1]] = draw(json_values)
    elif deed == "swap":
        other = draw(st.sampled_from(records))
        chosen = part_at(other, draw(st.sampled_from(places(other))))
        around[path[-1]] = copy.deepcopy(
            {k: v for k, v in chosen.items() if k != "v"} if isinstance(chosen, dict) else chosen
        )
    elif isinstance(around, dict):
        around[draw(st.sampled_from(WORDS))] = draw(json_values)
    else:
        around.append(draw(json_values))
    return record


def read_or_refused(record: Any) -> None:
    """A record is refused by whoever looks at the part that is wrong, or it is a good record after all."""
    try:
        found = serialize.from_json(record)
    except InvalidInput as refusal:
        assert "a valid object" not in str(refusal)  # a decoder believed what it should have checked
        return
    text = serialize.dumps(found)
    assert serialize.dumps(serialize.loads(text)) == text
