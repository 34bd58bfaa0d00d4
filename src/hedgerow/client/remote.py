"""A dataset of a service that answers like a session: the same questions, the same answers, the same arithmetic."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from hedgerow import _html, wire
from hedgerow.answer import Answer
from hedgerow.client.connection import ServiceConnection
from hedgerow.errors import InvalidInput
from hedgerow.privacy.budget import Budget
from hedgerow.query.counts import Query
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd

    from hedgerow.answering.summary import Summary
    from hedgerow.engine.certificate import Certificate

Scale = Literal["fraction", "rows"]
Resolution = Literal["values", "bins"]
AT_ONCE = 1_000  # questions of one request


def connect(
    url: str,
    token: str | None = None,
    *,
    dataset: str | None = None,
    timeout: float = 180.0,
    context: ssl.SSLContext | None = None,
) -> RemoteSession:
    """Connect to a service, and ask one of its datasets as one asks a session.

    Parameters
    ----------
    url : str
        Address of the service, such as ``"https://data.example.org"``. A token is never part of it.
    token : str, optional
        Token of the person who asks. Default: the environment variable ``HEDGEROW_TOKEN``.
    dataset : str, optional
        Name of the dataset. It may be left out if the token is for one dataset.
    timeout : float
        Seconds to wait for an answer.
    context : ssl.SSLContext, optional
        Certificates to trust, for a service with a certificate of its own authority.

    Returns
    -------
    RemoteSession

    Raises
    ------
    InvalidInput
        If the address, the token or the dataset is missing or wrong.
    ServiceError
        If the service cannot be reached, or refuses the token.

    Example
    -------
    >>> people = hr.connect("https://data.example.org", dataset="people")  # doctest: +SKIP
    >>> people.ask(hr.count(smoker=True))  # doctest: +SKIP
    """
    connection = ServiceConnection(url, token, timeout, context)
    try:
        return RemoteSession(connection, _choose(dataset, connection.get("/v1/datasets")["datasets"]))
    except BaseException:
        connection.close()
        raise


def _choose(dataset: str | None, names: list[str]) -> str:
    """Return the dataset to ask: the one that was named, or the only one."""
    chosen = names[0] if dataset is None and len(names) == 1 else dataset
    if chosen is None or chosen not in names:
        known = ", ".join(names) if names else "none"
        raise InvalidInput(
            f"dataset must be one of this token's datasets: {known}. Found {chosen!r}. Name one of these."
        )
    return chosen


@dataclass(frozen=True)
class RemoteResult:
    """Rows of a statement."""

    columns: tuple[str, ...]
    records: list[tuple[Any, ...]]


class RemoteSession:
    """Questions and answers about a dataset of a service. Made by ``hr.connect``."""

    def __init__(self, connection: ServiceConnection, dataset: str) -> None:
        self._connection, self.dataset = connection, dataset
        self._at = f"/v1/datasets/{dataset}"

    @cached_property
    def _facts(self) -> dict[str, Any]:
        found: dict[str, Any] = self._connection.get(self._at)
        return found

    @cached_property
    def universe(self) -> Universe:
        """Public universe of the table."""
        return wire.from_json(self._facts["universe"], Universe)

    @property
    def budget(self) -> Budget:
        """Privacy budget of the dataset."""
        return Budget(**self._facts["budget"])

    @property
    def rows(self) -> float:
        """Number of rows: exact under replace-one, a private estimate under add/remove."""
        return float(self._facts["rows"])

    @property
    def private(self) -> bool:
        """True if nobody can know the noise."""
        return bool(self._facts["private"])

    @property
    def certificate(self) -> Certificate | None:
        """The guarantee for all small questions, asked or not, as of a session; None if nothing was certified."""
        from hedgerow.engine.certificate import Certificate, CertificateLimit

        found = self._connection.get(f"{self._at}/certificate")
        if found["certificate"] is None:
            return None
        limits = tuple(CertificateLimit(**limit) for limit in found["limits"])
        return Certificate(limits, found["typical"], found["beta_of_rows"])

    def ask(
        self, query: Query, *, within: float | None = None, scale: Scale = "fraction", resolution: Resolution = "values"
    ) -> Answer:
        """Answer a question, as ``Session.ask`` does."""
        body = {"question": wire.to_json(query), "scale": scale, "resolution": resolution, "form": "exact"}
        found = self._connection.post(f"{self._at}/ask", {**body, **({} if within is None else {"within": within})})
        return wire.from_json(found["answer"], Answer)

    def ask_all(
        self, queries: Iterable[Query], *, scale: Scale = "fraction", resolution: Resolution = "values"
    ) -> list[Answer]:
        """Answer many free questions, as ``Session.ask_all`` does."""
        if isinstance(queries, Query | str) or not isinstance(queries, Iterable):
            raise InvalidInput(
                f"queries must be a list of questions. Found {type(queries).__name__}. Put it in a list, or use ask."
            )
        asked, answers = [wire.to_json(query) for query in queries], []
        for start in range(0, len(asked), AT_ONCE):
            body = {
                "questions": asked[start : start + AT_ONCE],
                "scale": scale,
                "resolution": resolution,
                "form": "exact",
            }
            answers += self._connection.post(f"{self._at}/batch", body)["answers"]
        return [wire.from_json(answer, Answer) for answer in answers]

    def price(self, query: Query, *, within: float, resolution: Resolution = "values") -> float:
        """Return what asking with ``within`` would cost now, as ``Session.price`` does."""
        body = {"question": wire.to_json(query), "within": within, "resolution": resolution}
        return float(self._connection.post(f"{self._at}/price", body)["cost"])

    def sql(self, statement: str) -> pd.DataFrame:
        """Run a SELECT on the table ``data``, as ``Session.sql`` does."""
        import pandas as pd

        found = self.sql_result(statement)
        return pd.DataFrame(found.records, columns=list(found.columns))

    def sql_result(self, statement: str) -> RemoteResult:
        """Run a SELECT and return its rows, as a cursor needs them."""
        found = self._connection.post(f"{self._at}/sql", {"statement": statement})
        return RemoteResult(tuple(found["columns"]), [tuple(row) for row in found["rows"]])

    def synthetic(self, rows: int = 1_000) -> pd.DataFrame:
        """Draw synthetic records, as ``Session.synthetic`` does.

        Without pyarrow they come as CSV, and pandas guesses the types of the columns.
        """
        import pandas as pd

        form = "csv" if importlib.util.find_spec("pyarrow") is None else "parquet"
        content = io.BytesIO(self._connection.read(f"{self._at}/synthetic", rows=rows, format=form))
        return pd.read_csv(content, keep_default_na=False) if form == "csv" else pd.read_parquet(content)

    def describe(self) -> Summary:
        """Summarize the whole table, as ``Session.describe`` does. Free."""
        from hedgerow.answering.associations import Association, Associations
        from hedgerow.answering.summary import Summary

        found = self._connection.get(f"{self._at}/describe")
        associations = [
            Association(**{**each, "columns": tuple(each["columns"]), "values": tuple(each["values"])})
            for each in found["associations"]
        ]
        return Summary(found["columns"], found["errors"], Associations(associations))

    def statement(self) -> dict[str, Any]:
        """Return the privacy statement: what is protected, how, what was spent, and what is not covered."""
        found: dict[str, Any] = self._connection.get(f"{self._at}/statement")
        return found

    def approvals(self, most: int = 100) -> pd.DataFrame:
        """Return this person's purchases that wait for an owner or were decided, each with its state."""
        import pandas as pd

        return pd.DataFrame(self._connection.get(f"{self._at}/approvals", most=most)["approvals"])

    def history(self, most: int = 100) -> pd.DataFrame:
        """Return this person's own latest requests."""
        import pandas as pd

        return pd.DataFrame(self._connection.get(f"{self._at}/history", most=most)["requests"])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> RemoteSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RemoteSession({self.dataset!r}, {self._connection!r})"

    def _repr_html_(self) -> str:
        facts = [
            ("dataset", self.dataset),
            ("rows", f"{self.rows:,.0f} ({self._facts['rows_are']})"),
            ("budget", str(self.budget)),
            ("columns", ", ".join(self.universe.names)),
        ]
        return _html.table(("a dataset of a service", ""), facts)


