"""Rows on a Spark cluster: every pass over them is an aggregation there. This process holds only public state and sums.

The workers read each value by the rules of ``values`` and write features and labels once to storage that all workers
reach, so later changes of the source have no effect. A pass sends a public rule to the workers. Each worker clips and
truncates its rows as ``rows`` does, runs the same code that runs on rows in memory, and returns the digits of its sums
(``exact_sums``), which Spark adds as whole numbers. So the sums equal those of the same rows in memory to the last bit,
however the rows are partitioned and however often a worker dies and is replaced.

Each row must give the same result on every worker. Otherwise the values of one row could move other rows to another
worker and so change their last bits. So all workers must have the same arithmetic: the same versions, and processors
that round alike on a trial computation. This is checked at the start and in every pass.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow._threads import one_thread
from hedgerow._types import Array, Matrix
from hedgerow.data.schema import hide_engine_errors
from hedgerow.data.spark_frame import new_folder, quiet, select_columns
from hedgerow.erm import values
from hedgerow.erm.exact_sums import Digits, exact_sum, row_products
from hedgerow.erm.problem import Problem
from hedgerow.erm.rows import Norm, in_whole_units
from hedgerow.erm.units import kept_rows, persons
from hedgerow.errors import InvalidInput

Rule = Callable[[Problem], tuple[Matrix, Matrix]]
ROW = "x binary, y double"  # Spark's schema of a row: its features as bytes, its label


class SparkRows:
    """The rows of a Spark frame. One column is the label, one may name the person, and all others are features."""

    def __init__(self, frame: Any, label: Any, unit: Any = None, most: int = 0) -> None:
        """Copy the rows to shared storage. At most ``most`` rows of each person are kept if ``unit`` names a column."""
        names = [field.name for field in frame.schema.fields]
        last = [_place(names, "y", label), *([] if unit is None else [_place(names, "unit", unit)])]
        first = [i for i in range(len(names)) if i not in last]
        if not first:
            raise InvalidInput("X must be a table of rows and columns. Found no columns but that of y. Add features.")
        self.features = len(first)
        self._held: list[Any] = []  # frames that the workers keep in memory
        self._spark = frame.sparkSession
        self._folder = new_folder(self, self._spark)
        rows = select_columns(frame, [*first, *last]).mapInArrow(
            functools.partial(_read_batches, features=self.features), ROW if unit is None else f"{ROW}, person binary"
        )
        if unit is not None:
            rows = rows.groupBy("person").applyInArrow(lambda person: _keep_rows(person, most), ROW)
        with quiet(self._spark):
            hide_engine_errors(lambda: rows.write.parquet(self._folder))
        found = hide_engine_errors(self._count_rows)
        if len(found) > 1:
            raise InvalidInput(
                "All workers must have the same versions of NumPy and SciPy, and processors that round alike. Found "
                f"{len(found)} kinds of them. Make them alike, or load the rows into memory with frame.toPandas()."
            )
        self.count, self.arithmetic = next(iter(found.values()), 0), next(iter(found), "")

    is_dense = False

    def _count_rows(self) -> dict[str, int]:
        """Return the number of rows that each kind of worker has read. Empty if there are no rows."""
        counted = self._copy().mapInArrow(_count_partition, "arithmetic string, rows bigint")
        return {kind: int(rows) for kind, rows in counted.groupBy("arithmetic").sum("rows").collect()}

    def _copy(self) -> Any:
        """Return the stored copy as a frame."""
        return self._spark.read.schema(ROW).parquet(self._folder)

    def clip_rows(self, bound: float, norm: Norm, unit: float) -> Matrix:
        """Return no rows: all of them are on the cluster."""
        return np.zeros((0, self.features))

    def labels(self) -> Array:
        """Return no labels: all of them are on the cluster."""
        return np.zeros(0)

    def problem(self, posed: Problem) -> Problem:
        """Return the problem with these public facts, whose rows stay on the cluster, clipped and in whole units."""
        clip = functools.partial(_clip_batches, problem=posed, arithmetic=self.arithmetic)
        clipped = self.keep_on_workers(self._copy().mapInArrow(clip, ROW))
        fields = {field.name: getattr(posed, field.name) for field in dataclasses.fields(Problem)}
        return ClusterProblem(**fields, rows=clipped, source=self)

    def keep_on_workers(self, frame: Any) -> Any:
        """Keep a frame in the workers' memory, with their disks as overflow, until ``close``."""
        self._held.append(frame.persist())
        return self._held[-1]

    def close(self) -> None:
        """Free the workers' memory and empty the stored copy.

        If the Spark session is dead, its memory is already gone, and the copy may stay.
        """

        def empty() -> None:
            for frame in self._held:
                frame.unpersist()
            self._spark.createDataFrame([], ROW).write.mode("overwrite").parquet(self._folder)

        try:
            empty()
        except Exception:  # the call itself has already reported the failure
            return


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ClusterProblem(Problem):
    """A problem whose rows are a frame on the cluster. Its ``X`` and ``y`` are empty."""

    rows: Any = None
    source: Any = None
    features: NDArray[np.intp] | None = None  # the columns in use, or None for all

    @property
    def is_here(self) -> bool:
        """False."""
        return False

    @property
    def held_rows(self) -> int:
        """The number of rows on the cluster. Private if n is."""
        return int(self.source.count)

    def with_features(self, kept: NDArray[np.intp]) -> Self:
        """Return the same rows with these features only."""
        rest = np.arange(self.p) if self.features is None else self.features
        return dataclasses.replace(self, X=self.X[:, kept], p=int(kept.size), features=rest[kept])

    def of_each_row(self, rule: Callable[[Problem], Array]) -> Any:
        """Return a frame of the rows with their weights."""
        weigh = functools.partial(_weigh_batches, rows_of=self._rows_of, rule=rule, arithmetic=self.source.arithmetic)
        return self.source.keep_on_workers(self.rows.mapInArrow(weigh, f"{ROW}, weight double"))

    def gradient(
        self, theta: Array, keep: NDArray[np.int64] | None = None, weights: Any = 1.0, cut: bool = True
    ) -> Array:
        """Return the sum of gradients over all rows on the cluster. Private."""
        assert keep is None  # `require_here` has refused what needs it
        total = self._sum_on_workers(
            weights if hasattr(weights, "mapInArrow") else self.rows, functools.partial(_slopes, theta=theta),
            self.bits, self.slope_bits, weighted=hasattr(weights, "mapInArrow"),
        )  # fmt: skip
        return self.capped_sum(total, self.held_rows, cut)

    def sums(self, rule: Rule, bits: int, more_bits: int) -> Array:
        """Return the sums of the rule over all rows on the cluster. Private."""
        return self._sum_on_workers(self.rows, lambda problem, weights: rule(problem), bits, more_bits)

    def _sum_on_workers(self, rows: Any, rule: Any, bits: int, more_bits: int, weighted: bool = False) -> Array:
        """Let the workers apply the rule to their rows, and add up the digits of their sums."""
        left, right = rule(self._here, np.ones(0))
        shape = exact_sum(left, right, bits, more_bits).shape
        digits = Digits(bits, more_bits)
        flat = np.zeros((digits.lines, int(np.prod(shape))), np.int64)
        work = functools.partial(
            _digits,
            rows_of=self._rows_of,
            rule=rule,
            digits=digits,
            weighted=weighted,
            arithmetic=self.source.arithmetic,
        )

        def add_up() -> None:
            found = rows.mapInArrow(work, "place bigint, digit bigint").groupBy("place").sum("digit").toArrow()
            flat.reshape(-1)[found.column(0).to_numpy()] = found.column(1).to_numpy()

        hide_engine_errors(add_up)
        return Digits(bits, more_bits, flat.reshape(-1, *shape)).total(self.held_rows)

    @property
    def _here(self) -> Problem:
        """The public facts, without any row."""
        return Problem(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Problem)})

    @property
    def _rows_of(self) -> Callable[[Any], Problem]:
        """A function from a batch of rows to a problem that holds them."""
        return functools.partial(_problem_of, public=self._here, features=self.features)


