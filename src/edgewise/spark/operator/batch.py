"""Run a stage over a static DataFrame: one kernel per shard, fed in order of time.

Spark shuffles by shard and sorts; each task walks its sorted rows and gives every shard a kernel
of its own. Memory holds the state of one shard at a time, and its rows as Arrow: an event that
makes the kernel fail has them all fed again to a guarded one. More shards take less memory each. A
shard ends with a tick at the last event of all inputs: time moves there before it is done. Nothing
is written: a task that fails runs again as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.shard import Shard, decode_nulls, set_bad_aside
from edgewise.spark.operator.stage import OperatorStage


def build_batch_function(stage: OperatorStage) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For `DataFrame.mapInArrow`; rows are sorted by shard, then in the order of events."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        yield from run_shards(stage, batches)

    return run


def run_shards(stage: OperatorStage, batches: Iterable[Any]) -> Iterator[Any]:
    current, shard = None, None
    for rows, number in _split_by_shard(stage, batches):
        if number != current or shard is None:
            current, shard = number, Shard(stage)
        shard.feed(set_bad_aside(shard.live, rows))
        yield from shard.live.take().to_batches()


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