async def connect_async(url: str, token: str | None = None, **options: Any) -> AsyncRemoteSession:
    """Connect as ``connect`` does, without blocking the event loop."""
    return AsyncRemoteSession(await asyncio.to_thread(connect, url, token, **options))


class AsyncRemoteSession:
    """The twin of ``RemoteSession`` for programs with an event loop. Requests wait in a thread."""

    def __init__(self, remote: RemoteSession) -> None:
        self.remote = remote

    async def ask(self, query: Query, **options: Any) -> Answer:
        """Answer a question, as ``Session.ask`` does."""
        return await asyncio.to_thread(self.remote.ask, query, **options)

    async def ask_all(self, queries: Iterable[Query], **options: Any) -> list[Answer]:
        """Answer many free questions, as ``Session.ask_all`` does."""
        return await asyncio.to_thread(self.remote.ask_all, queries, **options)

    async def price(self, query: Query, **options: Any) -> float:
        """Return what a question would cost now, as ``Session.price`` does."""
        return await asyncio.to_thread(self.remote.price, query, **options)

    async def sql(self, statement: str) -> pd.DataFrame:
        """Run a SELECT on the table ``data``, as ``Session.sql`` does."""
        return await asyncio.to_thread(self.remote.sql, statement)

    async def synthetic(self, rows: int = 1_000) -> pd.DataFrame:
        """Draw synthetic records, as ``Session.synthetic`` does."""
        return await asyncio.to_thread(self.remote.synthetic, rows)

    async def describe(self) -> Summary:
        """Summarize the whole table, as ``Session.describe`` does."""
        return await asyncio.to_thread(self.remote.describe)

    async def certificate(self) -> Certificate | None:
        """Return the guarantee for all small questions, asked or not."""
        return await asyncio.to_thread(lambda: self.remote.certificate)

    async def universe(self) -> Universe:
        """Return the public universe of the table."""
        return await asyncio.to_thread(lambda: self.remote.universe)

    async def statement(self) -> dict[str, Any]:
        """Return the privacy statement."""
        return await asyncio.to_thread(self.remote.statement)

    async def approvals(self, most: int = 100) -> pd.DataFrame:
        """Return this person's purchases that wait for an owner or were decided."""
        return await asyncio.to_thread(self.remote.approvals, most)

    async def history(self, most: int = 100) -> pd.DataFrame:
        """Return this person's own latest requests."""
        return await asyncio.to_thread(self.remote.history, most)

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self.remote.close)

    async def __aenter__(self) -> AsyncRemoteSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
