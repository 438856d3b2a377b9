"""Define a position in a log that stays valid when the writer changes."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """`epoch` counts writers, `offset` counts events; both only grow."""

    epoch: int
    offset: int

    def __str__(self) -> str:
        return f"{self.epoch}:{self.offset}"
