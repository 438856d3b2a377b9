"""Compare the plan that a checkpoint belongs to with the one that runs now, and carry its state.

Queries that stayed the same keep their state, new ones begin, removed ones are forgotten. What
cannot be carried is refused, with the name of what changed: a query that is defined otherwise or
has other keys, an input with other attributes, another number of shards. Used by `stream`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from edgewise.errors import StateError
from edgewise.kernel import compile_kernel
from edgewise.kernel.codegen.state_owners import StateLayout, compare
from edgewise.spark.operator.shard import ShardKernel
from edgewise.spark.operator.stage import OperatorStage

Entry = tuple[bytes, bytes | None]


class SavedStage(msgspec.Struct, array_like=True):
    """What state depends on: its layout, the attributes of the inputs, the ids of all shards."""

    layout: StateLayout
    inputs: dict[str, list[tuple[str, str]]]
    shards: list[int]

    @classmethod
    def of(cls, stage: OperatorStage) -> SavedStage:
        layout = compile_kernel(stage.app, stage.kernel_fragment).layout
        inputs = {s.name: [(a.name, a.type.value) for a in s.attributes] for s in stage.inputs}
        return cls(layout, inputs, list(stage.shards))


decode_stage = msgspec.msgpack.Decoder(SavedStage).decode


def carry_entries(
    stage: OperatorStage, old: SavedStage, entries: Iterable[Entry], clock: int
) -> list[Entry]:
    """State of `old` in the layout of this stage; StateError says what does not fit."""
    new = SavedStage.of(stage)
    if old.shards != new.shards:
        raise StateError(
            f"the checkpoint has {len(old.shards)} shards and the query {len(new.shards)}: pass "
            f"shards={len(old.shards)} and set spark.sql.shuffle.partitions as it was, or begin a "
            "new checkpoint with initial=state(...) over the history"
        )
    for name, attributes in old.inputs.items():
        if new.inputs.get(name, attributes) != attributes:
            raise StateError(
                f"the stream {name} has other attributes than in the checkpoint: {FIX}"
            )
    if list(old.inputs) != list(new.inputs):
        raise StateError(
            f"the checkpoint is of a query that reads {', '.join(old.inputs)}, this one reads "
            f"{', '.join(new.inputs)}: {FIX}"
        )
    change = compare([old.layout], [new.layout])
    if change.changed:
        lines = {f"query {q.name}": f" (line {q.span.line})" for q in stage.app.queries}
        named = ", ".join(f"{name}{lines.get(name, '')}" for name in change.changed)
        raise StateError(f"{named} changed since the checkpoint was written: {FIX}")
    live = ShardKernel(stage)
    held = [(key, value) for key, value in entries if value is not None]
    live.kernel.carry(old.layout, held, clock)
    return list(live.kernel.changed())


FIX = "its state does not fit; use a new checkpoint, or the app as it was"
