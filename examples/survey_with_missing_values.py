"""Ask a survey in which answers are missing: python examples/survey_with_missing_values.py

A missing answer is a value of its own: it can be counted, compared between groups and left out of a mean. The survey is
made up. The younger a person is, the more often they do not say what they earn.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

import hedgerow as hr

REGIONS = ["north", "east", "south", "west"]


def survey() -> pd.DataFrame:
    """Make up 12,000 answers: incomes are missing more often among the young, and some regions are mistyped."""
    rng = np.random.default_rng(2)
    rows = 12_000
    age = rng.integers(18, 90, rows)
    income = rng.gamma(4, 8000 + 50 * age)
    income[rng.random(rows) < 0.5 - 0.005 * age] = np.nan
    region = rng.choice(REGIONS, rows).astype(object)
    region[rng.random(rows) < 0.04] = "do not know"
    happy = rng.integers(1, 6, rows).astype(float)
    happy[rng.random(rows) < 0.15] = np.nan
    return pd.DataFrame({"age": age, "region": region, "income": income, "happy": happy})


def main(seed: int | None) -> None:
    table = survey()
    universe = hr.Universe(
        age=hr.Range(18, 90, bins=3, whole=True),
        region=hr.Categories(REGIONS, other=True),  # everything that is not declared goes to one cell, (other)
        income=hr.Range(0, 200_000, bins=40, missing=True),  # a missing income goes to the cell (missing)
        happy=hr.Integers(1, 5, missing=True),
    )
    session = hr.open(table, universe=universe, budget=hr.Budget(epsilon=1, delta=1e-6), seed=seed)
    print(f"{session.rows:,} people were asked. Not all of them answered everything.\n")

    silent = hr.count(income=None)  # None means the missing cell
    share = session.ask(silent)
    print(f"No income given:  {share.value:6.1%} ± {share.error:.1%}")
    unclear = session.ask(hr.count(region="(other)"))
    print(f"No known region:  {unclear.value:6.1%} ± {unclear.error:.1%}")

    print("\nNo income given, by age:")
    for low, high in [(18, 41), (42, 65), (66, 90)]:
        part = session.ask(hr.share(silent, where=hr.count(age=(low, high))))
        print(f"  {low} to {high}: {part.value:6.1%} ± {part.error:.1%}")
    young, old = hr.count(age=(18, 41)), hr.count(age=(66, 90))
    gap = session.ask(hr.difference(hr.share(silent, where=young), hr.share(silent, where=old)))
    if gap.excludes(0):
        print("The young and the old differ: the error bars exclude a difference of 0.")
    else:
        print("The error bars do not exclude that the young and the old are alike.")

    print("\nOf those who gave one, incomes of at least 40,000:")
    enough = hr.count(income=(40_000, None))
    for low, high in [(18, 41), (42, 65), (66, 90)]:
        group = hr.count(age=(low, high)) & ~silent
        part = session.ask(hr.share(enough, where=group))
        print(f"  {low} to {high}: {part.value:6.1%} ± {part.error:.1%}")
    middle = session.ask(hr.median("income", where=~silent))
    low, high = middle.interval
    print(f"Their median income is between {low:,.0f} and {high:,.0f}.")
    print("The silent are younger, and the young earn less: this is not the median of all.")

    frame = session.sql("SELECT happy, count(*) AS people FROM data GROUP BY happy")
    print("\nA question in SQL:")
    for row in frame.itertuples(index=False):
        print(f"  happy = {row.happy:<9} {row.people:7,.0f} ± {row.people_error:,.0f} people")
    print(f"\nAll of this cost ε = {session.spent_epsilon:.2f} once. Further questions are free.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)  # a seed repeats the same noise: for tests, not private
