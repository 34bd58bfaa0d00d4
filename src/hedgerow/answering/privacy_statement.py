"""The privacy statement of a session: what is promised to whom, and what is not, in the community's form.

The fields are those of the public registry of differential-privacy deployments. What the session knows is filled in.
The owner adds the rest; nothing is guessed. The hazards are those that NIST SP 800-226, "Guidelines for Evaluating
Differential Privacy Guarantees" (2025), asks an evaluator to examine. Each has one sentence and a link to its proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow import _html
from hedgerow._json import readable
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.universe.universe import Universe

TO_BE_ADDED = None
"""The value of a field that only the owner knows."""
NOT_COVERED = "Not covered."
FOR_READERS = "Shown to owners and auditors."
FAMILIES = {
    "Laplace": "discrete Laplace mechanism",
    "Gaussian": "discrete Gaussian mechanism",
    "Planned": "discrete Gaussian mechanism, with noise planned at the opening",
    "Exponential": "exponential mechanism",
    "AboveThreshold": "sparse vector technique",
    "HitRound": "sparse vector technique, with a public threshold",
    "RandomRuns": "private selection from a random number of runs",
    "ThresholdedCounts": "noisy counts above a threshold",
    "PoissonSample": "sampling of random rows",
    "DistinctRows": "sampling of random rows",
    "RepeatedRows": "sampling of random rows",
    "Subsampled": "sampling of random rows",
    "SubsampledGaussian": "Gaussian mechanism on random rows",
    "FlippedRows": "randomized response on random rows",
    "PerturbedObjective": "objective perturbation",
}
"""Kinds of events, and what they are called."""


@dataclass(frozen=True)
class PrivacyStatement:
    """A statement of what is protected, how, and what is not covered.

    It can be read as ``.record``, ``.json``, ``.markdown`` and ``.html``.
    """

    record: Mapping[str, Any]

    @property
    def json(self) -> str:
        """The statement as one JSON object. Fields that the owner has to add are null."""
        return readable(self.record)

    @property
    def markdown(self) -> str:
        """The statement as a Markdown page."""
        return "\n".join(_markdown("Privacy statement", self.record, 1)).strip() + "\n"

    @property
    def html(self) -> str:
        """The statement as one self-contained HTML page."""
        lines = [(" · ".join(path).replace("_", " "), _format_field(value)) for path, value in _leaves(self.record)]
        return _html.page("Privacy statement", _html.table(("field", "value"), lines))

    def save(self, path: str | Path) -> Path:
        """Write the statement to a path that ends in .json, .md or .html, and return the path."""
        target = Path(path)
        texts = {".json": "json", ".md": "markdown", ".html": "html"}
        if target.suffix not in texts:
            raise InvalidInput(
                f"The path of a statement must end in .json, .md or .html. Found {target.name!r}. Rename it."
            )
        target.write_text(getattr(self, texts[target.suffix]), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        return self.html

    def __str__(self) -> str:
        return self.markdown


def without_spending(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a statement for somebody who may not see what others spent."""
    loss = record["deployment"]["privacy_loss"]
    parameters = {**loss["privacy_parameters"], "spent": FOR_READERS}
    return {
        **record,
        "deployment": {**record["deployment"], "privacy_loss": {**loss, "privacy_parameters": parameters}},
    }


