"""Format and parse dates by the patterns of Java's SimpleDateFormat, leniently, in UTC.

A pattern is read once into fields. Text is read as the original's parser reads it: numbers take
as many digits as there are, or as many as the pattern says where another number follows; names
in any case; blanks match any blanks; what follows the pattern is ignored; a 13th month is the
first of the next year. Used by `time:` functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from edgewise.errors import BadEvent
from edgewise.plan.functions.java_calendar import (
    DAY_MS,
    OFFSET,
    date_of,
    days_of,
    week_of_year,
    weekday_of,
    zone_offset,
)

PATTERNS_MAX = 128  # patterns kept as read
CENTURY_START = 1946  # a year of two digits is in the hundred years from here on
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_TOKEN = re.compile(r"''|'((?:[^']|'')*)'|([A-Za-z])\2*|[^'A-Za-z]+")
_LETTERS = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_NUMBERS = frozenset("yYwWDdFuHkKhmsS")


@dataclass(frozen=True, slots=True)
class PatternField:
    """A letter and how often it stands, or text (then the letter is '')."""

    letter: str
    count: int = 0
    text: str = ""

    @property
    def is_number(self) -> bool:
        if not self.letter:
            return self.text[:1].isdigit()
        return self.letter in _NUMBERS or (self.letter in "ML" and self.count < 3)


@lru_cache(maxsize=PATTERNS_MAX)
def read_pattern(pattern: str) -> tuple[PatternField, ...]:
    if not pattern:
        raise BadEvent("a date pattern is not empty")
    found: list[PatternField] = []
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            raise BadEvent(f"the date pattern '{pattern}' has an open quote")
        text, at = token[0], token.end()
        if text == "''":
            found.append(PatternField("", text="'"))
        elif text[0] == "'":
            found.append(PatternField("", text=token[1].replace("''", "'")))
        elif token[2]:
            if token[2] not in _LETTERS:
                raise BadEvent(f"the date pattern '{pattern}' has an unknown letter '{token[2]}'")
            found.append(PatternField(token[2], len(text)))
        else:
            found.append(PatternField("", text=text))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment as a calendar shows it."""

    ms: int
    offset_min: int = 0
    zone: str = "UTC"
    zone_name: str = "Coordinated Universal Time"

    @property
    def days(self) -> int:
        return (self.ms + self.offset_min * 60_000) // DAY_MS

    @property
    def of_day(self) -> int:
        return (self.ms + self.offset_min * 60_000) % DAY_MS


def write(ms: int, pattern: str, zone: str = "") -> str:
    """The moment in this pattern, in UTC unless a zone is given."""
    moment = _in_zone(ms, zone) if zone else Moment(ms)
    return "".join(
        _show(moment, item) if item.letter else item.text for item in read_pattern(pattern)
    )


def _in_zone(ms: int, zone: str) -> Moment:
    offset = zone_offset(ms, zone)
    return Moment(ms, offset, zone, zone)


def _show(moment: Moment, item: PatternField) -> str:
    letter, count = item.letter, item.count
    match letter:
        case "G":
            return "AD" if date_of(moment.days)[0] > 0 else "BC"
        case "M" | "L" if count >= 3:
            name = MONTHS[date_of(moment.days)[1] - 1]
            return name if count > 3 else name[:3]
        case "E":
            name = DAYS[weekday_of(moment.days)]
            return name if count > 3 else name[:3]
        case "a":
            return "AM" if moment.of_day < DAY_MS // 2 else "PM"
        case "z":
            return moment.zone_name if count > 3 else moment.zone
        case "Z" | "X":
            return _show_offset(moment.offset_min, letter, count)
        case "y" | "Y":
            year = week_of_year(moment.days)[1] if letter == "Y" else date_of(moment.days)[0]
            year = year if year > 0 else 1 - year
            return f"{year % 100:02d}" if count == 2 else f"{year:0{max(count, 4)}d}"
    return f"{_number(moment, letter):0{count}d}"


def _show_offset(minutes: int, letter: str, count: int) -> str:
    if letter == "X" and minutes == 0:
        return "Z"
    sign = "-" if minutes < 0 else "+"
    hours, rest = divmod(abs(minutes), 60)
    if letter == "X" and count == 1:
        return f"{sign}{hours:02d}"
    colon = ":" if count == 3 or (letter == "Z" and count > 1) else ""
    return f"{sign}{hours:02d}{colon}{rest:02d}"


def _number(moment: Moment, letter: str) -> int:
    if letter in _OF_DAY:
        return _OF_DAY[letter](moment.of_day)
    year, month, day = date_of(moment.days)
    match letter:
        case "M" | "L":
            return month
        case "d":
            return day
        case "D":
            return moment.days - days_of(year, 1, 1) + 1
        case "F":
            return (day - 1) // 7 + 1
        case "W":
            return (day - 1 + weekday_of(days_of(year, month, 1))) // 7 + 1
        case "w":
            return week_of_year(moment.days)[0]
    return weekday_of(moment.days) or 7


_OF_DAY: dict[str, Callable[[int], int]] = {
    "H": lambda ms: ms // 3_600_000,
    "k": lambda ms: ms // 3_600_000 or 24,
    "K": lambda ms: ms // 3_600_000 % 12,
    "h": lambda ms: ms // 3_600_000 % 12 or 12,
    "m": lambda ms: ms // 60_000 % 60,
    "s": lambda ms: ms // 1000 % 60,
    "S": lambda ms: ms % 1000,
}


# Reading.


