"""Hold what `@source(...)` and `@sink(...)` declare, as data. Pure.

The contract between `connectors`, which parses annotations, and the classes that run them.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from edgewise.errors import EdgewiseError
from edgewise.event.schema import Schema
from edgewise.event.types import AttrType

DEDUP_BOUND_MAX = 10_000_000
_KEY_TYPES = (AttrType.STRING, AttrType.INT, AttrType.LONG)


class Guarantee(enum.Enum):
    """How often an event that was sent is in the log (a source) or is delivered (a sink)."""

    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EFFECTIVELY_ONCE = "effectively-once"


class BadSpec(EdgewiseError):
    """An annotation that cannot work; `option` is the element at fault, '' for the type."""

    def __init__(self, message: str, option: str = "") -> None:
        self.option = option
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Option:
    """One element of an annotation. A `default` of None makes it required."""

    doc: str
    default: str | None = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What a person should know about an option that works otherwise than in Siddhi."""

    option: str
    message: str


@dataclass(frozen=True, slots=True)
class MapSpec:
    """`@map(type='json', option='...', @attributes(name='where in the payload'))`.

    `payload` is the template of a sink, `@payload('{{a}} and {{b}}')`.
    """

    type: str = "json"
    options: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    payload: str = ""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """`@source(type='...', option='...', @map(...))` on a stream."""

    stream: str
    type: str
    options: Mapping[str, str] = field(default_factory=dict)
    map: MapSpec = MapSpec()
    notes: tuple[Note, ...] = field(default=(), compare=False)
    unconnected: str = ""  # why it cannot run, where it is what only Siddhi has


@dataclass(frozen=True, slots=True)
class Share:
    """The rows that one `@destination` of `@distribution` gets.

    Each destination is a sink with a position of its own, so one that does not answer holds up
    only its own rows.
    """

    strategy: str  # broadcast, roundRobin or partitioned
    index: int
    count: int
    key: int = -1  # column, for partitioned

    def takes(self, offset: int, row: Sequence[object]) -> bool:
        if self.strategy == "broadcast":
            return True
        if self.strategy == "roundRobin":
            return offset % self.count == self.index
        return zlib.crc32(str(row[self.key]).encode()) % self.count == self.index


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """`@sink(type='...', option='...', @map(...))` on a stream."""

    stream: str
    type: str
    options: Mapping[str, str] = field(default_factory=dict)
    map: MapSpec = MapSpec()
    notes: tuple[Note, ...] = field(default=(), compare=False)
    unconnected: str = ""  # why it cannot run, where it is what only Siddhi has
    share: Share | None = None  # None: all rows


@dataclass(frozen=True, slots=True)
class DedupSpec:
    """The options `dedup` and `dedup.bound` of a source."""

    attribute: str
    bound: int

    @classmethod
    def parse(cls, spec: SourceSpec, schema: Schema | None = None) -> DedupSpec | None:
        """None where the source declares none; BadSpec where it cannot work."""
        attribute, bound = spec.options.get("dedup", ""), spec.options.get("dedup.bound", "")
        if not attribute:
            return None
        if not bound.isdigit() or not 1 <= int(bound) <= DEDUP_BOUND_MAX:
            raise BadSpec(f"dedup.bound='{bound}' must be 1 to {DEDUP_BOUND_MAX}", "dedup.bound")
        if schema is not None:
            at = schema.index(attribute)
            if at < 0:
                raise BadSpec(f"dedup='{attribute}': {schema.name} has no such attribute", "dedup")
            kind = schema.attributes[at].type
            if kind not in _KEY_TYPES:
                known = ", ".join(t.value for t in _KEY_TYPES)
                raise BadSpec(
                    f"dedup='{attribute}' is a {kind.value}; an id is one of: {known}", "dedup"
                )
        return cls(attribute, int(bound))


def dedup_by_stream(specs: Iterable[SourceSpec]) -> dict[str, DedupSpec]:
    """By stream; BadSpec where two sources of one stream differ."""
    found: dict[str, DedupSpec] = {}
    for spec in specs:
        dedup = DedupSpec.parse(spec)
        if dedup is not None and found.setdefault(spec.stream, dedup) != dedup:
            first = found[spec.stream]
            raise BadSpec(
                f"two sources of {spec.stream} declare different dedup options: "
                f"'{first.attribute}' (bound {first.bound}) and '{dedup.attribute}' (bound "
                f"{dedup.bound}); ids are remembered by stream, so declare the same in both",
                "dedup",
            )
    return found
