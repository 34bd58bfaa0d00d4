"""A Spark frame: its columns, and the form in which workers receive them.

Numbers, booleans, texts and bytes come as they are. Every other type comes as its text, to which Spark casts any value
(a time in the session's time zone). Types without a text are refused by name, before any row is read.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hedgerow.data import schema
from hedgerow.data.schema import BatchSource, folder_of
from hedgerow.errors import InvalidInput

KINDS: dict[str, schema.Kind] = {
    "byte": "whole", "short": "whole", "integer": "whole", "long": "whole", "float": "number", "double": "number",
    "decimal": "number", "boolean": "truth", "date": "date", "timestamp": "date", "timestamp_ntz": "date",
    "time": "time", "string": "text", "char": "text", "varchar": "text",
}  # fmt: skip
AS_THEY_ARE = ("byte", "short", "integer", "long", "float", "double", "boolean", "string", "binary")  # sent unchanged
BY_TEXT = (  # cast to text
    "decimal", "date", "timestamp", "timestamp_ntz", "time", "char", "varchar", "void", "array", "map", "struct",
    "day-time interval", "daytimeinterval", "year-month interval", "yearmonthinterval", "interval",
)  # fmt: skip


LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # pyspark's, which print what a JVM's error says
_turning, _quieted = threading.Lock(), list[Any]()


def spark_frame(source: Any) -> Any:
    """Return the Spark frame that a source is, or that is behind an Ibis table, or None for other sources."""
    families = {kind.__module__.split(".")[0] for kind in type(source).__mro__}
    if "pyspark" in families and hasattr(source, "mapInArrow"):
        return source
    if "ibis" in families and hasattr(source, "to_pyarrow_batches"):
        with contextlib.suppress(Exception):  # a missing or dead backend is reported where the source is opened
            engine = source.get_backend()
            return engine.raw_sql(str(engine.compile(source))) if engine.name == "pyspark" else None
    return None


def of_spark(frame: Any) -> BatchSource:
    """Return a Spark frame as a source. Its rows come to this process in batches, one partition after the other."""
    names = [field.name for field in frame.schema.fields]

    def batches(positions: Sequence[int]) -> Iterator[list[Any]]:
        import pyarrow as pa

        with quiet(frame.sparkSession):
            for (packed,) in select_columns(frame, positions).mapInArrow(_pack, "rows binary").toLocalIterator():
                with pa.ipc.open_stream(bytes(packed)) as rows:
                    yield from ([batch.column(i) for i in range(len(positions))] for batch in rows)

    return BatchSource(names, batches, [schema.Column(KINDS.get(kind)) for kind in _kinds(frame)])


def select_columns(frame: Any, positions: Sequence[int]) -> Any:
    """Select the columns at these positions, and name them c0, c1 and so on."""
    kinds = _kinds(frame)
    strange = sorted({kinds[i] for i in positions if kinds[i] not in (*AS_THEY_ARE, *BY_TEXT)})
    if strange:
        raise InvalidInput(
            f"A declared column must have a type with a text. Found {strange[0]!r}. Convert it, or take it out of the "
            "universe."
        )
    numbered = frame.toDF(*(f"c{i}" for i in range(len(kinds))))  # by position, because names may contain anything
    columns = [numbered[f"c{i}"] for i in positions]
    return numbered.select(
        *(
            (column if kinds[i] in AS_THEY_ARE else column.cast("string")).alias(f"c{k}")
            for k, (i, column) in enumerate(zip(positions, columns, strict=True))
        )
    )


@contextlib.contextmanager
def quiet(session: Any) -> Iterator[None]:
    """Turn off the logs of Spark's driver while it reads rows, because they quote a value on which it fails.

    Where the work failed they stay off, for tasks that are cancelled log the same value later. Workers elsewhere have
    logs of their own.
    """
    root = _root_logger(session)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    with _turning:
        if root is not None:
            _quieted.append(root.getLevel())
            session.sparkContext.setLogLevel("OFF")
        for logger in loggers:
            logger.disabled = True
    failed = True
    try:
        yield
        failed = False
    except GeneratorExit:  # whoever reads needs no more rows
        failed = False
        raise
    finally:
        with _turning:
            level = _quieted.pop() if root is not None else None
            if not failed and level is not None and not _quieted:
                with contextlib.suppress(Exception):  # the session may be gone
                    session.sparkContext.setLogLevel(level.toString())
            for logger in loggers:
                logger.disabled = bool(_quieted)


def _root_logger(session: Any) -> Any:
    """Return the driver's own; None where the driver is behind Spark Connect, and so are its logs."""
    with contextlib.suppress(Exception):
        return session.sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    return None


def new_folder(owner: object, session: Any) -> str:
    """Return a new folder for a copy that is written once.

    It is below Spark's checkpoint folder if there is one. Otherwise all workers must be on this machine, and it is a
    temporary folder that only the current user can open, which is removed with ``owner``.
    """
    shared = session.conf.get("spark.checkpoint.dir", None)
    if shared:
        return f"{shared.rstrip('/')}/hedgerow-{uuid.uuid4().hex}"
    if not str(session.conf.get("spark.master", "")).startswith("local"):
        raise InvalidInput(
            "Spark must have a folder for the coded copy that all workers reach. Found none. Set spark.checkpoint.dir, "
            "to a folder that only the owner of the table may read."
        )
    return f"file://{folder_of(owner)}/coded"


def _kinds(frame: Any) -> list[str]:
    """Return Spark's names of the columns' types."""
    return [field.dataType.typeName() for field in frame.schema.fields]


def _pack(batches: Iterable[Any]) -> Iterator[Any]:
    """Serialize each batch of rows into one binary value."""
    import pyarrow as pa

    for batch in batches:
        held = pa.BufferOutputStream()
        with pa.ipc.new_stream(held, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch({"rows": pa.array([held.getvalue().to_pybytes()], pa.binary())})
