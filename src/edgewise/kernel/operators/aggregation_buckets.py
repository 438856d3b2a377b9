"""Aggregate incrementally: sums by calendar unit, and the ranges of time that a query reads.

State: unit -> start of the bucket -> group -> [time of the last event, a cell per select item].
Every event goes into one bucket of each unit, so an answer reads only the buckets it shows.
Buckets start at the unit's beginning by the clocks of the app's time zone. Buckets older than
their unit is retained for go when the purge timer fires.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from edgewise.eep.language import DEFINITIONS
from edgewise.errors import BadEvent
from edgewise.kernel.functions.java import map_order, text
from edgewise.kernel.runtime import Row, Runtime, State

_FIXED = {"sec": 1000, "min": 60_000, "hour": 3_600_000, "day": 86_400_000}
_UNITS = {
    "sec": "sec", "second": "sec", "min": "min", "minute": "min", "hour": "hour", "day": "day",
    "month": "month", "year": "year",
}  # fmt: skip
_STAMP = re.compile(
    r"(\d{4})-(\d\d|\*\*)-(\d\d|\*\*) (\d\d|\*\*):(\d\d|\*\*):(\d\d|\*\*)"
    r"\s*(?:([+-])(\d\d):(\d\d))?"
)
_PARTS = ("year", "month", "day", "hour", "min", "sec")

LAST = "last"  # the kind of an item that is no aggregate
NO_OWN: Mapping[str, Any] = {}
Step = Callable[[Any, Any], Any]
Values = Callable[[int, Row], tuple[int, Any, Row]]
Purge = tuple[int, int, dict[str, int]]  # timer, how often, and how long each unit stays, ms


def _nothing() -> None:
    return None


def _as_it_is(value: Any) -> Any:
    return value


def unit_of(word: Any) -> str:
    """`'seconds'`, `'sec'`, `'hours'` .. as the word the plan uses."""
    found = _UNITS.get(str(word).strip().lower().rstrip("s"))
    if found is None:
        raise BadEvent(f"'per' takes seconds, minutes, hours, days, months or years, not '{word}'")
    return found


def floor(ts: int, unit: str, zone: tzinfo = UTC) -> int:
    """The start of the unit that holds this moment."""
    size = _FIXED.get(unit)
    if size is not None and (zone is UTC or unit in {"sec", "min"}):
        return ts - ts % size
    moment = datetime.fromtimestamp(ts // 1000, zone)
    if unit == "hour":
        return _millis(moment.replace(minute=0, second=0))
    month = 1 if unit == "year" else moment.month
    day = moment.day if unit == "day" else 1
    return _millis(datetime(moment.year, month, day, tzinfo=zone))


def _millis(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


def stamp(value: Any) -> int:
    """A time as milliseconds: a number, or `2020-01-31 23:59:59 [+05:30]`."""
    if isinstance(value, int):
        return value
    start, _ = _span(str(value))
    return start


def span_of(within: tuple[Any, ...]) -> tuple[int, int]:
    """From and until (exclusive): two times, or one with wildcards, `2020-09-** **:**:**`."""
    if len(within) == 1:
        if isinstance(within[0], int):
            raise BadEvent("'within' takes two times, or one date with wildcards")
        return _span(str(within[0]))
    low, high = stamp(within[0]), stamp(within[1])
    if low >= high:
        raise BadEvent(f"'within' must end after it starts, not {within[0]} to {within[1]}")
    return low, high


def _span(text: str) -> tuple[int, int]:
    match = _STAMP.fullmatch(text.strip())
    if match is None:
        raise BadEvent(f"'{text}' is no time; write 2020-01-31 23:59:59, ** for any")
    parts = match.groups()[:6]
    given = [p for p in parts if "*" not in p]
    if "*" in "".join(parts[: len(given)]):
        raise BadEvent(f"in '{text}' nothing may follow a wildcard")
    zone = _zone(match[7], match[8], match[9])
    numbers = [int(p) for p in given] + [1, 1, 1, 0, 0, 0][len(given) :]
    start = datetime(*numbers, tzinfo=zone)  # type: ignore[arg-type, misc]
    return _millis(start), _millis(_after(start, _PARTS[len(given) - 1]))


def _zone(sign: str | None, hours: str | None, minutes: str | None) -> timezone:
    if sign is None:
        return UTC
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return timezone(-offset if sign == "-" else offset)


def _after(start: datetime, unit: str) -> datetime:
    if unit == "year":
        return start.replace(year=start.year + 1)
    if unit == "month":
        year, month = (start.year + 1, 1) if start.month == 12 else (start.year, start.month + 1)
        return start.replace(year=year, month=month)
    return start + timedelta(milliseconds=_FIXED[unit])


class Buckets:
    """An aggregation as generated code sees it. `kinds` names what each select item keeps: the
    value of the last event, an aggregate of the language, or one of `own`, the user's.

    Rows come by time; where events bring their time (`by_attribute`) in the order of the map that
    the original gathers them in.
    """

    def __init__(
        self,
        rt: Runtime,
        cell: int,
        units: tuple[str, ...],
        kinds: tuple[str, ...],
        values: Values,
        *,
        by_attribute: bool = False,
        zone: str = "UTC",
        purge: Purge | None = None,
        own: Mapping[str, Any] = NO_OWN,
    ) -> None:
        self.rt, self.cell = rt, cell
        self.units, self.values = units, values
        bodies = [None if k == LAST else own.get(k) or DEFINITIONS[k] for k in kinds]
        self._starts = [b.init if b else _nothing for b in bodies]
        self._steps: list[Step | None] = [
            _seen if k == "distinctcount" else b.accumulate if b else None
            for k, b in zip(kinds, bodies, strict=True)
        ]
        self._shows = [b.emit if b else _as_it_is for b in bodies]
        self._takes_null = [b is not None and b.takes_null for b in bodies]
        self.by_attribute = by_attribute
        self.zone = UTC if zone == "UTC" else ZoneInfo(zone)
        self.purge = purge

    def fresh(self) -> dict[str, Any]:
        return {}

    def timer(self, state: State, due: int, _payload: Any) -> None:
        """What has been kept long enough goes."""
        assert self.purge is not None, "only a purge arms timers"
        _, every_ms, kept_ms = self.purge
        for unit, buckets in state[self.cell].items():
            if unit in kept_ms:
                for start in [s for s in buckets if s < due - kept_ms[unit]]:
                    del buckets[start]
        if any(state[self.cell].values()):
            self.rt.arm(state, self.purge[0], due + every_ms)
        else:
            state[self.cell].clear()

    def add(self, state: State, ts: int, row: Row) -> None:
        moment, group, values = self.values(ts, row)
        if self.purge is not None and not state[self.cell]:
            self.rt.arm(state, self.purge[0], self.rt.now + self.purge[1])
        for unit in self.units:
            buckets = state[self.cell].setdefault(unit, {})
            groups = buckets.setdefault(floor(moment, unit, self.zone), {})
            cells = groups.get(group)
            if cells is None:
                cells = groups[group] = [moment, *(start() for start in self._starts)]
            newest = moment >= cells[0]
            cells[0] = max(cells[0], moment)
            for i, (step, value) in enumerate(zip(self._steps, values, strict=True), 1):
                if step is None:
                    cells[i] = value if newest else cells[i]
                elif value is not None or self._takes_null[i - 1]:
                    cells[i] = step(cells[i], value)

    def rows(self, within: tuple[Any, ...], per: Any) -> Iterator[tuple[int, Row]]:
        """Of each bucket in the span: its start, and `(start, items...)`."""
        unit = unit_of(per)
        if unit not in self.units:
            raise BadEvent(f"the aggregation keeps {', '.join(self.units)}, not '{per}'")
        low, high = span_of(within)
        buckets = self.rt.root[self.cell].get(unit, {})
        starts = sorted(buckets)
        if self.by_attribute:  # the newest is still in memory there, and comes before the stored
            starts = starts[-1:] + starts[:-1]
        found = {
            _key(start, group): (start, cells)
            for start in starts
            if low <= start < high
            for group, cells in buckets[start].items()
        }
        for key in map_order(found) if self.by_attribute else found:
            start, cells = found[key]
            shown = (show(c) for show, c in zip(self._shows, cells[1:], strict=True))
            yield start, (start, *shown)


def _key(start: int, group: Any) -> str:
    """The key of a row in the original's map."""
    return "".join(f"{text(value)}:-:" for value in (start, *group))


def _seen(cell: dict[Any, int], value: Any) -> dict[Any, int]:
    """As the definition, without a copy of all values for each event: nothing ever leaves."""
    cell[value] = 1
    return cell
