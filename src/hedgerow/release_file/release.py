"""A published release: asked like a session, without the table, the ledger or a key."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow._checks import require_path
from hedgerow._memory import in_bytes, in_force, limit_memory
from hedgerow._threads import one_thread
from hedgerow.answer import Answer
from hedgerow.answering.answer_cache import AnswerCache, AnswerHistory
from hedgerow.answering.answers_on_record import RecordedAnswer, answers_on_record
from hedgerow.answering.askable import Askable, bind_questions
from hedgerow.answering.blocks import block_range
from hedgerow.answering.scaling import Scale, bar_of_answer, require_scale, scaled_answer
from hedgerow.answering.synthetic import require_record_options, synthetic_records
from hedgerow.engine.multi_block import BlockAnswers
from hedgerow.engine.offline_answers import ReleaseEngine
from hedgerow.engine.public import PublicAnswers
from hedgerow.errors import InvalidInput, InvalidRelease
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.noise import public_generator
from hedgerow.query.bound import Bound, Estimate
from hedgerow.query.counts import OverTime, Query, Resolution
from hedgerow.query.linear import Linear
from hedgerow.query.row_statistic import RowStatistic
from hedgerow.release_file.container import one_error, unpack
from hedgerow.release_file.document import read_document
from hedgerow.release_file.publication import Publication, PublishedBlock
from hedgerow.release_file.signing import PublicKey
from hedgerow.report import Charge
from hedgerow.universe.universe import Universe

if TYPE_CHECKING:
    import pandas as pd


# methods of a session that need its table or its ledger
NEED_TABLE = {"append", "ledger", "log", "on_behalf_of", "publish", "sample_yes_no", "sample_yes_no_stream"}


class PublishedAnswers(AnswerCache):
    """The answers of a release: recorded ones repeat, others are computed anew, which gives the same each time."""

    def __init__(self, public: PublicAnswers, recorded: Sequence[RecordedAnswer]) -> None:
        super().__init__(public, _Record({each.bound.key: each.estimate for each in recorded}))

    def keep(self, bound: Bound[Any], estimate: Estimate) -> Estimate:
        """Return the answer, and keep nothing: a release does not change."""
        return estimate

    def ready(self, query: Linear) -> Estimate | None:
        """Return the prepared answer to a query, as often as the batch asks for it; None if there is none."""
        return self.prepared.get(query.key)


class _Record:
    """The recorded answers, as the log of a cache."""

    def __init__(self, answers: Mapping[Hashable, Estimate]) -> None:
        self._answers = answers

    def note(self, question: Any, answer: Any) -> None:
        """Do nothing: a release does not change."""

    def recall(self, question: Any) -> Any | None:
        """Return the recorded answer to a question, or None."""
        return self._answers.get(question.key)


class Release(Askable):
    """Questions and answers about a table that was published. Made by ``hr.load``.

    A release is asked like a session, and every answer is free. It has no table: what would need one is refused.
    Threads may share a release. It can be pickled, and used in a fork.

    Parameters: see ``load``.

    Example
    -------
    >>> release = hr.load("people.hedgerow")
    >>> release.ask(hr.count(smoker=True)).cost
    0.0
    """

    def __init__(self, data: bytes, *, key: PublicKey | None = None, limit: int | None = None) -> None:
        """Read the bytes of a release file. Use ``hr.load`` instead of calling this."""
        self._bytes, self._key = data, key
        with limit_memory(limit):
            contents = unpack(data, in_force(), key)
            with one_error(), one_thread:
                published = read_document(contents.document)
        self.digest, self.signer = contents.digest, contents.signer
        self._begin(published, published.blocks, published.answers, limit, is_whole=True)

    @classmethod
    def of(cls, published: Publication, cache: AnswerCache, limit: int | None = None) -> Release:
        """Return the release of a publication of one block, which is in memory only.

        Parameters
        ----------
        published : Publication
            The public part of a session.
        cache : AnswerCache
            The cache that answers.
        limit : int, optional
            The memory, in bytes, that a question may use.

        Returns
        -------
        Release
        """
        made = cls.__new__(cls)
        made._bytes, made._key, made.digest, made.signer = b"", None, "", None
        made._begin(published, published.blocks, (), limit, is_whole=True)
        made._cache = cache
        return made

    def _begin(
        self,
        published: Publication,
        blocks: Sequence[PublishedBlock],
        answers: Sequence[RecordedAnswer],
        limit: int | None,
        *,
        is_whole: bool,
    ) -> None:
        """Set the fields that a release and a view of some of its blocks have in common."""
        self._published, self._blocks, self._limit, self._is_whole = published, tuple(blocks), limit, is_whole
        self._beta = math.fsum(block.beta for block in blocks)
        self._history, self._lock, self._process = AnswerHistory(), threading.RLock(), os.getpid()
        self._cache: AnswerCache
        caches = [PublishedAnswers(block.public, block.answers) for block in blocks]
        if len(blocks) == 1:
            self._engine: PublicAnswers = blocks[0].public
            self._cache, self._recorded = caches[0], tuple(blocks[0].answers)
            return
        n_is_public = blocks[0].budget.neighbours == "replace"
        self._engine = BlockAnswers([block.public for block in blocks], caches, n_is_public=n_is_public)
        self._cache, self._recorded = PublishedAnswers(self._engine, answers), tuple(answers)

    def __getattr__(self, name: str) -> Any:
        if name in NEED_TABLE:
            raise AttributeError(
                f"{name} must be called on a session, because it needs the table or its ledger. Found a published "
                "release. Ask the owner."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._is_whole:
            names = [block.name for block in self._blocks]
            return _view, (self._bytes, self._limit, names[0], names[-1])
        return _again, (self._bytes, self._limit)

    def select_blocks(self, first: str, last: str | None = None) -> Release:
        """Return a view of this release that answers about one block, or about a range of blocks.

        Parameters
        ----------
        first : str
            Name of the block, or of the first block of the range.
        last : str, optional
            Name of the last block of the range. Default: ``first``.

        Returns
        -------
        Release

        Raises
        ------
        InvalidInput
            If a block of this name was not published.

        Example
        -------
        >>> hr.load("people.hedgerow").select_blocks("january").ask(hr.count(smoker=True)).cost
        0.0
        """
        chosen = self._blocks[block_range(list(self.blocks), first, last)]
        view = Release.__new__(Release)
        view._bytes, view._key, view.digest, view.signer = self._bytes, self._key, self.digest, self.signer
        view._begin(self._published, chosen, (), self._limit, is_whole=False)
        return view

    @property
    def blocks(self) -> dict[str, PublishedBlock]:
        """Blocks by name, in order: each with its ``budget`` and ``spent``."""
        return {block.name: block for block in self._blocks}

    @property
    def universe(self) -> Universe:
        """Public universe that codes the rows."""
        return self._published.universe

    @property
    def budget(self) -> Budget:
        """Privacy budget. With several blocks: the promise to a person in any one of them."""
        budgets = [block.budget for block in self._blocks]
        return replace(budgets[0], epsilon=max(b.epsilon for b in budgets), delta=max(b.delta for b in budgets))

    @property
    def private(self) -> bool:
        """True if nobody can know the noise; False if it came from a ``seed``."""
        return self._published.private

    @property
    def spent(self) -> float:
        """Amount spent by the time of publishing, in the budget's currency."""
        return max(block.spent for block in self._blocks)

    @property
    def remaining(self) -> float:
        """Amount that was left by the time of publishing, in the budget's currency. A release cannot spend it."""
        return min(max(0.0, block.budget.total - block.spent) for block in self._blocks)

    @property
    def spent_epsilon(self) -> float:
        """Amount spent by the time of publishing, expressed as an ε at the budget's δ."""
        return max(block.spent_epsilon for block in self._blocks)

    @property
    def version(self) -> str:
        """Version of hedgerow that wrote the file."""
        return self._published.version

    @property
    def recorded(self) -> list[Answer]:
        """Answers that were published with the file, as fractions."""
        return list(answers_on_record(self._recorded, self.universe, self._engine))

    @property
    def draft_cost(self) -> tuple[float, float]:  # type: ignore[override]
        """ε and δ that drafting the universe cost before the opening, as the published statement has them."""
        found: Any = self._published.statement
        for name in ("deployment", "privacy_loss", "privacy_parameters", "of_which_draft"):
            found = found.get(name) if isinstance(found, dict) else None
        match found:
            case [int() | float() as epsilon, int() | float() as delta] if epsilon >= 0 and delta >= 0:
                return float(epsilon), float(delta)
        return 0.0, 0.0

    def statement(self) -> Any:
        """Return the privacy statement that the owner published with the file.

        Returns
        -------
        PrivacyStatement

        Example
        -------
        >>> text = hr.load("people.hedgerow").statement().markdown
        """
        from hedgerow.answering.privacy_statement import PrivacyStatement

        return PrivacyStatement(self._published.statement)

    @one_thread
    def ask(
        self,
        query: Query,
        *,
        within: float | None = None,
        scale: Scale = "fraction",
        resolution: Resolution = "values",
    ) -> Answer:
        """Answer a question for free, from what was published.

        Parameters
        ----------
        query : Query
            The question, made by ``hr.count``, ``hr.marginal``, ``hr.mean``, ``hr.minimize``, and so on.
        within : float, optional
            Error bar that the answer must have. It is refused if the bar is wider, because a release buys nothing.
        scale : {"fraction", "rows"}
            Scale of counts: a fraction of the rows, or a number of rows.
        resolution, impossible
            As in a session.

        Returns
        -------
        Answer

        Raises
        ------
        InvalidInput
            If the question does not fit the universe, or needs the table.
        """
        require_scale(scale)
        self._require_answerable(query)
        with limit_memory(self._limit):
            bound = bind_questions([query], self.universe, resolution)[0]
            return self._ask_bound(query, bound, None if within is None else bar_of_answer(within, bound), scale)

    def price(self, query: Query, *, within: float | None = None, resolution: Resolution = "values") -> float:
        """Return 0 if the answer has a bar of ``within``; refuse otherwise, because a release buys nothing."""
        self._require_answerable(query)
        with limit_memory(self._limit), self._exclusively():
            bound = bind_questions([query], self.universe, resolution)[0]
            wanted = bar_of_answer(within, bound)
            return self._cache.price(bound, wanted)

    def _require_answerable(self, query: Query) -> None:
        """Refuse a question that only the table can answer."""
        if type(query) is OverTime or type(query) is RowStatistic:
            kind = "A count over time" if type(query) is OverTime else "A statistic of raw values"
            raise InvalidInput(
                f"{kind} must be asked of a session, because it reads the table. Found a published release. Ask the "
                "owner, or ask hr.count or hr.mean."
            )

    def _ask_bound(self, query: Query, bound: Bound[Any], within: float | None, scale: Scale) -> Answer:
        self._require_answerable(query)
        with self._exclusively():
            answer = scaled_answer(query, bound, self._cache.ask(bound, within), 0.0, scale, self._engine)
            self._history.add(answer)
            return answer

    def synthetic(
        self,
        rows: int | None = None,
        *,
        resolution: Literal["values", "bins"] = "values",
        impossible: Iterable[Query] = (),
        seed: int | None = None,
    ) -> pd.DataFrame:
        """Draw synthetic records whose counts match the hypothesis.

        Parameters
        ----------
        rows : int, optional
            Number of records. Default: as many as the table had.
        resolution : {"values", "bins"}
            As in a session.
        seed : int, optional
            Makes the records repeatable. They follow from published values, so a seed does not affect privacy.

        Returns
        -------
        pandas.DataFrame
        """
        wanted = require_record_options(round(self.rows) if rows is None else rows, resolution)
        with limit_memory(self._limit), self._exclusively():
            return synthetic_records(
                self.hypothesis, wanted, lambda: public_generator(seed), resolution, self.certificate, impossible
            )

    # What the base class asks for

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Answer in turn with other threads, with linear algebra on one thread."""
        if self._process != os.getpid():  # a fork: the thread that held the lock may not exist here
            self._lock, self._process = threading.RLock(), os.getpid()
        with self._lock, one_thread:
            yield

    def _public_answers(self) -> PublicAnswers:
        return self._engine

    def _generator(self) -> np.random.Generator:
        return public_generator()

    def _require_all(self) -> None:
        """Do nothing: a release has all of its blocks."""

    def _charges(self, *, names: bool = False) -> Iterator[Charge]:
        for block in self._blocks:  # which name nobody
            yield from block.charges

    def _on_record(self) -> Iterator[RecordedAnswer]:
        yield from self._recorded

    def _numbers_given(self) -> int:
        return self._published.numbers_given

    def _facts(self) -> dict[str, Any]:
        facts = super()._facts()
        if len(self._blocks) > 1:
            facts["blocks"] = ", ".join(self.blocks)
        return facts | {"published by": f"hedgerow {self.version}", "new questions": self.new_questions}

    @property
    def new_questions(self) -> str:
        """Sentence on the bars of questions that were not asked before publishing."""
        if any(block.guarded for block in self._blocks):
            return (
                "answered by the hypothesis with the published bars; the session's guard may have given narrower ones"
            )
        if any(isinstance(block.public, ReleaseEngine) for block in self._blocks):
            return "answered as the session answered them; its workload alone has error bars"
        if self.certificate is None and not any(block.public.bounds_new_questions for block in self._blocks):
            return "answered by the hypothesis, without error bars"
        return "answered as the session answered them when this file was published"

    def __repr__(self) -> str:
        warning = "" if self.private else "NOT PRIVATE: "
        return (
            f"Release({warning}{self.universe!r}, {self.budget!r}, "
            f"spent {self.spent:.4g} of {self.budget.total:.4g} {self.budget.currency})"
        )


def load(source: str | Path | bytes, key: PublicKey | None = None, limit: int | str | None = None) -> Release:
    """Read a release file, to ask it without the table, the ledger or the owner.

    A file from a stranger can be read safely: nothing in it is executed, and it is refused if it would need more memory
    than the limit (docs/release-file.md).

    Parameters
    ----------
    source : path or bytes
        The file, or its contents.
    key : path, bytes or text, optional
        The owner's public key: a PEM file, or 64 hexadecimal digits. A file that this key did not sign is refused.
    limit : int or str, optional
        Memory that reading, and any one question, may use: in bytes, or as in "2GB". Default: half of the machine's.

    Returns
    -------
    Release

    Raises
    ------
    InvalidRelease
        If the file is damaged, was changed, is not signed by the key, or is larger than the limit.

    Example
    -------
    >>> release = hr.load("people.hedgerow")  # doctest: +SKIP
    >>> release.ask(hr.count(smoker=True))  # doctest: +SKIP
    """
    most = in_bytes(limit)
    if isinstance(source, bytes):
        return Release(source, key=key, limit=most)
    with limit_memory(most):
        allowed = in_force()
    path = require_path("The path of a release file", source)
    try:
        with path.open("rb") as file:
            data = file.read(allowed + 1)
    except (OSError, ValueError):
        raise InvalidRelease(
            f"A release file must exist and be readable. Found nothing at {str(source)!r}. Check the path."
        ) from None
    return Release(data, key=key, limit=most)


def _again(data: bytes, limit: int | None) -> Release:
    """Rebuild a pickled release. Its signature was verified before, where a key was given."""
    return Release(data, limit=limit)


def _view(data: bytes, limit: int | None, first: str, last: str) -> Release:
    """Rebuild a pickled view of some blocks."""
    return Release(data, limit=limit).select_blocks(first, last)
