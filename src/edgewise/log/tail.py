"""A person's eyes on a log: rows as JSON lines, from any offset or time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import msgspec

from edgewise.errors import SetupError
from edgewise.event.arrow import AT, KIND, SYSTEM_COUNT, TS
from edgewise.event.event import Kind
from edgewise.log.api import LogBatch, LogReader

_KINDS = {kind.value: kind.name.lower() for kind in Kind}
_WAIT_S = 0.5


def moment(text: str) -> int:
    """Milliseconds, or a date and time in ISO 8601; UTC where no zone is said."""
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise SetupError(
            f"'{text}' is no time: write milliseconds or 2026-01-31T12:00:00"
        ) from None
    zoned = found if found.tzinfo else found.replace(tzinfo=dt.UTC)
    return int(zoned.timestamp() * 1000)


def offset_at(reader: LogReader, ts: int) -> int:
    """The first offset at which time has come to `ts`; the head when it has not yet.

    The clock never goes back, so this is a search by halves in any home.
    """
    low, high = reader.earliest(), reader.head().offset
    while low < high:
        middle = (low + high) // 2
        if reader.clock(middle + 1) >= ts:
            high = middle
        else:
            low = middle + 1
    return low


def lines(batch: LogBatch) -> Iterator[str]:
    """One JSON object a row: offset, ts, at, kind, data; a mark has no data."""
    for at, row in enumerate(batch.rows.to_pylist()):
        yield msgspec.json.encode(_line(batch.first + at, row)).decode()


def _line(offset: int, row: dict[str, Any]) -> dict[str, Any]:
    said = {"offset": offset, "ts": row[TS], "at": row[AT], "kind": _KINDS[row[KIND]]}
    if row[KIND] != Kind.MARK:
        said["data"] = dict(list(row.items())[SYSTEM_COUNT:])
    return said


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
            yield from lines(batch)
        at = max(at, end)
        if not follow and at >= head:
            return
        if stop is None or at < stop:
            reader.wait(at, _WAIT_S)
