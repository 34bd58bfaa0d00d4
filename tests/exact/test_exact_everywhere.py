"""Every place that draws is held to its sensitivity, and a wrong sensitivity would be noticed."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_exact_blocks
import test_exact_convex
import test_exact_drafting
import test_exact_erm
import test_exact_generalise
import test_exact_practical
import test_exact_sampling
import test_exact_textbook
from neighbouring import Case, hold
from recorder import Recorder

import hedgerow
from hedgerow.convex.solver import excess
from hedgerow.engine.practical import engine
from hedgerow.engine.practical.convex import convex_answers
from hedgerow.engine.practical.measure import prefit, purchases
from hedgerow.erm.problem import Problem
from hedgerow.erm.solvers import frank_wolfe, whitened_descent
from hedgerow.errors import InvalidInput
from hedgerow.generalise import holdout
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.events import Exponential, Gaussian, Laplace
from hedgerow.privacy.ledger import Accountant
from hedgerow.privacy.noise import Noise
from hedgerow.textbook import mwem, oracles, pmw, subsampled

SOURCE = Path(hedgerow.__file__).parent
FILES = (
    test_exact_textbook,
    test_exact_convex,
    test_exact_practical,
    test_exact_erm,
    test_exact_generalise,
    test_exact_drafting,
    test_exact_sampling,
    test_exact_blocks,
)
CASES: dict[tuple[str, str], Callable[[], Case]] = {
    (file.__name__.removeprefix("test_exact_"), name): case for file in FILES for name, case in file.CASES.items()
}
DRAWS = ("add", "add_for_all", "choose", "open_round", "sample", "flips")
ELSEWHERE = {
    "erm.solvers.objective_perturbation:ObjectivePerturbation.run",  # two minima that agree: test_exact_erm
}


def drawing(tree: ast.AST, module: str, inside: str = "") -> Iterator[str]:
    """The functions in which something is drawn."""
    for node in ast.iter_child_nodes(tree):
        name = getattr(node, "name", "") if isinstance(node, ast.FunctionDef | ast.ClassDef) else ""
        where = ".".join(filter(None, (inside, name)))
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in DRAWS:
            owner = called.value.attr if isinstance(called.value, ast.Attribute) else getattr(called.value, "id", "")
            if owner.lstrip("_") in ("noise", "draw"):
                yield f"{module}:{where}"
        yield from drawing(node, module, where)


def test_every_function_that_draws_is_in_a_case() -> None:
    found = {
        site
        for folder in ("textbook", "engine", "erm/solvers", "generalise", "drafting")
        for path in (SOURCE / folder).rglob("*.py")
        for site in drawing(ast.parse(path.read_text()), ".".join(path.relative_to(SOURCE).with_suffix("").parts))
    }
    assert len(found) > 15
    assert found == ELSEWHERE | {site for case in CASES.values() for site in case().sites}


def test_noise_is_drawn_nowhere_but_where_it_was_looked_for() -> None:
    """Besides: the front door of ERM, which draws for its solvers; the scores of a private search, which one row moves
    by at most 1 (tests/erm/test_search.py); and the demo, for its picture of bundled public data.

    What audits us, and shows where papers err, draws from tables of its own.
    """
    outside = {
        site
        for path in SOURCE.rglob("*.py")
        if not {"privacy", "textbook", "engine", "solvers", "generalise", "audit", "research", "drafting"}
        & set(path.relative_to(SOURCE).parts)
        for site in drawing(ast.parse(path.read_text()), path.relative_to(SOURCE).as_posix())
    }
    door = {f"erm/solver.py:Draw.{name}" for name in ("add", "choose", "sample")}
    assert outside == door | {"demo/__init__.py:chart", "erm/search.py:PrivateSearch.fit"}


# The recorder is noise


def test_a_recorder_demands_receipts_and_adds_what_seeded_noise_adds() -> None:
    ledger, event = Accountant(Budget(1.0, 1e-6)), Gaussian(1.0, 40.0)
    receipt, noise = ledger.charge(event), Recorder(5)
    value = np.array([120.4, 80.0])
    out = noise.add(value, receipt)
    expected = hedgerow.privacy.noise.Seeded(5).add(value, Accountant(Budget(1.0, 1e-6)).charge(event))
    assert np.array_equal(out, expected) and np.array_equal(ledger.entries()[0].released[0], out)
    assert noise.draws[0].raw == (Fraction(120), Fraction(80)) and noise.draws[0].event == event
    with pytest.raises(InvalidInput):
        noise.add(value, receipt)
    with pytest.raises(InvalidInput):
        noise.choose(value, event)  # type: ignore[arg-type]


def test_a_history_is_replayed_whatever_the_values_are() -> None:
    event = Laplace(1.0, 3.0)
    first, second = Recorder(1), Recorder(2, history=())
    out = first.add(10.0, Accountant(Budget(1.0, 0.0)).charge(event))
    second = Recorder(2, history=first.draws)
    assert second.add(11.0, Accountant(Budget(1.0, 0.0)).charge(event)) == out
    with pytest.raises(AssertionError, match="once more"):
        second.add(11.0, Accountant(Budget(1.0, 0.0)).charge(event))


# What is wrong is noticed: each change is one that the suite must not survive


def halved(event: Any) -> Any:
    """Half the sensitivity, and half the noise: at the same price."""
    if isinstance(event, Exponential):
        return Exponential(event.sensitivity / 2, event.epsilon)
    spread = "sigma" if isinstance(event, Gaussian) else "scale"
    changes = {"sensitivity": event.sensitivity / 2, spread: getattr(event, spread) / 2}
    return dataclasses.replace(event, **changes)


def after(change: Callable[[Any], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: change(function(*given, **named))


def noiseless(self: Any, names: Any, event: Any) -> None:
    self.ledger.charge(event, why=purchases.TABLE, about={"attributes": names})
    self._known.learn(purchases.Measurement(names, self._data.marginal(names).astype(float), event))


BROKEN: dict[str, tuple[str, Any, str, Any, str]] = {
    # what is changed: (its case, the owner, the attribute, what it is made, what the suite says)
    "a guard compares twice the gap": (
        "guard, replace, approximate", engine.PracticalEngine, "_gap", after(lambda gap: 2 * gap, engine.PracticalEngine._gap), "too far apart",
    ),
    "a guard's noise is halved": (
        "sparse vector, replace, pure", Noise, "_comparison", None, "a guard draws with",
    ),
    "scores of a prefit have half their sensitivity": (
        "prefit, replace, pure", prefit.Amount, "choice", after(halved, prefit.Amount.choice), "too far apart",
    ),
    "a marginal is measured as if it were one count": (
        "within, replace, approximate", purchases, "_event", lambda budget, scale, *, alone: Gaussian(1.0, scale), "too far apart",
    ),
    "residuals are released at half their sensitivity": (
        "prefit, replace, approximate", prefit.Prefit, "_joint_event", after(halved, prefit.Prefit._joint_event), "too far apart",
    ),
    "a table is released without noise": (
        "within, add-remove, pure", purchases.Purchases, "table", noiseless, "drawn is not what was charged",
    ),
    "scores are not made exact": (
        "mwem, replace, pure", mwem, "_scores", lambda counted, believed, steps: 1.5 * np.abs(counted - believed), "too far apart",
    ),
    "measurements have half their sensitivity": (
        "pmw, add-remove, approximate", pmw, "replace", lambda event, grid: halved(dataclasses.replace(event, grid=grid)), "too far apart",
    ),
    "an oracle's sums are counted twice": (
        "online, NoisyGradientDescentOracle, replace", oracles.GradientSums, "at", after(lambda sums: 2 * sums, oracles.GradientSums.at), "too far apart",
    ),
    "the minimum of an oracle is doubled": (
        "online, OutputPerturbationOracle, replace", oracles, "locate_minimum", after(lambda found: 2 * found, oracles.locate_minimum), "too far apart",
    ),
    "an excess risk is not divided by what a row moves": (
        "guarded excess risk, replace, approximate", convex_answers, "in_rows",
        lambda e, counts, finest: 2 * excess.in_rows(e, counts, finest), "too far apart",
    ),
    "a bought excess risk is billed for S": (
        "excess risk, replace, pure", excess.Excess, "sensitivity", lambda self, grid: self.bound * self.unit + grid, "too far apart",
    ),
    "gradients move by L where they are replaced": (
        "mirror_descent, replace, approximate", Problem, "gradient_change", property(lambda self: self.lipschitz), "too far apart",
    ),
    "vertices are scored for add and remove": (
        "frank_wolfe, replace, pure", frank_wolfe, "score_sensitivity", lambda problem: problem.lipschitz_l1, "too far apart",
    ),
    "a holdout does not clip what a row scores": (
        "holdout, replace, pure", holdout, "in_units",
        lambda values, rows, worst: np.floor(np.nan_to_num(values, posinf=1, neginf=0) * 2.0**20).astype(np.int64), "too far apart",
    ),
    "a sampled value is counted twice": (
        "sampled statistic, without replacement", subsampled, "_total",
        lambda valued, drawn: 2 * int(valued(drawn).sum()), "too far apart",
    ),
    "long rows are not held": (
        "whitened_descent, replace, approximate", whitened_descent, "row_weights",
        lambda problem, metric: np.ones(problem.X.shape[0]), "too far apart",
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", BROKEN)
def test_wrong_sensitivities_are_noticed(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, owner, attribute, made, said = BROKEN[change]
    (case,) = (case() for (_, known), case in CASES.items() if known == name)
    if made is None:  # the recorder's own
        true = Recorder._comparison
        monkeypatch.setattr(Recorder, "_comparison", lambda self, scale: true(self, scale / 2))
    else:
        monkeypatch.setattr(owner, attribute, made)
    with pytest.raises(AssertionError, match=said):
        hold(case)
