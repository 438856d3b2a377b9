"""Aggregates of `eep` as merges of the edge: `conflate='merge(mean)'`.

The two rooms are strangers; the node knows both. A merge keeps its state as long as its topic
lives, so only aggregates whose state does not grow are here by name. One of your own, in a file
for `--functions`:

    spread = merge_of("spread", Composite(low=Min(), high=Max()), samples=(1, 2.5, -3))
    bits = Merge("bits", operator.or_, commutative=True, idempotent=True, samples=(1, 2, 7))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgewise.edge.merge import Merge, Merges
from edgewise.eep import Aggregate, Count, Mean, StdDev, Variance

SAMPLES = (0, 1, -2.5, 1_000_003, 0.125)

AGGREGATES: Mapping[str, Aggregate] = {
    "count": Count(),
    "mean": Mean(),
    "variance": Variance(),
    "stddev": StdDev(),
}


def merge_of(
    name: str,
    aggregate: Aggregate,
    *,
    commutative: bool = True,
    samples: tuple[Any, ...] = (),
) -> Merge:
    """What a client gets is the aggregate over all values since its last update."""
    empty = aggregate.init()
    return Merge(
        name,
        aggregate.merge,
        commutative=commutative,
        lift=lambda value: aggregate.accumulate(empty, value),
        show=aggregate.emit,
        samples=samples,
    )


def register_aggregates(merges: Merges, own: Iterable[Merge] = ()) -> Merges:
    """Those here and the user's own; each is held against its laws."""
    for name, aggregate in AGGREGATES.items():
        merges.register(merge_of(name, aggregate), SAMPLES)
    for merge in own:
        merges.register(merge)
    return merges
