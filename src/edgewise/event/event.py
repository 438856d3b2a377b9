"""Define an event and its kind.

Time is data: `ts` is event time in milliseconds since 1970 and comes with the event; `at` is when
it was captured, in microseconds, and is only used to measure age and to order arrivals.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any


class EventKind(enum.IntEnum):
    """What a row stands for. The number is what the log stores."""

    CURRENT = 0
    EXPIRED = 1
    TICK = 2  # an idle tick: time moved, nothing happened; a row without attributes
    MORE = 3  # current, and the next row belongs to the same chunk: they were sent as one array


@dataclass(frozen=True, slots=True)
class Event:
    """A row of a stream, on its way in or out; `ts` in milliseconds, `at` in microseconds."""

    stream: str
    ts: int
    data: tuple[Any, ...]
    kind: EventKind = EventKind.CURRENT
    at: int = 0
