"""One text of every stored form, made from values alone: the bytes in today's ledgers, files and clients."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import hedgerow as hr
from hedgerow import losses
from hedgerow._json import write_ordered
from hedgerow.convex.minimize import BoundMinimize
from hedgerow.ledger import answer_log, chain, replay
from hedgerow.privacy.accounts import BlocksQuestion
from hedgerow.privacy.events import Gaussian, Laplace
from hedgerow.privacy.ledger import Entry
from hedgerow.query.bound import Estimate
from hedgerow.query.counts import bound
from hedgerow.serialize import LedgerTerms, dumps, encode, from_json

HERE = Path(__file__).parent
RECORDS = json.loads((HERE / "wire_v1.json").read_text())
UNIVERSE = hr.Universe(
    {
        "âge ☃": hr.Integers(-3, 7, other=True),
        "sex": hr.Categories(["F", "M", "weiß", None, 2**70, 1.5, Decimal("3.00"), datetime.date(2020, 2, 29)]),
        "smoker": hr.Flag(missing=True),
        "retired": hr.Flag(),
        'quoted "name" \\ \x7f': hr.Range(0.1, 1e22, bins=3),
        "income": hr.Range(edges=[-1e300, 0.1 + 0.2, 1e-300 + 1.0], values=[-0.0, 0.5]),
        "day": hr.Dates(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), "month"),
        "kind": hr.Categories(["kind", "v"], case="ignore", other=True),
    }
)
NUMBERS = [0.0, -0.0, 0.1, 1 / 3, 1e22, 1e-300, 5e-324, 1e16, 123456789.0, 2.5e-7, 1.7976931348623157e308]
PLAIN = [
    *NUMBERS, math.nan, math.inf, -math.inf, 0, -1, 2**53, 2**53 + 1, -(2**53) - 1, 10**300, True, None, "", "naïve ☃ 😀",
    '"\\/\b\f\n\r\t\x00\x1f\x7f\u2028', datetime.date(1, 1, 1), datetime.datetime(2020, 2, 29, 23, 59, 59, 999999, datetime.UTC),
    datetime.time(12, 30), Decimal("-1.50E+10"), (1, (2.0, "x"), None), [1, [2.0]], np.arange(6).reshape(2, 3),
    np.array([[True, False, True]]), np.array(NUMBERS), np.array([math.nan, math.inf]), np.zeros((0, 3)), np.float64(0.1), np.int64(7),
]  # fmt: skip
COUNT = hr.count({"âge ☃": (0, 5), "smoker": True, "sex": {"weiß", 2**70}})
LOGISTIC = hr.minimize(
    losses.Logistic(target="retired", features=["smoker"], onehot=["smoker"], coding="full"), over=hr.L2Ball(2.0)
)


def answered() -> Iterator[tuple[object, Estimate]]:
    """Questions of every way in which a line of answers writes them, with estimates of every shape."""
    count = bound(COUNT, UNIVERSE)
    for i, value in enumerate(NUMBERS):
        yield (
            count,
            Estimate(value, None if i % 3 == 0 else NUMBERS[-i], "hypothesis", 0.0, NUMBERS[i] if i % 2 else None),
        )
    yield count, Estimate(0.25, 0.125, "measured", 0.0625, 0.03125)
    yield count, Estimate(math.nan, math.inf, "repeat", 0.0, None)
    yield count, Estimate(np.float64(0.5), 0.125, "hypothesis", 0.0, None)
    yield bound(~COUNT, UNIVERSE), Estimate(0.75, 0.125, "hypothesis", 0.0, None)
    yield bound(hr.linear(("smoker",), [0.1, 1 / 3, 1.0]), UNIVERSE), Estimate(0.5, 0.1, "hypothesis", 0.0, None)
    table = np.arange(16.0).reshape(8, 2) / 7
    yield bound(hr.marginal("sex", "kind"), UNIVERSE), Estimate(table, table / 2, "measured", table / 3, table / 4)
    yield bound(hr.mean("âge ☃", where=hr.count(smoker=True)), UNIVERSE), Estimate(1.5, 0.5, "hypothesis", 0.0, None)
    yield bound(hr.mean("income"), UNIVERSE, "bins"), Estimate(1.5, 0.5, "hypothesis", 0.0, None)
    yield (
        bound(LOGISTIC, UNIVERSE),
        Estimate(np.array([0.5, -0.5]), 0.1, "hypothesis", coefficients=np.array([0.1, 0.2])),
    )
    yield (
        bound(hr.top("kind", 2), UNIVERSE),
        Estimate(np.array([0.5, 0.25]), None, "hypothesis", 0.0, None),
    )  # has no form
    yield BlocksQuestion((0, 2), count), Estimate(0.5, 0.1, "hypothesis", 0.0, None)


def entry(number: int, *released: object) -> Entry:
    about = {"query": bound(COUNT, UNIVERSE), "naïve": (1, 2.5), "among": "x", "rate": math.inf}
    return Entry(
        number=number, events=(Laplace(1.0, 1 / 3), Gaussian(2**0.5, 1e9 / 3, 0.125)), cost=1e-300, why="prefit: ☃", about=about,
        asked=COUNT, kept=True, released=released, private=not released,
    )  # fmt: skip


def files() -> Iterator[tuple[str, str]]:
    with TemporaryDirectory() as folder:
        for suffix in (".toml", ".json"):
            UNIVERSE.save(Path(folder) / f"universe{suffix}")
            yield suffix, (Path(folder) / f"universe{suffix}").read_bytes().decode()


def texts() -> dict[str, str]:
    """The text of every stored form, by name."""
    found = {f"record: {name}": dumps(from_json(record)) for name, record in RECORDS.items()}
    things = {name: from_json(record) for name, record in RECORDS.items()}
    for name, thing in things.items():
        if type(thing).__module__.startswith("hedgerow"):
            found[f"in its order: {name}"] = write_ordered(encode(thing))
    found |= {f"value {i}": dumps(value) for i, value in enumerate(PLAIN)}
    found |= {"universe": dumps(UNIVERSE), "count": dumps(COUNT), "convex": dumps(LOGISTIC)}
    asked = list(answered())
    found |= {f"name {i}": str(answer_log.name_of(question)) for i, (question, _) in enumerate(asked)}
    found |= {f"answers {i}": answer_log.line_body([note]) for i, note in enumerate(asked)}
    found |= {"answers": answer_log.line_body(asked), "no answers": answer_log.line_body([])}
    assert isinstance(bound(LOGISTIC, UNIVERSE), BoundMinimize)
    account = encode(LedgerTerms(hr.Budget(0.1, 1e-9, neighbours="add-remove", rows_per_unit=3), 1e-12))
    found["account"] = replay.body(
        account=account, table={"name": "00", "key": "11", "table": "22"}, options={"universe": dumps(UNIVERSE), "beta": "é"},
        version="0.1.0",
    )  # fmt: skip
    found |= {
        "account without a table": replay.body(account=account, table=None, options=None, version="0.1.0", block="märz"),
        "cap": replay.body(who="Zoë", epsilon=0.1), "version": replay.body(version="0.2.0"),
        "snapshot": replay.body(entries=3, sha256="ab"), "charge": replay.written_charge(entry(0)),
    }  # fmt: skip
    for i, value in enumerate([*PLAIN[:20], np.array(NUMBERS), np.array([3, 4])]):
        found[f"release {i}"] = replay.written_release(entry(i, value))
    head = chain.Head()
    for kind in ("account", "charge", "answers"):
        line = chain.next_line(head, 1_700_000_000_000_000, "Zoë ☃", kind, found[kind])
        head, found[f"hash of {kind}"] = line.head, line.hash
    found |= {f"file {suffix}": text for suffix, text in files()}
    return found
