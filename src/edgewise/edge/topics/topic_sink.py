"""Parse `@sink(type='topic', ...)`: which row goes to which topic, how the topic behaves.

path       'alerts/{ip}': attributes in braces; their text is escaped to stay one segment
conflate   'replace' (default), 'off', or 'merge(op)'
recovery   'gap' (default), 'precise', 'repeating', 'convergent', 'divergent' (also: 'rollback')
ttl        '10 min': the topic goes when nothing came for that long
stale      '5 sec': the topic is marked stale when nothing came for that long
kind       'record' (default), 'table' (with key='{attribute}'), 'series' (with keep='100'),
           'blob' (with body='{attribute}': its text as UTF-8, anything else as JSON)
expired    'update', 'remove', 'ignore': what a row does that leaves a window: it is the new value,
           it takes the topic away when it is what the topic shows, or nothing
weight     share under a budget, 1 is normal
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgewise.edge.topics.tree import SERIES_KEEP, Policy
from edgewise.errors import SetupError
from edgewise.event.schema import Schema
from edgewise.wire.frames import TopicKind
from edgewise.wire.paths import parse_path

# The edge treats all kinds of rollback alike: updates may come twice.
RECOVERIES = {
    "gap": "gap",
    "precise": "precise",
    "rollback": "rollback",
    "repeating": "rollback",
    "convergent": "rollback",
    "divergent": "rollback",
}
EXPIRED = ("update", "remove", "ignore")
PRECISE_KEEP = 1024  # changes of a precise topic kept for replay

_UNITS_MS = {
    "": 1,
    "ms": 1,
    "millisec": 1,
    "milliseconds": 1,
    "s": 1000,
    "sec": 1000,
    "second": 1000,
    "seconds": 1000,
    "min": 60_000,
    "minute": 60_000,
    "minutes": 60_000,
    "hour": 3_600_000,
    "hours": 3_600_000,
    "day": 86_400_000,
    "days": 86_400_000,
}
_HOLE = re.compile(r"\{(\w+)\}")
_RESERVED = re.compile(r"[%/+#\x00-\x1f]")


@dataclass(frozen=True, slots=True)
class TopicSink:
    """`path` has {attribute} holes; `key` names the attribute that is a table's row key, `body`
    the one whose bytes a blob is.
    """

    path: str
    policy: Policy = Policy()
    key: str = ""
    body: str = ""
    expired: str = ""  # '': not said; it is the node that knows the queries

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> TopicSink:
        """From an annotation's plain options; says what is wrong with them."""
        path = options.get("path", "")
        if not path:
            raise SetupError("@sink(type='topic') needs path='...', such as 'alerts/{ip}'")
        parse_path(_HOLE.sub("x", path))
        kind = _parse_choice(options, "kind", "record", tuple(k.name.lower() for k in TopicKind))
        key = options.get("key", "").strip("{}")
        if kind == "table" and not key:
            raise SetupError("a table topic needs key='{attribute}'")
        body = options.get("body", "").strip("{}") if kind == "blob" else ""
        if kind == "blob" and not body:
            raise SetupError("a blob topic needs body='{attribute}', the one whose bytes it shows")
        conflate = _parse_conflate(options.get("conflate", "replace"))
        if kind != "record" and conflate.startswith("merge"):
            raise SetupError(
                f"conflate='{conflate}' merges fields, and a {kind} topic has none; "
                "use 'replace' or 'off', or kind='record'"
            )
        recovery = RECOVERIES[_parse_choice(options, "recovery", "gap", tuple(RECOVERIES))]
        default_keep = {"series": SERIES_KEEP}.get(kind, 0)
        if recovery == "precise":
            default_keep = max(default_keep, PRECISE_KEEP)
        policy = Policy(
            kind=TopicKind[kind.upper()],
            conflate=conflate,
            recovery=recovery,
            ttl_ms=_parse_duration_ms(options, "ttl"),
            stale_ms=_parse_duration_ms(options, "stale"),
            keep=int(_parse_number(options, "keep", default_keep)),
            weight=_parse_number(options, "weight", 1.0),
        )
        expired = _parse_choice(options, "expired", "", ("", *EXPIRED))
        return cls(path, policy, key, body, expired)

    @property
    def attributes(self) -> tuple[str, ...]:
        """What the path, the key and the body need from a row."""
        names = [*_HOLE.findall(self.path), self.key, self.body]
        return tuple(dict.fromkeys(name for name in names if name))

    def format_path(self, row: Mapping[str, Any]) -> str:
        return _HOLE.sub(lambda hole: escape_segment(row[hole[1]]), self.path)


def demand_attributes(sink: TopicSink, stream: Schema) -> None:
    """SetupError when the topics need an attribute that the stream does not have."""
    absent = [name for name in sink.attributes if name not in stream.names]
    if absent:
        raise SetupError(
            f"the topic '{sink.path}' needs attribute '{absent[0]}', which {stream.name} "
            f"does not have; it has {', '.join(stream.names)}"
        )


def escape_segment(value: Any) -> str:
    """Any value as one path segment; what would change the path's shape is percent-escaped."""
    text = "true" if value is True else "false" if value is False else str(value)
    if not text:
        return "%"
    return _RESERVED.sub(lambda m: f"%{ord(m[0]):02X}", text)


def _parse_conflate(text: str) -> str:
    if text in {"replace", "off"} or re.fullmatch(r"merge\([\w(),\s.]+\)", text):
        return text
    raise SetupError(f"conflate='{text}': use 'replace', 'off' or 'merge(op)'")


def _parse_choice(
    options: Mapping[str, str], name: str, default: str, allowed: tuple[str, ...]
) -> str:
    value = options.get(name, default).lower()
    if value not in allowed:
        raise SetupError(f"{name}='{value}': use one of {', '.join(allowed)}")
    return value


def _parse_number(options: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(options.get(name, default))
    except ValueError:
        value = -1.0
    if value < 0:
        raise SetupError(f"{name}='{options[name]}': use a number that is not negative")
    return value


def _parse_duration_ms(options: Mapping[str, str], name: str) -> int:
    text = options.get(name, "0")
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in _UNITS_MS:
        raise SetupError(f"{name}='{text}': use a time such as '500 ms', '30 sec' or '10 min'")
    return int(match[1]) * _UNITS_MS[match[2]]
