"""Ask a table with dates: months, days of the week, and a trend: python examples/flights.py

Dates are declared by month, the shortest period that is asked about: a table has few rows for each single day, so bars
of days would be wide. The day of the week gets a column of its own. The flights are made up: they are late more often in
summer, and on Fridays.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

import hedgerow as hr

WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
CARRIERS = ["AA", "B6", "DL", "UA"]


def flights() -> pd.DataFrame:
    """Make up 40,000 flights of 2023."""
    rng = np.random.default_rng(3)
    rows = 40_000
    day = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 365, rows), unit="D")
    summer, friday = np.isin(day.month, [6, 7, 8]), day.day_of_week == 4
    delay = rng.gamma(2.0, 6.0 + 9.0 * summer + 6.0 * friday) - 5
    return pd.DataFrame({"day": day, "carrier": rng.choice(CARRIERS, rows), "delay": delay, "late": delay > 30})


def with_weekday(table: pd.DataFrame) -> pd.DataFrame:
    """Add a column that follows from each row alone."""
    return table.assign(weekday=table["day"].dt.day_name())


def main(seed: int | None) -> None:
    universe = hr.Universe(
        day=hr.Dates("2023-01-01", "2023-12-31", by="month"),
        weekday=hr.Categories(WEEKDAYS),
        carrier=hr.Categories(CARRIERS),
        delay=hr.Range(-10, 110, bins=24),
        late=hr.Flag(),
    )
    # What matters is how delays depend on the date, so most of the budget goes there.
    workload = [("day", "late"), ("weekday", "late"), ("day", "delay")]
    budget = hr.Budget(epsilon=1, delta=1e-7)
    session = hr.open(with_weekday(flights()), universe=universe, budget=budget, workload=workload, seed=seed)

    late = hr.count(late=True)
    print("Late flights, by month:")
    months = session.ask(hr.group_by("day", by="month").share(late))
    for row in months.frame.itertuples(index=False):
        print(f"  {row.day}  {row.value:6.1%} ± {row.error:.1%}  {'#' * round(50 * row.value)}")

    print("\nLate flights, by day of the week:")
    week = session.ask(hr.group_by("weekday").share(late))
    for row in week.frame.itertuples(index=False):
        print(f"  {row.weekday:<9} {row.value:6.1%} ± {row.error:.1%}")
    worst = week.frame.loc[week.frame["value"].idxmax()]
    others = week.frame[week.frame["weekday"] != worst["weekday"]]
    clear = worst["value"] - worst["error"] > (others["value"] + others["error"]).max()
    print(
        f"{worst['weekday']} is the worst day"
        + (": its bar is above all others." if clear else ", as far as it seems.")
    )

    july = session.ask(hr.count(day="2023-07", late=True), scale="rows")  # a text for a month means all of its days
    print(f"\nLate flights in July: {july.value:,.0f} ± {july.error:,.0f}.")
    halves = session.ask(hr.histogram("day", ["2023-01-01", "2023-07-01", "2023-12-31"]))
    print(f"Flights in the first half of the year: {halves.value[0]:.1%} ± {halves.error[0]:.1%}.")
    summer, winter = hr.count(day=("2023-06-01", "2023-08-31")), hr.count(day=("2023-01-01", "2023-02-28"))
    gap = session.ask(hr.difference(hr.mean("delay", where=summer), hr.mean("delay", where=winter)))
    print(f"A flight in summer is later than one in winter by {gap.value:.1f} ± {gap.error:.1f} minutes, on average.")
    trend = session.ask(hr.trend(late, over="day", where=hr.count(day=("2023-01-01", "2023-08-31"))))
    low, high = (30 * end for end in trend.interval)
    print(f"From January to August, the share of late flights changes by {low:+.1%} to {high:+.1%} in 30 days.")

    frame = session.sql(
        "SELECT date_trunc('quarter', day) AS quarter, count(*) AS n, avg(delay) AS delay FROM data GROUP BY 1"
    )
    print("\nThe same in SQL:")
    print(frame[["quarter", "n", "n_error", "delay", "delay_error"]].round(1).to_string(index=False))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)  # a seed repeats the same noise: for tests, not private
