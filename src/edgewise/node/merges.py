"""Aggregates of `eep` as merges of the edge: `conflate='merge(mean)'`.

The two rooms are strangers; the node knows both. A merge keeps its state as long as its topic
lives, so only aggregates whose state does not grow are here by name. One of your own:

    edge.register_merge(merge_of("spread", Composite(low=Min(), high=Max())), (1, 2.5, -3))
"""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.edge.merge import Merge, Merges
from edgewise.eep import Aggregate, Count, Mean, StdDev, Variance

SAMPLES = (0, 1, -2.5, 1_000_003, 0.125)

AGGREGATES: Mapping[str, Aggregate] = {
    "count": Count(),
    "mean": Mean(),
    "variance": Variance(),
    "stddev": StdDev(),
}


def merge_of(name: str, aggregate: Aggregate, *, commutative: bool = True) -> Merge:
    """What a client gets is the aggregate over all values since its last update."""
    empty = aggregate.init()
    return Merge(
        name,
        aggregate.merge,
        commutative=commutative,
        lift=lambda value: aggregate.accumulate(empty, value),
        show=aggregate.emit,
    )


def register_aggregates(merges: Merges) -> Merges:
    """Each is held against its laws, as any merge is."""
    for name, aggregate in AGGREGATES.items():
        merges.register(merge_of(name, aggregate), SAMPLES)
    return merges
