"""A place in a log that survives a change of writer."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """`epoch` counts writers, `offset` counts events; both only grow."""

    epoch: int
    offset: int

    def __str__(self) -> str:
        return f"{self.epoch}:{self.offset}"
