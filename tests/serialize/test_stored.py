"""Stored forms keep their bytes, one module writes JSON, and a new form is one entry."""

from __future__ import annotations

import ast
import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from stored import HERE, texts

import hedgerow as hr
from hedgerow import serialize
from hedgerow._json import canonical, parse, quote_text, readable, write_ordered, write_spaced
from hedgerow.engine.practical.free_answers import FittedModel
from hedgerow.engine.practical.measurement import Measurement
from hedgerow.errors import InvalidInput
from hedgerow.query.linear import Linear
from hedgerow.serialize import registry

SOURCE = Path(hr.__file__).parent
STORED: dict[str, str] = json.loads((HERE / "stored_forms.json").read_text())
"""Texts that an earlier version wrote. They must be written again to the byte: add to them, never change one."""
SNAPSHOT = (HERE / "snapshot_v1.json").read_text().rstrip("\n")
"""A snapshot that an earlier version took of an engine with groups, a purchase and a certificate."""
BLANKS = {name for name in STORED if name.startswith("answers") or name == "hash of answers"}
"""Lines of answers once had a blank after some commas. What they say is the same."""


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return texts()


def test_every_stored_form_is_written_to_the_byte_as_it_was(written) -> None:
    assert set(written) == set(STORED)
    assert {name for name in STORED if written[name] != STORED[name]} <= BLANKS
    assert [name for name in STORED if written[name] != STORED[name] and name not in BLANKS] == []


def test_lines_of_answers_are_as_they_were_but_for_blanks(written) -> None:
    lines = BLANKS - {"hash of answers"}
    assert len(lines) > 20
    for name in lines:  # the numbers, the escapes and the order of the fields
        assert written[name] == write_ordered(parse(STORED[name])), name


def test_a_changed_digit_or_order_of_a_stored_form_would_be_seen(written) -> None:
    line = written["answers 1"]
    assert write_ordered(parse(line.replace("-0.0", "0.0", 1))) != line
    fields = parse(line)["answers"][0]
    assert write_ordered(dict(reversed(fields.items()))) != write_ordered(fields)


def test_a_snapshot_of_an_engine_is_written_to_the_byte_as_it_was() -> None:
    record = parse(SNAPSHOT)
    state = serialize.decode_state(record["state"])
    learned = state["learned"]
    assert all(isinstance(each, Measurement) for each in learned["measurements"]) and len(learned["measurements"]) > 5
    assert all(isinstance(each, Linear) for each in learned["queries"]) and learned["queries"]
    assert learned["merging"]["âge"][0].dtype == np.int64 and learned["theta"].dtype == np.float64
    assert write_spaced(record | {"state": serialize.encode_state(state)}) == SNAPSHOT


def test_a_snapshot_restores_the_learned_state_to_the_byte() -> None:
    universe = hr.Universe({"âge": hr.Integers(0, 29), "kind": hr.Flag(), "sex": hr.Flag()})
    record = parse(SNAPSHOT)["state"]["learned"]
    learned = FittedModel.restore(universe, 20_000.0, serialize.decode_state(record))
    state = learned.state()
    assert write_spaced(serialize.encode_state(state)) == write_spaced(record)
    learned.model.theta += 1.0  # as a later fit changes it, in place
    assert write_spaced(serialize.encode_state(state)) == write_spaced(record)


@pytest.mark.parametrize("state", [{"kind": "text"}, {1: 2}, [{"a": [{"kind": "bound"}]}], object(), {"a": {1, 2}}])
def test_a_state_that_would_not_be_read_as_it_was_is_refused(state) -> None:
    with pytest.raises(InvalidInput, match=r"must .*Found"):
        serialize.encode_state(state)


def test_a_state_has_infinities_and_names_of_any_kind() -> None:
    state = {"kind": [1, 2.5, None, True], "rest": {"low": -math.inf, "": [], "values": np.arange(3)}}
    back = serialize.decode_state(parse(write_spaced(serialize.encode_state(state))))
    assert repr(back) == repr(state)


# One writer