def _place(names: list[str], what: str, name: Any) -> int:
    """Return the position of the named column. Refuse a name that the frame does not have exactly once."""
    if not isinstance(name, str) or names.count(name) != 1:
        raise InvalidInput(
            f"{what} must be the name of one column if X is a Spark frame. Found "
            f"{repr(name) if isinstance(name, str) else 'a ' + type(name).__name__}. Give a name that the frame has "
            "once."
        )
    return names.index(name)


# The functions below run on the workers.


def _read_batches(batches: Iterable[Any], features: int) -> Iterator[Any]:
    """Yield features, labels and persons of each batch, read by the rules of ``values``."""
    import pyarrow as pa

    for batch in batches:
        columns = [
            values.labels(_texts(column) if _is_text(column) else column.to_numpy(zero_copy_only=False))
            for column in batch.columns[: features + 1]
        ]
        found = {"x": _pack_rows(np.column_stack(columns[:-1])), "y": pa.array(columns[-1])}
        if batch.num_columns > features + 1:
            whose = batch.column(features + 1)
            whose = persons(_texts(whose) if _is_text(whose) else whose.to_pylist())
            found["person"] = pa.array(whose, pa.binary())
        yield pa.record_batch(found)


def _is_text(column: Any) -> bool:
    """Return True for a column of text."""
    import pyarrow as pa

    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def _texts(column: Any) -> list[str | None]:
    """Return the texts of a column.

    Spark's texts may hold any bytes, and one that is not UTF-8 must not fail the call.
    """
    import pyarrow as pa

    held = column.cast(pa.large_binary()).to_pylist()
    return [None if text is None else text.decode("utf-8", "replace") for text in held]


