"""The report of attacks on privacy names existing tests, and agrees with tools/attacks.py."""

from __future__ import annotations

import json

import attacks


def test_every_attack_of_the_report_is_a_test_that_there_is() -> None:
    rows = json.loads(attacks.REPORT.read_text())
    assert [(row["claim"], row["how"], row["where"]) for row in rows] == [
        (attack.claim, attack.how, attack.where) for attack in attacks.ATTACKS
    ]
    for row, attack in zip(rows, attacks.ATTACKS, strict=True):
        file, name = row["where"].split("::")
        assert f"def {name}(" in (attacks.ROOT / file).read_text()
        assert row["figure"] == f"the test asserts: {attack.figure}" or not isinstance(attack.figure, str)
