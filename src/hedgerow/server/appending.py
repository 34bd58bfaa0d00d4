"""Append rows to a dataset as a block with its own budget, and note the block in the dataset's file."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.server.answer_queue import Meter
from hedgerow.server.dataset import Dataset
from hedgerow.server.desk_file import add_to, block_text
from hedgerow.server.registrar import Registrar
from hedgerow.server.sources import Place, Source, kind_of
from hedgerow.session import Session

FOLDER = ".blocks"  # for uploads to datasets that were not registered


async def append_block(
    registrar: Registrar,
    dataset: Dataset,
    analyst: str,
    meter: Meter,
    block: str,
    source: Source,
    budget: tuple[float, float] | None,
) -> dict[str, Any]:
    """Append a block, and return its public facts.

    The file is written after the ledger: if this is interrupted, the same call goes on and bills nothing twice.
    """
    async with registrar.deciding:
        path, found = registrar.file_of(dataset.name)
        place = registrar.sources.find(source, registrar.uploads.path)
        csv = _require_same_format(path, source, place)
        marks = await asyncio.to_thread(registrar.marks_of, place)
        await registrar.require_new(marks)
        if any(each.draft != (0.0, 0.0) for each in registrar.store.with_marks(marks)):
            raise InvalidInput(
                "A block must be a table of which no draft was paid for. Found one whose people have paid for a "
                "draft. Register it as a dataset, whose budget includes the draft."
            )
        usual = dataset.session.budget
        wanted = None if budget is None else hr.Budget(*budget, usual.neighbours)
        if block in dataset.session.blocks:
            raise InvalidInput("block must be a new name. Found that of another block. Choose another.")
        where = place.source
        folder = path.parent if found is not None else registrar.rule.folder / FOLDER
        if source.upload:
            where = str(folder / f"{source.upload}{kind_of(where)}")
        note: dict[str, Any] = {"name": block, "source": where, **({"table": place.table} if place.table else {})}
        if budget is not None:
            note |= {"epsilon": budget[0], "delta": budget[1]}
        text = block_text(note)  # refused before anything is moved or spent
        if source.upload:
            folder.mkdir(mode=0o700, exist_ok=True)
            place.path.replace(where)  # type: ignore[union-attr]
        located = registrar.sources.locate(Place(where, place.table))

        def work(session: Session) -> dict[str, Any]:
            made = session.append(located, block=block, table=place.table, csv=csv, budget=wanted).blocks[block]
            add_to(path, text)
            rows = round(made.rows) if usual.neighbours == "replace" else None
            return {"block": block, "rows": rows, "blocks": list(session.blocks)}

        try:
            made = await dataset.run(analyst, work, meter)
        except BaseException:
            if source.upload:  # the same call can be made again
                Path(where).replace(place.source)
            raise
        if source.upload:
            registrar.uploads.remove(source.upload)
        if found is not None:
            registrar.store.change(found.id, "open", marks=(*found.marks, *marks))
        return made


def _require_same_format(path: Path, source: Source, place: Place) -> hr.Csv | None:
    """Return the format of the dataset's text files, which its blocks share, and refuse a block of another."""
    given = tomllib.loads(path.read_text(encoding="utf-8")).get("csv", {})
    is_parquet = place.path is not None and kind_of(place.path.name) == ".parquet"
    if source.csv() is not None or (given and is_parquet):
        raise InvalidInput(
            "A block must have the format of the first table. Found another format. Convert the file, and leave the "
            "format out."
        )
    return hr.Csv(**given) if given and place.table is None else None