def _pack_rows(X: Matrix) -> Any:
    """Return each row's numbers as bytes."""
    import pyarrow as pa

    rows = np.ascontiguousarray(X, np.float64)
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * rows.shape[1]), len(rows), [None, pa.py_buffer(rows)])
    return fixed.cast(pa.binary())


def _unpack_rows(column: Any, features: int) -> Matrix:
    """Return rows of numbers from their bytes."""
    import pyarrow as pa

    whole = column.cast(pa.large_binary())
    ends = np.frombuffer(whole.buffers()[1], np.int64)[whole.offset : whole.offset + len(whole) + 1]
    held = np.frombuffer(whole.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    return np.frombuffer(held.tobytes(), np.float64).reshape(len(whole), features)


def _keep_rows(rows: Any, most: int) -> Any:
    """Keep at most ``most`` of the rows of one person."""
    rows = rows.combine_chunks()
    person = rows.column("person").to_pylist()
    y = rows.column("y").to_numpy()
    packed = rows.column("x").combine_chunks()
    X = _unpack_rows(packed, len(packed[0].as_py()) // 8)
    return rows.take(kept_rows(X, y, person, most)).select(["x", "y"])


def _count_partition(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the number of rows in a partition, with the arithmetic of its worker."""
    import pyarrow as pa

    yield pa.record_batch({"arithmetic": [arithmetic()], "rows": [sum(batch.num_rows for batch in batches)]})


@functools.cache
def arithmetic() -> str:
    """Return a description of how this process computes: versions, and a hash of a few thousand results."""
    import scipy

    x = np.sin(np.arange(1, 4097.0))
    tried = [np.vecdot(x.reshape(-1, size), x[:size]) for size in (4, 8, 32, 64)]
    tried += [np.exp(x), np.log1p(np.abs(x)), np.sqrt(np.abs(x)), scipy.special.expit(5 * x), x / 3, x**3]
    digest = hashlib.sha256(b"".join(each.tobytes() for each in tried)).hexdigest()
    return f"numpy {np.__version__}, scipy {scipy.__version__}, {digest}"


@np.errstate(all="ignore")
def _clip_batches(batches: Iterable[Any], problem: Problem, arithmetic: str) -> Iterator[Any]:
    """Yield each batch clipped and in whole units."""
    import pyarrow as pa

    for batch in batches:
        _require_arithmetic(arithmetic)  # check here too, because another worker may sum the kept rows
        X = _unpack_rows(batch.column(0), problem.p)
        rows = in_whole_units(X, problem.row_bound, problem.norm, problem.unit)
        labels = problem.prepare_labels(batch.column(1).to_numpy())
        yield pa.record_batch({"x": _pack_rows(rows), "y": pa.array(np.asarray(labels, np.float64))})


def _problem_of(batch: Any, public: Problem, features: NDArray[np.intp] | None) -> Problem:
    """Return the rows of a batch as a problem."""
    if features is None:
        X = _unpack_rows(batch.column(0), public.p)
    else:
        width = len(batch.column(0)[0].as_py()) // 8 if batch.num_rows else int(features.max()) + 1
        X = np.ascontiguousarray(_unpack_rows(batch.column(0), width)[:, features])
    return dataclasses.replace(public, X=X, y=batch.column(1).to_numpy())


def _weigh_batches(
    batches: Iterable[Any], rows_of: Callable[[Any], Problem], rule: Callable[[Problem], Array], arithmetic: str
) -> Iterator[Any]:
    """Yield each batch with the weights that the rule gives its rows."""
    import pyarrow as pa

    with one_thread:
        for batch in batches:
            _require_arithmetic(arithmetic)
            weights = pa.array(rule(rows_of(batch)))
            yield pa.record_batch({"x": batch.column(0), "y": batch.column(1), "weight": weights})


@np.errstate(all="ignore")
def _slopes(problem: Problem, weights: Array, theta: Array) -> tuple[Matrix, Matrix]:
    """Return features and slopes at θ, in whole units."""
    slopes = problem.loss.derivative(row_products(problem.X, theta * problem.unit), problem.y) * weights
    return problem.X, problem.slopes_in_units(slopes)


def _digits(
    batches: Iterable[Any],
    rows_of: Callable[[Any], Problem],
    rule: Any,
    digits: Digits,
    weighted: bool,
    arithmetic: str,
) -> Iterator[Any]:
    """Yield the digits of a partition's sums, each with its place."""
    import pyarrow as pa

    with one_thread:
        for batch in batches:
            problem = rows_of(batch)
            weights = batch.column(2).to_numpy() if weighted else np.ones(batch.num_rows)
            digits.add(*rule(problem, weights))
    if digits.values is not None:
        _require_arithmetic(arithmetic)
        flat = digits.values.reshape(-1)
        places = np.flatnonzero(flat)
        yield pa.record_batch({"place": places, "digit": flat[places]})


def _require_arithmetic(expected: str) -> None:
    """Raise on a worker whose arithmetic differs from that of the first pass."""
    if arithmetic() != expected:
        raise RuntimeError("a worker of another kind has joined")
