"""What `@source(...)` and `@sink(...)` say, as data. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
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
    """An annotation that no door can keep; `option` is the element at fault, '' for the type."""

    def __init__(self, message: str, option: str = "") -> None:
        self.option = option
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Option:
    """One element of an annotation. A `default` of None makes it required."""

    doc: str
    default: str | None = ""


@dataclass(frozen=True, slots=True)
class MapSpec:
    """`@map(type='json', option='...', @attributes(name='where in the payload'))`."""

    type: str = "json"
    options: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """`@source(type='...', option='...', @map(...))` on a stream."""

    stream: str
    type: str
    options: Mapping[str, str] = field(default_factory=dict)
    map: MapSpec = MapSpec()


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """`@sink(type='...', option='...', @map(...))` on a stream."""

    stream: str
    type: str
    options: Mapping[str, str] = field(default_factory=dict)
    map: MapSpec = MapSpec()


@dataclass(frozen=True, slots=True)
class Dedup:
    """What `dedup` and `dedup.bound` say."""

    attribute: str
    bound: int

    @classmethod
    def of(cls, spec: SourceSpec, schema: Schema | None = None) -> Dedup | None:
        """None where nothing is declared; BadSpec where it cannot be kept."""
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


def dedup_by_stream(specs: Iterable[SourceSpec]) -> dict[str, Dedup]:
    """BadSpec where two sources of one stream do not agree."""
    found: dict[str, Dedup] = {}
    for spec in specs:
        said = Dedup.of(spec)
        if said is not None and found.setdefault(spec.stream, said) != said:
            first = found[spec.stream]
            raise BadSpec(
                f"two sources of {spec.stream} tell doubles apart in two ways, by "
                f"'{first.attribute}' (bound {first.bound}) and by '{said.attribute}' (bound "
                f"{said.bound}); the memory is of the stream, say the same in both",
                "dedup",
            )
    return found
