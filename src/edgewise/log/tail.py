"""Print rows of a log as JSON lines, from any offset or time, for `edgewise log tail`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import msgspec

from edgewise.errors import SetupError
from edgewise.event.arrow import AT, KIND, SYSTEM_COUNT, TS
from edgewise.event.event import EventKind
from edgewise.log.api import LogBatch, LogReader

_KINDS = {kind.value: kind.name.lower() for kind in EventKind}
_WAIT_S = 0.5


def parse_time(text: str) -> int:
    """Parse milliseconds, or a date and time in ISO 8601; UTC where no zone is given."""
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise SetupError(
            f"'{text}' is not a time: write milliseconds or 2026-01-31T12:00:00"
        ) from None
    zoned = found if found.tzinfo else found.replace(tzinfo=dt.UTC)
    return int(zoned.timestamp() * 1000)


def find_offset_at(reader: LogReader, ts: int) -> int:
    """The first offset at which the clock has reached `ts`; the head if it has not yet.

    The clock never goes back, so a binary search finds it in any log.
    """
    low, high = reader.earliest(), reader.head().offset
    while low < high:
        middle = (low + high) // 2
        if reader.clock(middle + 1) >= ts:
            high = middle
        else:
            low = middle + 1
    return low


def format_rows(batch: LogBatch) -> Iterator[str]:
    """One JSON object a row: offset, ts, at, kind, data; an idle tick has no data."""
    for at, row in enumerate(batch.rows.to_pylist()):
        yield msgspec.json.encode(_describe_row(batch.first + at, row)).decode()


def _describe_row(offset: int, row: dict[str, Any]) -> dict[str, Any]:
    shown = {"offset": offset, "ts": row[TS], "at": row[AT], "kind": _KINDS[row[KIND]]}
    if row[KIND] != EventKind.TICK:
        shown["data"] = dict(list(row.items())[SYSTEM_COUNT:])
    return shown


def tail(
    reader: LogReader, start: int, *, count: int | None = None, follow: bool = False
) -> Iterator[str]:
    """Rows from `start` on, `count` at most; with `follow` it waits for more at the end."""
    at = start
    stop = None if count is None else start + count
    while stop is None or at < stop:
        head = reader.head().offset
        end = head if stop is None else min(head, stop)
        for batch in reader.read(at, max(at, end)):
            yield from format_rows(batch)
        at = max(at, end)
        if not follow and at >= head:
            return
        if stop is None or at < stop:
            reader.wait(at, _WAIT_S)
