"""Map the names of an app to what they are defined as.

An entry without a schema is known but broken: its problem is reported where it was made, and
whoever uses it is refused in silence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from edgewise.event.schema import Schema
from edgewise.lang.report import Refused, Report, list_some, suggest_nearest
from edgewise.lang.source import At
from edgewise.lang.syntax.query import Name
from edgewise.plan.nodes import Annotation

STREAM, TABLE, WINDOW, AGGREGATION = "stream", "table", "window", "aggregation"


@dataclass(slots=True)
class Entry:
    kind: str
    name: str
    schema: Schema | None
    at: At
    annotations: tuple[Annotation, ...] = ()
    implicit: bool = False
    anonymous: bool = False
    lateness_ms: int | None = None


@dataclass(slots=True)
class Symbols:
    """One flat space of names for streams, tables, windows, aggregations and triggers.

    Inner streams live in the symbols of their partition, whose `outer` is the app's.
    """

    report: Report
    entries: dict[str, Entry] = field(default_factory=dict)
    outer: Symbols | None = None

    def define(self, entry: Entry) -> None:
        if self.outer is not None and not entry.name.startswith("#"):
            self.outer.define(entry)
            return
        before = self.entries.get(entry.name)
        if before is None:
            self.entries[entry.name] = entry
            return
        line = self.report.source.span(before.at).line
        message = f"'{entry.name}' is already {article(before.kind)}, from line {line}"
        self.report.error(entry.at, message)

    def get(self, name: str) -> Entry | None:
        if name.startswith("#") or self.outer is None:
            return self.entries.get(name)
        return self.outer.get(name)

    def find(self, name: Name, *kinds: str) -> tuple[Entry, Schema]:
        """The entry of a name that must be there, be of one of these kinds, and be whole."""
        entry = self.get(name.full)
        if entry is None:
            self._unknown(name, kinds)
        if entry.kind not in kinds:
            wanted = " or ".join(kinds)
            message = f"'{name.full}' is {article(entry.kind)}, not {article(wanted)}"
            self.report.fail(name.at, message)
        if entry.schema is None:
            raise Refused
        return entry, entry.schema

    def _unknown(self, name: Name, kinds: tuple[str, ...]) -> NoReturn:
        self.report.check_whole()
        self.report.check_room()
        known = [e.name for e in self.visible() if e.kind in kinds and not e.anonymous]
        if name.prefix == "#" and self.outer is None:
            hint = "inner streams live between 'begin' and 'end' of a partition"
            self.report.fail(name.at, f"'{name.full}' stands outside a partition", hint)
        if name.prefix == "!":
            hint = f"add @OnError(action='STREAM') to stream '{name.text}'"
            self.report.fail(name.at, f"there is no fault stream '{name.full}'", hint)
        hint = suggest_nearest(name.full, known) or (f"known: {list_some(known)}" if known else "")
        self.report.fail(name.at, f"there is no {' or '.join(kinds)} '{name.full}'", hint)

    def visible(self) -> list[Entry]:
        mine = list(self.entries.values())
        return mine if self.outer is None else [*mine, *self.outer.visible()]


def article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
