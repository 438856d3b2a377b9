"""What `@source(...)` and `@sink(...)` say, as data. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgewise.errors import EdgewiseError


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
