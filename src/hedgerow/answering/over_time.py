"""Counts over time: bind one to the blocks of a session, and turn its noisy sums into an answer."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.answer import Answer
from hedgerow.answering.blocks import Block
from hedgerow.engine.over_time import BlockSource, Node, Series, estimate_counts
from hedgerow.errors import InvalidInput
from hedgerow.privacy.noise import Noise
from hedgerow.query.bound import Source
from hedgerow.query.counts import OverTime, Resolution


def series_of(
    query: OverTime,
    blocks: Sequence[Block],
    noise: Noise,
    within: float | None,
    resolution: Resolution,
    *,
    is_whole: bool,
) -> Series:
    """Bind a count over time to the blocks of a session. ``is_whole`` tells that these are all of its blocks."""
    if within is not None:
        raise InvalidInput(
            f"within must be left out of a count over time. Found {within!r}. Set its cost by its share: "
            "over_time(share=0.02)."
        )
    if not is_whole:
        raise InvalidInput(
            "A count over time must be about all blocks, from the first on. Found some of them. Ask the session itself."
        )
    columns = [BlockSource(block.data, block.ledger) for block in blocks]
    return Series(query, query.counts(blocks[0].data.universe, resolution), columns, noise)


def answer_over_time(
    query: OverTime, series: Series, nodes: Sequence[Node], blocks: Sequence[Block], cost: float
) -> Answer:
    """Estimate the rows of each block, and of all blocks up to it, from the noisy sums ``nodes``."""
    count = len(blocks)
    # half of the β of appended blocks, divided over all series and all numbers of blocks that a series may have
    beta = blocks[0].beta / 2 / (series.number * (series.number + 1)) / (count * (count + 1))
    values, errors, typical = estimate_counts(nodes, count, query.span, beta)
    labels = (("block", tuple(block.name for block in blocks)), ("count", ("in it", "so far")))
    source: Source = "measured" if cost else "repeat"
    return Answer(query, values, errors, source, cost, labels, typical=typical)
