"""Where an event that failed stands, and what it was: its offset in its own log, the whole of it.

An app with several inputs numbers their events as one, in order of capture. What people look for
is the offset in the log; it is found from that number and the moment of capture. Queries are only
handed what they read of an event: the rest of it is read again from the log.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from edgewise.engines.inputs import Inputs
from edgewise.engines.kernel.runtime import NO_TIME
from edgewise.engines.results import FAULTS, event_text
from edgewise.errors import LogError
from edgewise.event.arrow import AT, SYSTEM_COUNT, from_arrow, from_column

_NAMES = ("stream", "offset", "event")

Told = tuple[str, int, str]  # the columns _NAMES of a fault


def in_own_logs(out: dict[str, list[Any]], inputs: Inputs) -> None:
    """Of the faults among these rows; those of streams that queries write stay as they are."""
    if found := out.get(FAULTS.name):
        place = _places(inputs)
        out[FAULTS.name] = [_replaced(table, place, inputs) for table in found]


def _replaced(
    table: Any, place: Callable[[str, int, int], tuple[str, int]], inputs: Inputs
) -> Any:
    columns = [table.column(name).to_pylist() for name in ("stream", "offset", AT, "event")]
    told = [(*place(*where), text) for *where, text in zip(*columns, strict=True)]
    alone = Counter((stream, offset) for stream, offset, _ in told)  # more are a chunk, as one
    told = [_whole(inputs, row) if alone[row[:2]] == 1 else row for row in told]
    for name, values in zip(_NAMES, zip(*told, strict=True), strict=False):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, pa.array(values, table.schema.field(name).type))
    return table


def _places(inputs: Inputs) -> Callable[[str, int, int], tuple[str, int]]:
    """From a stream, a number in the order of capture and its moment: the stream, its offset."""
    before = functools.cache(functools.partial(_captured_before, inputs))
    order = {stream: place for place, stream in enumerate(inputs.paths)}

    def own(stream: str, place: int, at: int) -> int:
        others = (s for s in order if s != stream)
        return place - sum(before(s, at, ties=order[s] < order[stream]) for s in others)

    def place_of(stream: str, place: int, at: int) -> tuple[str, int]:
        if stream in order:
            return stream, own(stream, place, at)
        if stream == NO_TIME:
            for name in order:
                offset = own(name, place, at)
                if before(name, at, ties=False) <= offset < before(name, at, ties=True):
                    return name, offset
        return stream, place

    return place_of


def _whole(inputs: Inputs, row: Told) -> Told:
    """With the event as its log has it, where that is the one the query saw a part of."""
    stream, offset, text = row
    if stream not in inputs.paths:
        return row
    reader = inputs.reader(stream)
    try:
        [batch] = reader.read(offset, offset + 1)
    except (LogError, ValueError):
        return row  # the log has let it go
    kinds = [a.type for a in from_arrow(reader.schema).attributes]
    columns = list(batch.rows.columns)[SYSTEM_COUNT:]
    values = [from_column(c, kind)[0] for c, kind in zip(columns, kinds, strict=True)]
    whole = event_text(values)
    seen = zip(json.loads(text), json.loads(whole), strict=False)
    return (stream, offset, whole) if all(a is None or a == b for a, b in seen) else row


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
