"""Where an event that failed stands: its offset in its own log.

An app with several inputs numbers their events as one, in order of capture. What people look for
is the offset in the log; it is found from that number and the moment of capture.
"""

from __future__ import annotations

import functools
from typing import Any

import pyarrow as pa

from edgewise.engines.inputs import Inputs
from edgewise.engines.results import FAULTS
from edgewise.event.arrow import AT

_OFFSET = "offset"


def in_own_logs(out: dict[str, list[Any]], inputs: Inputs) -> None:
    """Of the faults among these rows; those of streams that queries write keep their number."""
    found = out.get(FAULTS.name)
    if not found or len(inputs.paths) == 1:
        return
    before = functools.cache(functools.partial(_captured_before, inputs))
    order = {stream: place for place, stream in enumerate(inputs.paths)}

    def own(stream: str, place: int, at: int) -> int:
        if stream not in order:
            return place
        others = (s for s in order if s != stream)
        return place - sum(before(s, at, ties=order[s] < order[stream]) for s in others)

    out[FAULTS.name] = [_replaced(table, own) for table in found]


def _replaced(table: Any, own: Any) -> Any:
    names = ("stream", _OFFSET, AT)
    columns = (table.column(name).to_pylist() for name in names)
    offsets = [own(*row) for row in zip(*columns, strict=True)]
    index = table.schema.get_field_index(_OFFSET)
    return table.set_column(index, _OFFSET, pa.array(offsets, pa.int64()))


def _captured_before(inputs: Inputs, stream: str, at: int, *, ties: bool) -> int:
    """How many events of a stream come before one of another that was captured `at`."""
    reader = inputs.reader(stream)
    low, high = reader.earliest(), reader.head().offset
    while low < high:
        middle = (low + high) // 2
        [batch] = reader.read(middle, middle + 1, [AT])
        captured = batch.rows.column(AT)[0].as_py()
        if captured < at or (ties and captured == at):
            low = middle + 1
        else:
            high = middle
    return low
