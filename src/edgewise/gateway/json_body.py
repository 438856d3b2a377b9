"""Read a JSON body carefully: every fault with its event, field and reason. Pure.

It defines what is accepted. The fast reader in `admit` may only agree with it, and asks it
whenever it is in doubt; so it is written to be clear and complete, not fast. Used by `admit` and
by `mappers`.
"""

from __future__ import annotations

import difflib
import enum
import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from edgewise.event.schema import Schema
from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, AttrType

PROBLEMS_MAX = 20
NESTING_MAX = 32  # of the value of an `object` attribute
NAME_CHARS_MAX = 100  # of a field in an answer: the sender chose it
DIGITS_MAX = 400  # of a number; a double has at most 309 before its point
TS_MAX_MS = 2**53 - 1  # in microseconds it still fits 64 bits
FLOAT_MAX = 3.4028234663852886e38
EVENT_KEY = "event"  # of Siddhi's envelope, {"event": {...}}
_WHITE = " \t\n\r"


class Framing(enum.Enum):
    JSON = "json"  # one event, or an array of events
    LINES = "lines"  # one event after the other
    ARROW = "arrow"  # an IPC stream: not for this reader


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with event `index` of a request, from 0; -1: with the body itself."""

    index: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Event times (None: time of arrival) and one list, or Arrow array, per attribute.

    Where no event has a time, `ts` is only their number: it saves a list of None.
    """

    ts: list[int | None] | int
    values: list[Any]

    @property
    def count(self) -> int:
        return self.ts if isinstance(self.ts, int) else len(self.ts)


class _NotJson:
    """A token that Python takes for JSON and is not, or a number that is too large to store."""

    def __init__(self, what: str) -> None:
        self.what = what


class _Repeated(dict[str, Any]):
    """An object with a key that comes twice."""

    key = ""


Reasons = list[tuple[str, str]]  # field, reason
Checked = tuple[int | None, list[Any], Reasons]  # event time, values in schema order, faults


def read_json(
    text: str, framing: Framing, schema: Schema, problems_max: int = PROBLEMS_MAX
) -> EventColumns | list[Fault]:
    """The columns of a body, or its first `problems_max` faults."""
    events = json_values(text, framing)
    if isinstance(events, Fault):
        return [events]
    return gather((_check_event(event, schema) for event in events), problems_max)


def json_values(text: str, framing: Framing) -> list[Any] | Fault:
    """The events of a body as Python values, or why it is not JSON."""
    try:
        return list(_iterate_values(text, framing))
    except json.JSONDecodeError as error:
        return Fault(-1, "body", _explain_syntax_error(error, framing))
    except RecursionError:
        return Fault(-1, "body", "nested too deeply to be an event")


def gather(
    events: Iterable[Checked], problems_max: int = PROBLEMS_MAX
) -> EventColumns | list[Fault]:
    """The columns of events that are all valid, else the first `problems_max` faults."""
    faults: list[Fault] = []
    ts: list[int | None] = []
    rows: list[list[Any]] = []
    for index, (at, row, reasons) in enumerate(events):
        faults += (Fault(index, _to_printable(name), reason) for name, reason in reasons)
        if len(faults) >= problems_max:
            return faults[:problems_max]
        ts.append(at)
        rows.append(row)
    if faults:
        return faults
    return EventColumns(ts, [list(c) for c in zip(*rows, strict=True)] if rows else [])


def _to_printable(name: str) -> str:
    return name[:NAME_CHARS_MAX].encode(errors="backslashreplace").decode()


def _iterate_values(text: str, framing: Framing) -> Iterator[Any]:
    if framing is Framing.JSON:
        whole = _DECODER.decode(text)
        if isinstance(whole, list):
            yield from whole
        else:
            yield whole
        return
    position = _skip_white(text, 0)
    while position < len(text):
        value, position = _DECODER.raw_decode(text, position)
        position = _skip_white(text, position)
        yield value


def _skip_white(text: str, position: int) -> int:
    while position < len(text) and text[position] in _WHITE:
        position += 1
    return position


def _explain_syntax_error(error: json.JSONDecodeError, framing: Framing) -> str:
    reason = f"not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}"
    if framing is Framing.JSON and error.msg == "Extra data":
        reason += "; several events in lines are sent as application/x-ndjson"
    return reason


def _parse_int(digits: str) -> int | _NotJson:
    return int(digits) if len(digits) <= DIGITS_MAX else _NotJson("a number out of range")


def _build_object(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) == len(items):
        return found
    repeated = _Repeated(found)
    seen: set[str] = set()
    for key, _ in items:
        if key in seen:
            repeated.key = key
            break
        seen.add(key)
    return repeated


_DECODER = json.JSONDecoder(
    object_pairs_hook=_build_object,
    parse_int=_parse_int,
    parse_constant=lambda token: _NotJson(f"{token}, which is not JSON"),
)