def privacy_statement(
    universe: Universe,
    budgets: Mapping[str, Budget],
    spent: Mapping[str, float],
    rows: Mapping[str, float],
    kinds: Iterable[str],
    *,
    is_interactive: bool,
    beta: float,
    private: bool,
    guarded: bool,
    draft: tuple[float, float] = (0.0, 0.0),
) -> dict[str, Any]:
    """Return the statement of a session whose blocks have these budgets, amounts spent and numbers of rows.

    ``kinds`` are the names of the events that were charged. ``draft`` is what drafting the universe cost before: it is
    added to ε and δ.
    """
    first, public = next(iter(budgets.values())), next(iter(budgets.values())).neighbours == "replace"
    epsilon, delta = max(b.epsilon for b in budgets.values()), max(b.delta for b in budgets.values())
    epsilon, delta = epsilon + draft[0], delta + draft[1]
    person = (
        "one row"
        if first.rows_per_unit == 1
        else f"all rows of one person, of which at most {first.rows_per_unit} are kept"
    )
    distance = "one row is replaced by another" if public else "one row is added or removed"
    if first.rows_per_unit > 1:
        distance = f"at most {first.rows_per_unit} rows of one person are added or removed"
    pure, kinds = first.pure, set(kinds)
    composition, is_concentrated = _composition(pure, kinds)
    rho = max(b.total * b.rows_per_unit**2 for b in budgets.values()) if is_concentrated and not any(draft) else None
    return {
        "url_slug": TO_BE_ADDED,
        "status": TO_BE_ADDED,
        "tier": TO_BE_ADDED,
        "deployment": {
            "product": {
                "name": TO_BE_ADDED,
                "data_curators": TO_BE_ADDED,
                "intended_use": TO_BE_ADDED,
                "data_product_type": "answers to queries, a model of the table, and synthetic records",
                "data_product_region": TO_BE_ADDED,
                "description": TO_BE_ADDED,
                "publication_date": TO_BE_ADDED,
                "data_product_sector": TO_BE_ADDED,
            },
            "dp_flavor": {
                "name": "pure differential privacy" if pure else "approximate differential privacy",
                "input_metric": "number of changed rows" if public else "symmetric distance of row sets",
                "bound_on_input_distance": first.rows_per_unit,
                "output_measure": "max divergence"
                if pure
                else "smoothed max divergence, by zero-concentrated divergence",
                "bound_on_output_distance": {
                    "epsilon": epsilon,
                    "delta": delta,
                    "total": {name: [b.total, b.currency] for name, b in budgets.items()},
                },
                "data_domain": {name: universe[name].size for name in universe.names},
                "unprotected_quantities": [
                    "the universe: names, values and bins of the columns",
                    *([f"the number of rows, {sum(rows.values()):.0f}"] if public else []),
                    "budget, options and workload of the session, and the order and text of questions",
                ],
            },
            "privacy_loss": {
                "privacy_unit": "row" if first.rows_per_unit == 1 else "person",
                "privacy_unit_description": f"Neighboring tables differ in {person}: {distance}.",
                "privacy_parameters": {
                    "epsilon": epsilon,
                    "delta": delta,
                    "rho": rho,
                    "spent": dict(spent),
                    "currency": first.currency,
                    **({"of_which_draft": list(draft)} if any(draft) else {}),
                },
                "privacy_parameters_description": (
                    "The budget bounds the loss of all answers together, whoever asks and however they depend on "
                    "earlier answers. Amounts spent are those by the time of this statement."
                ),
            },
            "model": {
                "model_name": "central",
                "model_name_description": "The owner's process reads the rows and draws the noise.",
                "actors": TO_BE_ADDED,
                "release_type": "interactive" if is_interactive else "one release",
                "release_type_description": "Questions are answered as they are asked, under one fixed budget.",
                "data_source_type": "static" if len(budgets) == 1 else "dynamic",
                "data_source_type_description": (
                    "The table was read once, when the session was opened."
                    if len(budgets) == 1
                    else f"{len(budgets)} blocks of different people, each with its own budget and read once."
                ),
                "access_type": TO_BE_ADDED,
                "access_type_description": TO_BE_ADDED,
            },
            "accounting": {
                "post_processing": "All answers that cost nothing are functions of released values.",
                "composition": composition,
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": TO_BE_ADDED,
                "mechanisms": sorted({FAMILIES.get(kind, kind) for kind in kinds}),
                "mechanisms_notes": "Noise is discrete and drawn exactly; no released value carries floating-point noise.",
                "justification": "docs/proofs",
            },
            "resources": {
                "sources": ["docs/assurance.md", "docs/threat-model.md", "docs/proofs"],
                "registry_authors": TO_BE_ADDED,
            },
        },
        "error_bars": {
            "all_hold_together_with_probability": max(0.0, 1 - beta),
            "guard": guarded,
        },
        "hazards": _hazards(first, public=public, private=private),
    }


