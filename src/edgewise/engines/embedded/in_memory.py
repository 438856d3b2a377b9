"""Run a whole app in one kernel, in memory, event by event.

This is the executable reference of the language: what it gives is what the other engines must
give. It keeps nothing on disk. Used by `replay`, by `edgewise.App`, and by the conformance tests.

Time is the largest event time seen. An event older than that is processed with its own time and
moves nothing. Timers fire at their due time as time passes them, before the event that moved it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from edgewise.errors import BadEvent
from edgewise.event.event import Event
from edgewise.event.types import AttrType
from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.kernel.functions.java import f32
from edgewise.kernel.runtime import BEGINNING
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, OnDemandQuery
from edgewise.plan.rules.rewrite import rewrite


class InMemoryEngine:
    """`start` is when the app begins: absence and grids of time count from there.

    `as_sent` takes events as the original does: a value stays what it is, whatever the type of
    its attribute; missing values are null, and what is too much is left out. An event that then
    fails is counted and dropped.
    """

    def __init__(
        self,
        app: App,
        taps: Iterable[str] = (),
        start: int | None = None,
        *,
        as_sent: bool = False,
    ) -> None:
        self.app = app = rewrite(app)
        self.as_sent = as_sent
        fragment = Fragment(app.name, tuple(q.name for q in app.queries))
        self.kernel = compile_kernel(app, fragment, taps, as_sent=as_sent)
        self._clock = BEGINNING if start is None else start
        self._offset = 0
        self._kinds = {s.name: [a.type for a in s.schema.attributes] for s in app.streams}
        if start is not None:
            self.kernel.start(start)

    @property
    def clock(self) -> int:
        return self._clock

    def send(
        self, stream: str, ts: int, data: Sequence[Any], at: int = 0, clock: int | None = None
    ) -> None:
        """One event. `clock` is the app's time where it is not the event's own."""
        self._clock = max(self._clock, ts if clock is None else clock)
        columns = [[v] for v in self.convert_row(stream, data)]
        self.kernel.feed(EventRun(stream, [ts], columns, [self._offset], [self._clock], [at]))
        self._offset += 1

    def send_many(self, stream: str, events: Iterable[tuple[int, Sequence[Any]]]) -> None:
        """Many events, one after the other."""
        for ts, data in events:
            self.send(stream, ts, data)

    def send_chunk(
        self,
        stream: str,
        events: Sequence[tuple[int, Sequence[Any]]],
        at: int = 0,
        clock: int | None = None,
    ) -> None:
        """Events that belong together: one chunk, at the time of the last."""
        if not events:
            return
        stamps = [ts for ts, _ in events]
        self._clock = max(self._clock, stamps[-1] if clock is None else clock)
        columns = list(zip(*(self.convert_row(stream, data) for _, data in events), strict=True))
        n = len(events)
        offsets = range(self._offset, self._offset + n)
        self._offset += n
        self.kernel.feed_chunk(
            EventRun(stream, stamps, columns, offsets, [self._clock] * n, [at] * n)
        )

    def advance(self, ts: int, at: int = 0) -> None:
        """Time passes without an event: timers that are due fire."""
        self._clock = max(self._clock, ts)
        self.kernel.advance(self._clock, at)

    def query(self, query: OnDemandQuery) -> list[tuple[Any, ...]]:
        """An on-demand query against what the app holds."""
        return self.kernel.answer(query)

    def take(self) -> list[Event]:
        """The rows since the last call, of all streams."""
        return [Event(r.stream, r.ts, r.data, r.kind, r.at) for r in self.kernel.take()]

    def convert_row(self, stream: str, data: Sequence[Any]) -> list[Any]:
        """The event's values as the stream holds them."""
        kinds = self._kinds.get(stream)
        if kinds is None:
            raise BadEvent(f"the app '{self.app.name}' has no stream '{stream}'")
        if not isinstance(data, list | tuple):  # a dict or a text would give wrong values
            raise BadEvent(f"an event is a tuple of values, not {type(data).__name__}")
        if self.as_sent:
            return [*data, *(None for _ in kinds[len(data) :])][: len(kinds)]
        if len(data) != len(kinds):
            raise BadEvent(
                f"stream '{stream}' has {len(kinds)} attributes, the event has {len(data)}"
            )
        return [_convert_number(value, kind) for value, kind in zip(data, kinds, strict=True)]


def _convert_number(value: Any, kind: AttrType) -> Any:
    """A number in the width of its attribute; anything else as it is."""
    if value is None or isinstance(value, str | bool):
        return value
    if kind is AttrType.FLOAT:
        return f32(value)
    return float(value) if kind is AttrType.DOUBLE else value
