"""One event, and what kind of row it is.

Time is data: `ts` is event time in milliseconds since the epoch and comes with the event; `at` is
when it was captured, in microseconds, and is only used to measure age and to order arrivals.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any


class Kind(enum.IntEnum):
    """How a row came to be. The number is what the log stores."""

    CURRENT = 0
    EXPIRED = 1
    MARK = 2  # time moved, nothing happened: a row without attributes
    MORE = 3  # current, and the next row belongs to the same chunk: they were sent as one array


@dataclass(frozen=True, slots=True)
class Event:
    stream: str
    ts: int
    data: tuple[Any, ...]
    kind: Kind = Kind.CURRENT
    at: int = 0