def _check_event(event: Any, schema: Schema) -> Checked:
    if not isinstance(event, dict):
        return None, [], [("event", f"expected an object, got {_describe(event)}")]
    if list(event) == [EVENT_KEY] and schema.index(EVENT_KEY) < 0:
        event = event[EVENT_KEY]  # as Siddhi wraps an event
        if not isinstance(event, dict):
            return None, [], [(EVENT_KEY, f"expected an object, got {_describe(event)}")]
    if "data" not in event or schema.index("data") >= 0:
        return None, *_check_attributes(event, schema)
    reasons = _find_repeated_key(event)
    reasons += ((k, "not part of an envelope") for k in event if k not in {"ts", "data"})
    ts = event.get("ts")
    if "ts" in event and (type(ts) is not int or abs(ts) > TS_MAX_MS):
        got = ts if type(ts) is int else _describe(ts)
        reasons.append(("ts", f"expected milliseconds since 1970 as an integer, got {got}"))
    data = event["data"]
    if isinstance(data, dict):
        row, more = _check_attributes(data, schema)
    elif isinstance(data, list):
        row, more = check_values(data, schema)
    else:
        row, more = [], [("data", f"expected an object or a list, got {_describe(data)}")]
    return ts, row, reasons + more


def _check_attributes(event: dict[str, Any], schema: Schema) -> tuple[list[Any], Reasons]:
    reasons = _find_repeated_key(event)
    row: list[Any] = []
    for attribute in schema.attributes:
        if attribute.name not in event:
            reasons.append((attribute.name, "missing; send null where there is no value"))
            continue
        _add_value(event[attribute.name], attribute.name, attribute.type, row, reasons)
    if len(event) > len(row) or reasons:
        reasons += ((key, _explain_unknown(key, schema)) for key in event if schema.index(key) < 0)
    return row, reasons


def check_values(data: list[Any], schema: Schema) -> tuple[list[Any], Reasons]:
    """Check values in schema order against the types of their attributes."""
    if len(data) != len(schema.attributes):
        wanted = f"{len(schema.attributes)} values ({', '.join(schema.names)})"
        return [], [("data", f"expected {wanted}, got {len(data)}")]
    row: list[Any] = []
    reasons: Reasons = []
    for value, attribute in zip(data, schema.attributes, strict=True):
        _add_value(value, attribute.name, attribute.type, row, reasons)
    return row, reasons


def _add_value(value: Any, name: str, kind: AttrType, row: list[Any], reasons: Reasons) -> None:
    try:
        row.append(None if value is None else _CHECKS[kind](value))
    except ValueError as error:
        reasons.append((name, str(error)))


def _find_repeated_key(event: dict[str, Any]) -> Reasons:
    return [(event.key, "comes twice")] if isinstance(event, _Repeated) else []


def _explain_unknown(key: str, schema: Schema) -> str:
    near = difflib.get_close_matches(key[:NAME_CHARS_MAX], schema.names, n=1)
    return f"{schema.name} has no such attribute" + (
        f"; did you mean '{near[0]}'?" if near else ""
    )


_NAMES: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number with a fraction",
    list: "a list",
    type(None): "null",
}


def _describe(value: Any) -> str:
    return value.what if isinstance(value, _NotJson) else _NAMES.get(type(value), "an object")


def _type_error(expected: str, value: Any) -> ValueError:
    return ValueError(f"expected {expected}, got {_describe(value)}")


def _check_string(value: Any) -> str:
    if not isinstance(value, str):
        raise _type_error("string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is not text") from None
    return value


def _check_whole(word: str, low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if type(value) is not int:
            raise _type_error(word, value)
        if not low <= value <= high:
            raise ValueError(f"out of range for {word} ({low} to {high})")
        return value

    return check


def _check_number(word: str, limit: float) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if type(value) is not int and type(value) is not float:
            raise _type_error(word, value)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not -limit <= number <= limit:
            raise ValueError(f"out of range for {word}")
        return number

    return check


def _check_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise _type_error("bool", value)
    return value


def _to_json_text(value: Any) -> str:
    _check_object(value, 0)
    return msgspec.json.encode(value).decode()


def _check_object(value: Any, depth: int) -> None:
    """ValueError where the value of an `object` attribute cannot be written as JSON again."""
    if depth > NESTING_MAX:
        raise ValueError(f"nested deeper than {NESTING_MAX}")
    if isinstance(value, dict):
        for _, reason in _find_repeated_key(value):
            raise ValueError(f"a key {reason}")
        for key in value:
            _check_string(key)
    inner = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for part in inner:
            _check_object(part, depth + 1)
    elif value is not None:
        _CHECKS[_SCALARS.get(type(value), AttrType.LONG)](value)


_SCALARS = {str: AttrType.STRING, bool: AttrType.BOOL, float: AttrType.DOUBLE}
_CHECKS: dict[AttrType, Callable[[Any], Any]] = {
    AttrType.STRING: _check_string,
    AttrType.INT: _check_whole("int", INT_MIN, INT_MAX),
    AttrType.LONG: _check_whole("long", LONG_MIN, LONG_MAX),
    AttrType.FLOAT: _check_number("float", FLOAT_MAX),
    AttrType.DOUBLE: _check_number("double", math.nextafter(math.inf, 0)),
    AttrType.BOOL: _check_bool,
    AttrType.OBJECT: _to_json_text,
}
