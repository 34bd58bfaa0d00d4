"""Protect whole patients, where a patient has several visits: python examples/hospital_visits.py

A row is a visit, and a patient may have many. The promise is about patients: nobody can tell from all that is released
whether a patient was ever there, with all of their visits. The visits are made up.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

import hedgerow as hr

KEPT = 3  # visits of a patient that count
DEPARTMENTS = ["cardiology", "dermatology", "surgery", "other"]


def visits() -> pd.DataFrame:
    """Make up 20,000 visits of 9,000 patients; emergencies are common in cardiology and rare in dermatology."""
    rng = np.random.default_rng(1)
    age = rng.integers(0, 100, 9000)
    patient = rng.choice(9000, 20_000, p=(age + 20) / (age + 20).sum())
    department = rng.choice(DEPARTMENTS, 20_000, p=[0.2, 0.3, 0.2, 0.3])
    share = pd.Series(department).map(dict(zip(DEPARTMENTS, [0.45, 0.05, 0.3, 0.2], strict=True)))
    return pd.DataFrame(
        {
            "patient": patient,
            "age": age[patient],
            "department": department,
            "emergency": rng.random(20_000) < share,
            "nights": np.minimum(rng.poisson(1 + age[patient] / 25), 14),
        }
    )


def main(seed: int | None) -> None:
    table = visits()
    most = table["patient"].value_counts().max()
    print(
        f"The table has {len(table):,} visits of {table['patient'].nunique():,} patients. One of them came {most} times."
    )

    # Public knowledge only: the hospital's departments, and ends that hold for any hospital.
    universe = hr.Universe(
        age=hr.Range(0, 100, bins=10, whole=True),
        department=hr.Categories(DEPARTMENTS),
        emergency=hr.Flag(),
        nights=hr.Integers(0, 14),
    )
    # The number of visits that are kept depends on who is in the table, so it is private: "add-remove".
    budget = hr.Budget(epsilon=2, delta=1e-6, neighbours="add-remove")
    session = hr.open(table, universe=universe, budget=budget, unit="patient", rows_per_unit=KEPT, seed=seed)
    print(f"At most {KEPT} visits of each patient count, chosen as if at random. Answers are about these visits.\n")

    emergencies = session.ask(hr.count(emergency=True))
    print(f"Emergencies: {emergencies.value:.1%} of the visits, ± {emergencies.error:.1%} guaranteed.")
    nights = session.ask(hr.mean("nights", where=hr.count(emergency=True)))
    print(f"Nights of an emergency: {nights.value:.2f} on average, ± {nights.error:.2f} guaranteed.")

    shares = session.ask(hr.group_by("department").share(hr.count(emergency=True)))
    print("\nEmergencies by department:")
    for row in shares.frame.itertuples(index=False):
        print(f"  {row.department:<12} {row.value:6.1%} ± {row.error:.1%}")

    skin = hr.count(department="dermatology")
    heart = hr.count(department="cardiology")
    emergency = hr.count(emergency=True)
    gap = session.ask(hr.difference(hr.share(emergency, where=heart), hr.share(emergency, where=skin)))
    low, high = gap.interval
    proven = "so it has more" if gap.excludes(0) and low > 0 else "so this table does not say which has more"
    print(f"\nCardiology's share minus dermatology's is between {low:.1%} and {high:.1%}, {proven}.")
    print(f"A patient, with all of their visits, lost ε = {session.spent_epsilon:.2f} of 2 at most.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)  # a seed repeats the same noise: for tests, not private