def importers_of_json(root: Path) -> list[str]:
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) and not node.level else []
            found += [
                str(path.relative_to(root)) for name in names if name.split(".")[0] in ("json", "orjson", "pickle")
            ]
    return found


def test_one_module_reads_and_writes_json() -> None:
    """And one sends pickled values between the service's own processes, which are not stored."""
    assert importers_of_json(SOURCE) == ["_json.py", "server/messages.py"]


def test_another_module_that_wrote_json_would_be_seen(tmp_path) -> None:
    (tmp_path / "a.py").write_text("def f():\n    from json import dumps\n")
    (tmp_path / "b.py").write_text("import json.encoder as e\n")
    assert importers_of_json(tmp_path) == ["a.py", "b.py"]


def test_no_writer_writes_what_is_no_json() -> None:
    for write in (canonical, write_ordered, write_spaced, readable):
        for wrong in (math.nan, math.inf, [-math.inf], {"a": math.nan}):
            with pytest.raises(ValueError):
                write(wrong)
    assert parse(readable({"a": math.inf}, infinities=True)) == {"a": math.inf}


def test_the_writers_differ_in_order_blanks_and_letters_only() -> None:
    record = {"b": [1, 0.1], "a": {"é": None}}
    assert canonical(record) == '{"a":{"\\u00e9":null},"b":[1,0.1]}'
    assert write_ordered(record) == '{"b":[1,0.1],"a":{"\\u00e9":null}}'
    assert write_spaced(record) == '{"b": [1, 0.1], "a": {"\\u00e9": null}}'
    assert readable(record, indent=1).splitlines()[1] == ' "b": [' and '"é"' in readable(record)
    assert '"\\u00e9"' in readable(record, ascii_only=True)
    assert all(parse(write(record)) == record for write in (canonical, write_ordered, write_spaced, readable))
    assert quote_text('a"\x7fé') == '"a\\"\\u007fé"'


@pytest.mark.parametrize("text", ["", "nonsense", "[", "[" * 100_000, '{"a":1,}'])
def test_a_text_that_is_no_json_is_a_value_error(text) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_a_field_given_twice_is_refused_where_it_matters() -> None:
    assert parse('{"a":1,"a":2}') == {"a": 2}
    with pytest.raises(InvalidInput, match="distinct"):
        parse('{"a":1,"a":2}', distinct=True)


# A new form is one entry


@dataclasses.dataclass(frozen=True)
class Told:
    """A form that only this test has."""

    query: hr.Query
    value: float | None = None
    about: tuple[str, ...] = ()


@pytest.fixture
def told(monkeypatch) -> Told:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    monkeypatch.setattr(registry, "_TYPES", dict(registry._TYPES))
    serialize.register_dataclass(Told)  # the one entry
    return Told(hr.count(sex="F"), 0.25, ("ü",))


def test_a_new_form_is_one_entry(told) -> None:
    text = serialize.dumps(told)
    assert serialize.loads(text) == serialize.loads(text, Told) == told
    assert serialize.dumps(serialize.loads(text)) == text
    assert serialize.decode_state(serialize.encode_state({"told": [told]})) == {"told": [told]}


@pytest.mark.parametrize(
    "changes", [{"value": "0.25"}, {"value": {"kind": "Flag"}}, {"query": None}, {"about": "ü"}, {"extra": 1}, {"v": 2}]
)
def test_a_new_form_refuses_changed_records(told, changes) -> None:
    with pytest.raises(InvalidInput, match=r"must .*Found"):
        serialize.from_json({**serialize.to_json(told), **changes})


@pytest.mark.parametrize(("kind", "of"), [("count", Told), ("array", Told), ("Other", hr.Universe)])
def test_a_kind_or_a_type_has_one_form(kind, of) -> None:
    with pytest.raises(InvalidInput, match="new kind and a new type"):
        serialize.register(kind, of, lambda thing: {}, lambda: None)


# The former name


def test_the_former_name_has_the_same_functions() -> None:
    for name in hr.wire.__all__:
        assert getattr(hr.wire, name) is getattr(serialize, name)
