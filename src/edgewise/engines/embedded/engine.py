"""The embedded engine: a whole app in one kernel, fed directly.

Time is the largest event time seen. An event older than that is processed with its own time and
moves nothing. Timers fire at their due time as time passes them, before the event that moved it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from edgewise.engines.kernel import compile_kernel
from edgewise.engines.kernel.api import Run
from edgewise.engines.kernel.java import f32
from edgewise.errors import BadEvent
from edgewise.event.event import Event
from edgewise.event.types import AttrType
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App


class Embedded:
    def __init__(self, app: App, taps: Iterable[str] = ()) -> None:
        self.app = app
        fragment = Fragment(app.name, tuple(q.name for q in app.queries))
        self.kernel = compile_kernel(app, fragment, taps)
        self._clock = 0
        self._offset = 0
        self._narrow = {
            s.name: [i for i, a in enumerate(s.schema.attributes) if a.type is AttrType.FLOAT]
            for s in app.streams
        }

    @property
    def clock(self) -> int:
        return self._clock

    def send(self, stream: str, ts: int, data: Sequence[Any], at: int = 0) -> None:
        self._clock = max(self._clock, ts)
        row = self._row(stream, data)
        columns = [[v] for v in row]
        self.kernel.feed(Run(stream, [ts], columns, [self._offset], [self._clock], [at]))
        self._offset += 1

    def send_many(self, stream: str, events: Iterable[tuple[int, Sequence[Any]]]) -> None:
        """Many events, one after the other."""
        for ts, data in events:
            self.send(stream, ts, data)

    def advance(self, ts: int, at: int = 0) -> None:
        self._clock = max(self._clock, ts)
        self.kernel.advance(self._clock, at)

    def take(self) -> list[Event]:
        return [Event(r.stream, r.ts, r.data, r.kind, r.at) for r in self.kernel.take()]

    def _row(self, stream: str, data: Sequence[Any]) -> list[Any]:
        if stream not in self._narrow:
            raise BadEvent(f"the app '{self.app.name}' has no stream '{stream}'")
        row = list(data)
        width = len(self.app.stream(stream).schema.attributes)
        if len(row) != width:
            raise BadEvent(f"stream '{stream}' has {width} attributes, the event has {len(row)}")
        for i in self._narrow[stream]:
            if row[i] is not None:
                row[i] = f32(row[i])
        return row
