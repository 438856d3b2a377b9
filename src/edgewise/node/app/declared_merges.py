"""Use aggregates of `eep` as merges of the edge: `conflate='merge(mean)'`.

`eep` and the edge do not import each other; the node knows both. A merge keeps its state as long
as its topic exists, so only aggregates whose state does not grow are here by name. An aggregate of
your own that is declared with `edgewise.aggregate` and has `merge` is a merge by the same name.
Without a declaration, in a file for `--functions`:

    spread = merge_from_aggregate("spread", Composite(low=Min(), high=Max()), samples=(1, 2.5, -3))
    bits = Merge("bits", operator.or_, commutative=True, idempotent=True, samples=(1, 2, 7))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgewise.edge.topics.merges import STOCK, Merge, MergeRegistry
from edgewise.eep import Aggregate, Count, Mean, StdDev, Variance
from edgewise.event.types import NUMERIC, AttrType
from edgewise.plan.functions import Function

SAMPLES = (0, 1, -2.5, 1_000_003, 0.125)
TEXT_SAMPLES = ("a", "b", "")

AGGREGATES: Mapping[str, Aggregate] = {
    "count": Count(),
    "mean": Mean(),
    "variance": Variance(),
    "stddev": StdDev(),
}


def merge_from_aggregate(
    name: str,
    aggregate: Aggregate,
    *,
    commutative: bool = True,
    samples: tuple[Any, ...] = (),
    takes: tuple[type, ...] = (int, float),
) -> Merge:
    """A client gets the aggregate over all values since its last update.

    A lifted value is a tuple around the state: no value off the wire is one.
    """
    return Merge(
        name,
        lambda earlier, later: (aggregate.merge(earlier[0], later[0]),),
        commutative=commutative,
        lift=lambda value: (aggregate.accumulate(aggregate.init(), value),),
        show=lambda lifted: aggregate.emit(lifted[0]),
        samples=samples,
        takes=(*takes, tuple),
    )


def merge_from_declaration(row: Function) -> Merge | None:
    """A declared aggregate as a merge, by its name without the namespace.

    None where it cannot be one: it has no `merge`, takes several arguments, or the edge has a
    merge of that name.
    """
    name, body = row.name.rpartition(":")[2].lower(), row.body
    if not isinstance(body, Aggregate) or type(body).merge is Aggregate.merge:
        return None
    if name in STOCK or name in AGGREGATES or len(row.takes) != 1:
        return None
    text = not row.takes[0].intersection(NUMERIC) and AttrType.STRING in row.takes[0]
    samples = row.samples or (TEXT_SAMPLES if text else SAMPLES)
    takes = (str,) if text else (int, float)
    return merge_from_aggregate(name, body, commutative=False, samples=samples, takes=takes)


def register_aggregates(merges: MergeRegistry, own: Iterable[Merge] = ()) -> MergeRegistry:
    """Register these and the user's own; each is checked against its laws."""
    for name, aggregate in AGGREGATES.items():
        merges.register(merge_from_aggregate(name, aggregate), SAMPLES)
    for merge in own:
        merges.register(merge)
    return merges
