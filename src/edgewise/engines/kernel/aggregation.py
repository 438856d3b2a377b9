"""Incremental aggregation: sums by calendar unit, and the ranges of time one asks for.

State: unit -> start of the bucket -> group -> [time of the last event, a cell per select item].
Every event goes into one bucket of each unit, so an answer reads only the buckets it shows.
Buckets start at the unit's beginning by the clocks of the app's time zone. What is older than its
unit is kept for goes when the purge comes by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from edgewise.engines.kernel.java import map_order, text
from edgewise.engines.kernel.runtime import Row, Runtime, State
from edgewise.errors import BadEvent

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

Values = Callable[[int, Row], tuple[int, Any, Row]]
Purge = tuple[int, int, dict[str, int]]  # timer, how often, and how long each unit stays, ms


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
    """An aggregation as generated code sees it. `kinds` names what each select item keeps.

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
    ) -> None:
        self.rt, self.cell = rt, cell
        self.units, self.kinds, self.values = units, kinds, values
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
                cells = groups[group] = [moment, *(_START[k]() for k in self.kinds)]
            newest = moment >= cells[0]
            cells[0] = max(cells[0], moment)
            for i, (kind, value) in enumerate(zip(self.kinds, values, strict=True), 1):
                cells[i] = _STEP[kind](cells[i], value, newest)

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
            shown = (_SHOW[k](c) for k, c in zip(self.kinds, cells[1:], strict=True))
            yield start, (start, *shown)


def _key(start: int, group: Any) -> str:
    """The key of a row in the original's map."""
    return "".join(f"{text(value)}:-:" for value in (start, *group))


def _plus(cell: list[Any], value: Any, _newest: bool) -> list[Any]:
    return cell if value is None else [cell[0] + value, cell[1] + 1]


def _least(cell: Any, value: Any, _newest: bool) -> Any:
    return cell if value is None or (cell is not None and cell < value) else value


def _most(cell: Any, value: Any, _newest: bool) -> Any:
    return cell if value is None or (cell is not None and cell > value) else value


def _newer(cell: Any, value: Any, newest: bool) -> Any:
    return value if newest else cell


def _counted(cell: int, _value: Any, _newest: bool) -> int:
    return cell + 1


def _seen(cell: dict[Any, int], value: Any, _newest: bool) -> dict[Any, int]:
    cell[value] = 1
    return cell


def _whole_mean(cell: list[Any]) -> float | None:
    if not cell[1]:
        return None
    mean = abs(cell[0]) // cell[1]
    return float(mean if cell[0] >= 0 else -mean)


_START: dict[str, Callable[[], Any]] = {
    "sum": lambda: [0, 0],
    "avg": lambda: [0, 0],
    "avg of whole": lambda: [0, 0],
    "count": lambda: 0,
    "min": lambda: None,
    "max": lambda: None,
    "last": lambda: None,
    "distinctcount": dict,
}
_STEP: dict[str, Callable[[Any, Any, bool], Any]] = {
    "sum": _plus,
    "avg": _plus,
    "avg of whole": _plus,
    "count": _counted,
    "min": _least,
    "max": _most,
    "last": _newer,
    "distinctcount": _seen,
}
_SHOW: dict[str, Callable[[Any], Any]] = {
    "sum": lambda cell: cell[0] if cell[1] else None,
    "avg": lambda cell: cell[0] / cell[1] if cell[1] else None,
    "avg of whole": _whole_mean,
    "count": lambda cell: cell,
    "min": lambda cell: cell,
    "max": lambda cell: cell,
    "last": lambda cell: cell,
    "distinctcount": len,
}