def _composition(pure: bool, kinds: set[str]) -> tuple[str, bool]:
    """Return how the losses of these kinds of events compose, and True if their costs are losses in ρ."""
    if pure:
        return "Pure composition: the ε of all draws add up.", False
    if kinds & {"HitRound", "RandomRuns"}:
        return "Fully adaptive composition of Rényi divergences at one order, converted to (ε, δ).", False
    if "Planned" in kinds:
        return (
            "Fully adaptive composition of Gaussian noise, planned beforehand and with its exact loss, and of "
            "zero-concentrated differential privacy for all else, converted to (ε, δ) together.",
            False,
        )
    return "Fully adaptive composition of zero-concentrated differential privacy, converted to (ε, δ).", True


def _hazards(budget: Budget, *, public: bool, private: bool) -> dict[str, dict[str, str]]:
    """Return one sentence for each hazard of NIST SP 800-226, and the page that proves it."""
    unit = (
        "The unit is one row: a person with several rows is protected less, by a factor of their number."
        if budget.rows_per_unit == 1
        else f"The unit is a person, of whom at most {budget.rows_per_unit} rows were kept."
    )
    said = {
        "unit_of_privacy": (unit, "docs/people.md"),
        "composition": (
            "Every draw is charged to one ledger before it is made; a charge that would exceed the budget is refused.",
            "docs/ledger.md",
        ),
        "other_releases": (f"{NOT_COVERED} Releases of the same people outside of this ledger add to the loss.", "docs/limitations.md"),
        "published_without_noise": (
            "The universe, the options" + (" and the number of rows" if public else "") + " are public by assumption.",
            "docs/threat-model.md",
        ),
        "tuning_on_the_data": (
            f"{NOT_COVERED} Bins and options that the owner chose by looking at the rows are not accounted for, unless "
            "hedgerow drafted the universe.",
            "docs/universe.md",
        ),
        "floating_point": ("Noise is drawn exactly on a grid that contains every count.", "docs/proofs"),
        "randomness": (
            "Noise comes from the operating system."
            if private
            else "THE NOISE CAME FROM A SEED: nothing here is private.",
            "docs/threat-model.md",
        ),
        "side_channels": (
            f"Refusals and their messages depend on public facts only. Exact timing: {NOT_COVERED.lower()}",
            "docs/threat-model.md",
        ),
        "trust_model": ("The owner, and the process that reads the rows, are trusted.", "docs/threat-model.md"),
        "query_limits": (
            "The budget is fixed when the ledger is made, and never reset; free answers are unlimited.",
            "docs/ledger.md",
        ),
        "utility_and_bias": (
            "Every answer states a bar; small groups have the same absolute bar as large ones, and a larger relative "
            "one.",
            "docs/answers.md",
        ),
        "clipping": ("Numbers outside of their declared range are counted in the first or the last bin.", "docs/reading.md"),
        "access_control": (f"{NOT_COVERED} Who may ask is the owner's decision.", "docs/owner.md"),
        "audit_and_retention": (
            "The ledger records every charge and every release in a hash chain, if it is durable. How long rows are "
            "kept is the owner's decision.",
            "docs/ledger.md",
        ),
    }  # fmt: skip
    return {name: {"statement": sentence, "page": page} for name, (sentence, page) in said.items()}


def _leaves(record: Any, path: tuple[str, ...] = ()) -> Iterable[tuple[tuple[str, ...], Any]]:
    """Yield every field with its path."""
    if isinstance(record, Mapping) and record:
        for name, part in record.items():
            yield from _leaves(part, (*path, str(name)))
    else:
        yield path, record


def _markdown(title: str, record: Mapping[str, Any], level: int) -> Iterable[str]:
    """Yield the lines of a Markdown section: plain fields first, then the sections below it."""
    yield f"{'#' * min(level, 6)} {title.replace('_', ' ').strip()}"
    yield ""
    below = {name: part for name, part in record.items() if isinstance(part, Mapping) and part}
    for name, part in record.items():
        if name not in below:
            yield f"- **{name.replace('_', ' ')}**: {_format_field(part)}"
    yield ""
    for name, part in below.items():
        if set(part) == {"statement", "page"}:
            yield f"- **{name.replace('_', ' ')}**: {part['statement']} ({part['page']})"
        else:
            yield from _markdown(name, part, level + 1)


def _format_field(value: Any) -> str:
    """Format a field for display."""
    if value is None:
        return "to be added by the owner"
    if isinstance(value, list):
        return "; ".join(map(_format_field, value))
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}"
    return str(value)