@dataclass(slots=True)
class _Fields:
    """What a text said, by letter; `order` has the letters of days, the last said last."""

    values: dict[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    offset_min: int = 0

    def put(self, letter: str, value: int) -> None:
        self.values[letter] = value
        if letter in self.order:
            self.order.remove(letter)
        self.order.append(letter)


def read(text: str, pattern: str, *, zones: bool = True) -> int:
    """The moment that a text says, in ms since 1970; without `zones`, what clocks show then."""
    fields = _Fields()
    items = read_pattern(pattern)
    at = 0
    for index, item in enumerate(items):
        following = items[index + 1] if index + 1 < len(items) else None
        at = _read_field(fields, item, following, text, at)
        if at < 0:
            raise BadEvent(f"'{text}' is no date of the pattern '{pattern}'")
    if not zones:
        fields.offset_min = 0
    return _resolve(fields)


def _read_field(
    fields: _Fields, item: PatternField, following: PatternField | None, text: str, at: int
) -> int:
    """Where the field ends, -1 where it is not there."""
    if not item.letter:
        return _read_text(item.text, text, at)
    if item.is_number:
        width = f"{{{item.count}}}" if following is not None and following.is_number else "+"
        found = re.compile(rf"\d{width}").match(text, at)
        if found is None:
            return -1
        fields.put(item.letter, _value(item, int(found[0])))
        return found.end()
    if item.letter in "zZX":
        return _read_zone(fields, text, at)
    names = {"M": MONTHS, "L": MONTHS, "E": DAYS, "a": ("AM", "PM"), "G": ("BC", "AD")}
    for number, name in enumerate(names[item.letter]):
        for form in (name, name[:3]):
            if text[at : at + len(form)].casefold() == form.casefold():
                shift = 1 if item.letter in "ML" else 0
                fields.put("M" if item.letter == "L" else item.letter, number + shift)
                return at + len(form)
    return -1


def _read_text(wanted: str, text: str, at: int) -> int:
    for char in wanted:
        if char.isspace():
            while text[at : at + 1].isspace():
                at += 1
        elif text[at : at + 1] == char:
            at += 1
        else:
            return -1
    return at


def _value(item: PatternField, value: int) -> int:
    if item.letter in "yY" and item.count < 3 and value < 100:
        value += 1900
        return value if value >= CENTURY_START else value + 100
    if item.letter == "H":
        return value % 24
    return value % 12 if item.letter == "h" else value


def _read_zone(fields: _Fields, text: str, at: int) -> int:
    offset = OFFSET.match(text, at)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        fields.offset_min = -minutes if offset[1] == "-" else minutes
        return offset.end()
    name = re.compile(r"[A-Za-z_]+(?:/[A-Za-z_]+)*").match(text, at)
    if name is None:
        return -1
    try:
        fields.offset_min = zone_offset(_resolve(fields), name[0])
    except BadEvent:
        return -1
    return name.end()


def _resolve(fields: _Fields) -> int:
    """What was said last decides how the day is found, as in Java's calendar."""
    values = fields.values
    year = values.get("y", values.get("Y", 1970))
    if values.get("G") == 0:
        year = 1 - year
    days = _day(fields, year, values.get("M", values.get("L", 1)))
    hour = 0
    clock = [letter for letter in fields.order if letter in "HkKha"]
    if clock and clock[-1] in "Hk":
        hour = values[clock[-1]]
    elif clock:
        twelve = [values[letter] for letter in clock if letter in "Kh"]
        hour = (twelve[-1] if twelve else 0) + 12 * values.get("a", 0)
        if not twelve and "H" in values:
            hour = values["H"]
    ms = ((hour * 60 + values.get("m", 0)) * 60 + values.get("s", 0)) * 1000 + values.get("S", 0)
    return days * DAY_MS + ms - fields.offset_min * 60_000


def _day(fields: _Fields, year: int, month: int) -> int:
    """The day, by the fields that were said last; a week alone means its Sunday."""
    values = fields.values
    by = _deciding(fields.order)
    if by == "d":
        return days_of(year, month, values.get("d", 1))
    if by == "D":
        return days_of(year, 1, values["D"])
    first = days_of(year, 1 if by == "w" else month, 1)
    weekday = _weekday(values)
    if by == "F":
        return first + (weekday - weekday_of(first)) % 7 + 7 * (values.get("F", 1) - 1)
    return first - weekday_of(first) + 7 * (values[by] - 1) + weekday


def _deciding(order: list[str]) -> str:
    """Which of d, D, w, W and F a calendar finds the day by.

    A field counts from where it was said last; one of weeks counts, where a day of the week was
    said too, from the later of both, and else only where nothing else says the day.
    """
    said = {letter: at + 1 for at, letter in enumerate(order)}
    named = max(said.get("E", 0), said.get("u", 0))
    with_day = {by: max(said[by], named) if by in said and named else 0 for by in "WFw"}
    best = {"d": said.get("d", 0), "W": with_day["W"], "F": with_day["F"]}
    best |= {"D": said.get("D", 0), "w": with_day["w"]}
    if not any(best.values()):
        best = {"W": said.get("W", 0), "F": max(said.get("F", 0), named), "w": said.get("w", 0)}
        if not any(best.values()):
            return "d"
    found = max(best, key=best.__getitem__)
    if found in "WFw":  # those that the same day of the week completes: the one said last
        level = [by for by in "wFW" if best[by] == best[found]]
        found = max(reversed(level), key=lambda by: said.get(by, 0))
    return found


def _weekday(values: dict[str, int]) -> int:
    return values["E"] if "E" in values else values.get("u", 0) % 7
