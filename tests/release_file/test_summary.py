"""Free summaries of a whole table with bars, and the privacy statement in the community's form."""

from __future__ import annotations

import json

import numpy as np
import pytest
from people import SMALL, frame
from questions_at_random import ADD_REMOVE, REPLACE, guarded, practical, several_blocks, theory

import hedgerow as hr
from hedgerow.answering.privacy_statement import FAMILIES, privacy_statement
from hedgerow.privacy.events import KINDS
from hedgerow.privacy.process import NotCopyable
from hedgerow.query.statistics import cramers_v_of

REGISTRY = {
    "product": "name data_curators intended_use data_product_type data_product_region description publication_date data_product_sector",
    "dp_flavor": "name input_metric bound_on_input_distance output_measure bound_on_output_distance data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_description privacy_parameters privacy_parameters_description",
    "model": "model_name model_name_description actors release_type release_type_description data_source_type data_source_type_description access_type access_type_description",
    "accounting": "post_processing composition",
    "implementation": "pre_processing_eda_hyperparameter_tuning mechanisms justification",
    "resources": "sources registry_authors",
}  # fmt: skip


@pytest.mark.parametrize("budget", [REPLACE, ADD_REMOVE], ids=["replace", "add-remove"])
def test_every_statistic_is_within_its_bar_of_what_pandas_says(budget) -> None:
    people, session = frame(), practical(budget)
    found, spent = session.describe(), session.spent
    truth = people.astype({"smoker": int}).describe(include="all")
    for column in SMALL.names:
        for name, error in found.errors[column].items():
            true = truth.loc[name, column] if name != "count" else len(people)
            if name == "std":
                true = people[column].astype(float).std(ddof=0)
            if name == "freq":
                true = (people[column] == found.columns[column]["top"]).sum()
            assert abs(found.columns[column][name] - true) <= error + 1e-9, (column, name)
    assert found.columns["age"]["min"] == 0 and found.columns["age"]["max"] == 7
    assert {"mean", "std", "25%", "50%", "75%", "freq"} <= set(found.errors["age"])
    assert session.spent == spent
    strongest = found.associations[0]
    assert set(strongest.columns) == {"age", "smoker"} or set(strongest.columns) == {"age", "region"}
    for one in found.associations:
        first, second = (people[name] == value for name, value in zip(one.columns, one.values, strict=True))
        apart = (first & second).mean() - first.mean() * second.mean()
        assert one.error is not None and abs(one.difference - apart) <= one.error


def test_a_summary_is_free_where_a_guard_is_on_and_the_same_from_the_file(tmp_path) -> None:
    for opened in (guarded, theory, practical, several_blocks):
        session = opened(REPLACE)
        spent, entries = session.spent, len(session.log)
        found = session.describe()
        assert (session.spent, len(session.log)) == (spent, entries)
        release = hr.load(session.publish(tmp_path / "people.hedgerow"))
        if opened is not theory:
            assert str(release.describe()) == str(found)
        assert found.frame.shape == found.error_frame.reindex(found.frame.index).shape
        assert list(found.frame.columns) == list(SMALL.names) and "top" in found.frame.index
        assert len(found.association_frame) == 6 and "Cramér" in found.html


def test_cramers_v_is_0_for_independent_columns_and_1_where_one_determines_the_other() -> None:
    assert cramers_v_of(np.outer([0.2, 0.8], [0.5, 0.3, 0.2])) == pytest.approx(0, abs=1e-9)
    assert cramers_v_of(np.diag([0.1, 0.6, 0.3])) == pytest.approx(1)
    assert cramers_v_of(np.array([[0.3, 0.2], [0.1, 0.4]])) == pytest.approx(np.sqrt(1 / 6))


@pytest.mark.parametrize("opened", [practical, theory, several_blocks])
def test_a_statement_has_the_fields_of_the_registry_and_answers_every_hazard(opened, tmp_path) -> None:
    session = opened(REPLACE)
    session.ask(hr.count(sex="F"))
    found = session.statement()
    deployment = found.record["deployment"]
    for section, fields in REGISTRY.items():
        assert set(fields.split()) <= set(deployment[section]), section
    loss = deployment["privacy_loss"]["privacy_parameters"]
    assert (loss["epsilon"], loss["delta"]) == (1.0, 1e-6)
    assert loss["spent"] == {name: block.spent for name, block in session.blocks.items()}
    assert deployment["implementation"]["mechanisms"]
    hazards = found.record["hazards"]
    assert len(hazards) >= 12 and all(each["statement"].endswith(".") and each["page"] for each in hazards.values())
    assert "Not covered" in found.markdown and "SEED" in found.markdown
    assert deployment["product"]["name"] is None  # nothing is guessed
    assert json.loads(found.json) == json.loads(json.dumps(found.record))
    for suffix in ("json", "md", "html"):
        assert found.save(tmp_path / f"statement.{suffix}").stat().st_size > 1000
    with pytest.raises(hr.InvalidInput, match="must end in"):
        found.save(tmp_path / "statement.txt")
    release = hr.load(session.publish(tmp_path / "people.hedgerow"))
    assert release.statement().json == found.json and not isinstance(release, NotCopyable)


@pytest.mark.parametrize(
    ("kinds", "k", "stated"),
    [
        (["Gaussian", "Laplace"], 1, True), (["Gaussian"], 3, True), (["Gaussian", "Planned"], 1, False),
        (["Gaussian", "HitRound"], 1, False), (["RandomRuns"], 1, False),
    ],
)  # fmt: skip
def test_a_statement_names_a_rho_only_where_costs_are_losses_and_then_that_of_a_person(kinds, k, stated) -> None:
    """Planned noise costs less than its ρ, and what is priced at one Rényi order has none."""
    budget = hr.Budget(1.0, 1e-6, "add-remove", rows_per_unit=k)
    given = {"is_interactive": True, "beta": 0.05, "private": True, "guarded": False}
    record = privacy_statement(SMALL, {"": budget}, {"": 0.0}, {"": 10.0}, iter(kinds), **given)
    rho = record["deployment"]["privacy_loss"]["privacy_parameters"]["rho"]
    assert rho == (pytest.approx(hr.Budget(1.0, 1e-6).total) if stated else None)
    assert ("concentrated" in record["deployment"]["accounting"]["composition"]) == (stated or "Planned" in kinds)


def test_every_mechanism_that_is_billed_has_a_name_in_a_statement() -> None:
    assert set(KINDS) - set(FAMILIES) == {"ApproximateDP", "Repeated"}  # which stand for others


def test_pages_that_a_statement_names_exist() -> None:
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    record = practical(REPLACE).statement().record
    assert [each["page"] for each in record["hazards"].values() if not (root / each["page"]).exists()] == []
