"""Resolve fault rows to the offset in their own log, and complete the event they show.

An app with several inputs numbers their events as one, in order of capture. People look for an
event by its offset in its log; that is found from the number and the capture time by a search,
so that the normal path carries no second offset. A kernel is given only the attributes that its
queries read: the others are read again from the log. Used by both engines before they append.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.outputs import FAULTS, render_event
from edgewise.errors import LogError
from edgewise.event.arrow import AT, SYSTEM_COUNT, from_arrow, from_column
from edgewise.kernel.runtime import NO_TIME

_NAMES = ("stream", "offset", "event")

_Fault = tuple[str, int, str]  # the columns _NAMES
_Resolve = Callable[[str, int, int], tuple[str, int]]


def resolve_fault_offsets(out: dict[str, list[Any]], inputs: InputLogs) -> None:
    """Replace number and event in the fault rows of `out`; those of streams that queries write
    stay as they are.
    """
    if found := out.get(FAULTS.name):
        resolve = _build_resolver(inputs)
        out[FAULTS.name] = [_resolve_table(table, resolve, inputs) for table in found]


def _resolve_table(table: Any, resolve: _Resolve, inputs: InputLogs) -> Any:
    columns = [table.column(name).to_pylist() for name in ("stream", "offset", AT, "event")]
    faults = [(*resolve(*numbered), text) for *numbered, text in zip(*columns, strict=True)]
    # Several faults of one offset are a chunk, whose events share it: none of them is completed.
    of_offset = Counter((stream, offset) for stream, offset, _ in faults)
    faults = [_complete(inputs, f) if of_offset[f[:2]] == 1 else f for f in faults]
    for name, values in zip(_NAMES, zip(*faults, strict=True), strict=False):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, pa.array(values, table.schema.field(name).type))
    return table


def _build_resolver(inputs: InputLogs) -> _Resolve:
    """From stream, number in order of capture and capture time to stream and offset."""
    before = functools.cache(functools.partial(_count_captured_before, inputs))
    order = {stream: index for index, stream in enumerate(inputs.paths)}

    def find_offset(stream: str, number: int, at: int) -> int:
        others = (s for s in order if s != stream)
        return number - sum(before(s, at, ties=order[s] < order[stream]) for s in others)

    def resolve(stream: str, number: int, at: int) -> tuple[str, int]:
        if stream in order:
            return stream, find_offset(stream, number, at)
        if stream == NO_TIME:
            for name in order:
                offset = find_offset(name, number, at)
                if before(name, at, ties=False) <= offset < before(name, at, ties=True):
                    return name, offset
        return stream, number

    return resolve


def _complete(inputs: InputLogs, fault: _Fault) -> _Fault:
    """The fault with all attributes, if the log's event agrees with those that the query saw."""
    stream, offset, text = fault
    if stream not in inputs.paths:
        return fault
    reader = inputs.reader(stream)
    try:
        [batch] = reader.read(offset, offset + 1)
    except (LogError, ValueError):
        return fault  # retention has removed it
    kinds = [a.type for a in from_arrow(reader.schema).attributes]
    columns = list(batch.rows.columns)[SYSTEM_COUNT:]
    values = [from_column(c, kind)[0] for c, kind in zip(columns, kinds, strict=True)]
    complete = render_event(values)
    seen = zip(json.loads(text), json.loads(complete), strict=False)
    agrees = all(a is None or a == b for a, b in seen)
    return (stream, offset, complete) if agrees else fault


def _count_captured_before(inputs: InputLogs, stream: str, at: int, *, ties: bool) -> int:
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
