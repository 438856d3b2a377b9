"""Find how far time must move after the last event until all that is open has closed.

A batch ends where its events do; `close=True` goes on from there by the sum of all durations that
the app names: of windows, `within`, absence and rate limits. Chained queries wait one after the
other, so it is the sum and not the longest. What repeats, such as a trigger, fires on the way.

Pure: `api` uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from edgewise.event.types import AttrType
from edgewise.plan.exprs import Const
from edgewise.plan.nodes import App, Window

_NAMES = frozenset({"within_ms", "waiting_ms", "every_ms", "idle_ms"})


def find_close_ms(app: App) -> int:
    """The sum of all durations of an app."""
    parts = (app.queries, app.windows, app.partitions)
    return sum(ms for part in parts for node in part for ms in _list_durations(node))


def _list_durations(node: Any) -> Iterator[int]:
    if isinstance(node, Window):
        for arg in node.args:
            if isinstance(arg, Const) and arg.type is AttrType.LONG and arg.value is not None:
                yield int(arg.value)
    elif isinstance(node, tuple):
        for item in node:
            yield from _list_durations(item)
    elif is_dataclass(node):
        for field in fields(node):
            value = getattr(node, field.name)
            if field.name in _NAMES and value is not None:
                yield int(value)
            else:
                yield from _list_durations(value)
