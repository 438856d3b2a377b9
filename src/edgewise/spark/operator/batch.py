"""Run a stage over a static DataFrame: one kernel per shard, fed in order of time.

Spark shuffles by shard and sorts; each task walks its sorted rows and gives every shard a kernel
of its own. Memory holds the state of one shard at a time, and its rows as Arrow: an event that
makes the kernel fail has them all fed again to a guarded one. More shards take less memory each. A
shard ends with a tick at the last event of all inputs: time moves there before it is done. Nothing
is written: a task that fails runs again as a whole.

A stage without state needs no shards and no order: its rows go through a kernel where they are, in
batches and in streams alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.shard import Shard, decode_nulls, set_bad_aside
from edgewise.spark.operator.shard_state import pack_state
from edgewise.spark.operator.stage import OperatorStage

MapInArrow = Callable[[Iterable[Any]], Iterator[Any]]


def build_batch_function(stage: OperatorStage) -> MapInArrow:
    """For `DataFrame.mapInArrow`; rows are sorted by shard, then in the order of events."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        yield from run_shards(stage, batches)

    return run


def build_stateless_function(stage: OperatorStage) -> MapInArrow:
    """As above for a stage without state: rows in any order."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        shard = Shard(stage)
        for rows, _ in _split_by_shard(stage, batches):
            shard.feed(set_bad_aside(shard.live, rows), list)
            yield from shard.live.take().to_batches()

    return run


def build_state_function(stage: OperatorStage) -> MapInArrow:
    """As `build_batch_function`, with the state at the end in place of the rows."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        shard, current = None, -1
        for number, live in _feed_shards(stage, batches):
            live.live.take()
            if shard is not None and number != current:
                yield from pack_state(current, shard.live)
            shard, current = live, number
        if shard is not None:
            yield from pack_state(current, shard.live)

    return run


def run_shards(stage: OperatorStage, batches: Iterable[Any]) -> Iterator[Any]:
    for _, shard in _feed_shards(stage, batches):
        yield from shard.live.take().to_batches()


def _feed_shards(stage: OperatorStage, batches: Iterable[Any]) -> Iterator[tuple[int, Shard]]:
    """Each shard after each part of its rows."""
    current, shard = None, None
    for rows, number in _split_by_shard(stage, batches):
        if number != current or shard is None:
            current, shard = number, Shard(stage)
        shard.feed(set_bad_aside(shard.live, rows))
        yield number, shard


def _split_by_shard(stage: OperatorStage, batches: Iterable[Any]) -> Iterator[tuple[Any, int]]:
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = pa.Table.from_batches([batch]).cast(stage.input_schema)
        rows = decode_nulls(stage, rows)
        shards = rows.column(columns.SHARD).to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(shards)) + 1).tolist(), len(shards)]
        for start, end in pairwise(edges):
            yield rows.slice(start, end - start), int(shards[start])
