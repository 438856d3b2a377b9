"""Print rows as lines of the node's log, in Siddhi's form, as a sink.

    12:00:01,000 INFO alerts : Event{timestamp=1000, data=[10.0.0.1, 3], isExpired=false}

With a mapping of its own (`@map(type='json')`) the line has the payload instead of the event. The
lines go to standard error: standard output belongs to the commands. Loaded by `connectors`.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

from edgewise.event.schema import Schema
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.spec import SinkSpec
from edgewise.log.api import LogReader

_ONE_LINE = {**{code: f"\\x{code:02x}" for code in range(32)}, 10: "\\n", 13: "\\r", 9: "\\t"}


class LogSink:
    def __init__(
        self,
        spec: SinkSpec,
        schema: Schema,
        reader: LogReader,
        cursor: SinkCursor,
        out: TextIO | None = None,
    ) -> None:
        self._prefix = spec.options["prefix"] or spec.stream
        self._priority = spec.options["priority"].upper()
        self._as_event = spec.map.type == "passThrough"
        self._out = out or sys.stderr
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats

    async def start(self) -> None:
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()

    async def _deliver(self, messages: list[Message]) -> None:
        if self._priority == "OFF":
            return
        clock = time.strftime("%H:%M:%S")
        lines = (
            f"{clock} {self._priority} {self._prefix} : {self._format(m)}\n" for m in messages
        )
        try:
            self._out.write("".join(lines))
            self._out.flush()
        except (OSError, ValueError) as error:  # closed, or a full disk behind it
            raise Undelivered(f"cannot print: {error}") from error

    def _format(self, message: Message) -> str:
        text = (
            format_event(message) if self._as_event else message.payload.decode(errors="replace")
        )
        return text.translate(_ONE_LINE)  # a value cannot begin a line that looks like another


def format_event(message: Message) -> str:
    """As Siddhi prints an event."""
    data = ", ".join(_to_text(value) for value in message.row)
    return f"Event{{timestamp={message.ts}, data=[{data}], isExpired=false}}"


def _to_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
