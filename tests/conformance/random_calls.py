"""Random calls of functions, for both engines: a call, and events with the values it is given.

Each function is a row of kinds of arguments; each argument is an attribute or a constant. Values
come from small pools, so that equal texts, bad numbers, nulls and extremes meet often. What differs
on purpose (`docs/reference/language.md`) is in no pool.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

# ruff: noqa: E501  a kind is a line
START = 1000
EVENTS = 8
CONSTANT_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Kind:
    """Values of an argument; `type` is that of the attribute that carries them."""

    type: str
    pool: tuple[Any, ...]
    constant: bool | None = None  # None: either


_TEXTS = (
    None, "", "a", "abc", "aBc", "hello world", "12", "-7", "2.5", "x1y22z", "7f", "é", " b ",
    "a,b,,c", "WSO2", "a.b.c", "ab ab", "ÀÉ", "ß", "1e3", "+5", "0x1F", "NaN",
)  # fmt: skip
_REGEXES = (
    "a", "[a-z]+", "(a)(b)?", "\\d+", "b|c", "^a.*", "x*", "(?i)ABC", "[^a]", "\\s", "\\w+",
    "(\\w)(\\w)", ".", "(?<first>a)(b)", "\\bb", "[a-c&&[^b]]", "\\p{Upper}", "a{1,2}", "(a|b)+?",
    "", ",", "\\.", "\\Qa.b\\E",
)  # fmt: skip
_DATES = (
    "2007-11-30 10:30:19.123", "2020-02-29 00:00:00.000", "1999-12-31 23:59:59.999",
    "2014-3-11 02:23:44.7", "2019-13-45 25:61:61.1000", "1970-01-01 00:00:00.000", "bad", "",
    "2016-06-05 12:00:00", "2100-02-29 01:02:03.004", "2000-00-00 00:00:00.000",
)  # fmt: skip
_DAYS = ("2007-11-30", "2020-02-29", "1999-12-31", "2014-3-1", "2019-13-45", "x", "2016-6-5 z")
KINDS = {
    "s": Kind("string", _TEXTS),
    "pairs": Kind("string", ("😀x", "x😀", "😀😀", "a")),  # whole: the peer cannot print halves
    "number": Kind("string", (*_TEXTS, " 12", "12 ", "99999999999", "1_0", "٣", "1.5f", "Infinity")),
    "c": Kind("string", ("a", "b", "é", "1", " ", "", "ab", None)),
    "regex": Kind("string", _REGEXES),
    "fixed regex": Kind("string", _REGEXES, constant=True),
    "with": Kind("string", ("", "x", "$0", "[$0]", "$1", "\\$", "\\\\", "a$0b", "é", None)),
    "separator": Kind("string", (",", "b", ".", "\\.", "[0-9]", "", " ", "||", None)),
    "i": Kind("int", (None, 0, 1, 2, -1, 7, -13, 100, 2147483647, -2147483648)),
    "small": Kind("int", (0, 1, 2, 3, -1, 5, 10)),
    "times": Kind("int", (0, 1, 2, 3, 7)),
    "base": Kind("int", (2, 8, 10, 16, 36)),
    "l": Kind("long", (None, 0, 1, -5, 1234567890123, 9223372036854775807, -(2**63))),
    "f": Kind("float", (None, 0.0, 0.5, -1.5, 2.25, 1e10, 3.0)),
    "d": Kind("double", (None, 0.0, 0.5, -1.5, 2.5, 3.75, 10.0, 1e10, -2.25, 1e300, 1e-5, -0.5)),
    "b": Kind("bool", (True, False, None)),
    "date": Kind("string", _DATES),
    "day": Kind("string", _DAYS),
    "moment": Kind("long", (0, 1, -12219292800001, -62135769600000, 1196418619123, 1582934400000, 951782400000, -1, 4102444800000)),
    "shift": Kind("int", (0, 1, -1, 2, 12, 31, 365, -13)),
    "unit": Kind(
        "string", ("YEAR", "month", "DAY", "hour", "MINUTE", "second", "WEEK"),
        constant=True,
    ),
    "loud unit": Kind("string", ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"), constant=True),
    "pattern": Kind(
        "string", (
            "yyyy-MM-dd", "dd/MM/yy", "EEE, d MMM yyyy", "EEEE", "MMMM d", "HH:mm:ss", "h:mm a",
            "yyyy-MM-dd'T'HH:mm:ss.SSSZ", "D", "w", "W", "F", "k K", "S", "SS", "SSSS", "G", "y",
            "yyyyy", "MMMMM", "z", "zzzz", "Z", "ZZ", "''yy''", "'o''clock'", "E", "EE", "a", "m:s",
            "H", "K:mm a, z", "yyyyMMddHHmmssSSS", "M/d/y", "ww",
        ),
    ),
    "date pattern": Kind("string", ("yyyy-MM-dd HH:mm:ss.SSS",)),
    "day pattern": Kind("string", ("yyyy-MM-dd",)),
    "k": Kind("string", ("a", "b", "c", "", "A"), constant=False),
}  # fmt: skip
_ONE = ("i", "l", "f", "d")
_DOUBLES = ("f", "d")
ROWS: tuple[tuple[str, ...], ...] = (
    *((f"math:{name}", kind) for kind in _ONE for name in (
        "abs", "atan", "cbrt", "cos", "cosh", "exp", "floor", "ln", "log10", "log2", "signum", "sin",
        "sinh", "sqrt", "tan", "tanh", "toDegrees", "toRadians",
    )),
    *((f"math:{name}", kind) for kind in _DOUBLES for name in (
        "acos", "asin", "ceil", "getExponent", "round", "isNan", "isInfinite",
    )),
    *((f"math:{name}", kind) for kind in ("i", "l") for name in ("bin", "hex", "oct")),
    *((f"math:{name}", a, b) for a in _ONE for b in _ONE for name in (
        "max", "min", "copySign", "atan", "power", "log",
    )),
    *((f"math:{name}", "number") for name in ("parseInt", "parseLong", "parseDouble", "parseFloat")),
    ("math:conv", "number", "base", "base"),
    ("math:e",), ("math:pi",),
    *((f"str:{name}", "s") for name in (
        "hex", "length", "lower", "reverse", "trim", "unhex", "upper",
    )),
    ("str:unhex", "number"),
    *((f"str:{name}", "pairs") for name in ("length", "lower", "reverse", "trim", "upper")),
    ("str:charAt", "s", "small"), ("str:contains", "s", "s"),
    ("str:coalesce", "s", "s"), ("str:coalesce", "s", "s", "s"), ("str:concat", "s", "s"),
    ("str:concat", "s", "s", "s"),
    ("str:equalsIgnoreCase", "s", "s"), ("str:strcmp", "s", "s"),
    ("str:regexp", "s", "regex"), ("str:repeat", "s", "times"),
    ("str:replaceAll", "s", "regex", "with"), ("str:replaceFirst", "s", "regex", "with"),
    ("str:split", "s", "separator", "small"),
    ("str:substr", "s", "small"), ("str:substr", "s", "small", "small"),
    ("str:substr", "s", "regex"), ("str:substr", "s", "regex", "small"),
    *((f"regex:{name}", kind, "s") for name in ("find", "matches", "lookingAt")
      for kind in ("regex", "fixed regex")),
    ("regex:find", "regex", "s", "small"), ("regex:group", "regex", "s", "small"),
    ("time:date", "date", "date pattern"), ("time:date", "day", "day pattern"),
    ("time:dateAdd", "date", "shift", "unit", "date pattern"), ("time:dateAdd", "date", "shift", "unit"),
    ("time:dateAdd", "moment", "shift", "loud unit"),
    ("time:dateSub", "moment", "shift", "loud unit"),
    ("time:dateSub", "date", "shift", "unit", "date pattern"),
    ("time:dateAdd", "day", "shift", "unit", "day pattern"),
    ("time:dateDiff", "date", "date", "date pattern", "date pattern"),
    ("time:dateDiff", "day", "day", "day pattern", "day pattern"),
    ("time:dateDiff", "date", "date"), ("time:dateDiff", "moment", "moment"),
    ("time:dateFormat", "date", "pattern", "date pattern"), ("time:dateFormat", "date", "pattern"),
    *(("time:dateFormat", "moment", "pattern") for _ in range(6)),
    ("time:dayOfWeek", "day", "day pattern"), ("time:dayOfWeek", "date"),
    ("time:dayOfWeek", "date", "date pattern"),
    ("time:extract", "unit", "date", "date pattern"),
    ("time:extract", "moment", "unit"), ("time:extract", "unit", "day", "day pattern"),
    ("time:timestampInMilliseconds", "date"), ("time:timestampInMilliseconds", "day", "day pattern"),
    ("time:timestampInMilliseconds", "date", "date pattern"),
    *(("time:timestampInMilliseconds", f"time:dateFormat({{0}}, '{p}')", f"'{p}'") for p in (
        "dd/MM/yy HH:mm", "EEE, d MMM yyyy", "MMMM d yyyy", "h:mm a", "yyyyMMddHHmmssSSS", "D y",
        "w y", "W M y", "K:m a d/M/y", "k d/M/yyyy", "yyyy-MM-dd HH:mm:ss.SSSZ", "G y", "E w y",
        "E W M y", "E F M y", "F M y", "E d M y", "d D y", "D M d y", "E M y", "w E M y", "y E", "d w",
    )),
)  # fmt: skip
# Calls around lists and maps: what they hold shows through the functions that read them.
_LISTS = ("list:create({0}, {1})", "list:create({0}, {1}, {0})", "list:add(list:create({0}), {1})")
_MAPS = ("map:create('a', {0}, 'b', {1})", "map:put(map:create('a', {0}), 'c', {1})")
NESTED = (
    *(f"list:{call}" for item in _LISTS for call in (
        f"size({item})", f"contains({item}, {{1}})", f"indexOf({item}, {{1}})",
        f"lastIndexOf({item}, {{0}})", f"isEmpty({item})", f"isList({item})",
        f"get({item}, {{i}})", f"size(list:remove({item}, {{0}}))",
        f"get(list:removeByIndex({item}, {{i}}), 0)", f"get(list:setValue({item}, {{i}}, {{1}}), 0)",
        f"get(list:add({item}, {{1}}, {{i}}), 0)", f"size(list:addAll({item}, {item}, true))",
        f"size(list:addAll({item}, {item}))", f"containsAll({item}, list:create({{0}}))",
        f"size(list:removeAll({item}, list:create({{0}})))",
        f"size(list:retainAll({item}, list:create({{0}})))", f"size(list:clear({item}))",
        f"size(list:clone({item}))", f"get(list:sort({item}), 0)",
        f"get(list:sort({item}, 'DESC'), 0)",
    )),
    *(f"map:{call}" for item in _MAPS for call in (
        f"get({item}, {{k}})", f"isMap({item})",
        f"get(map:remove({item}, {{k}}), 'a')",
        f"get(map:putAll({item}, map:create({{k}}, {{1}})), 'a')",
        f"get(map:createFromJSON(map:toJSON({item})), 'a')", "toXML(map:create('a', {0}))",
        "toXML(map:create('a', {0}), 'root')",
    )),
)  # fmt: skip


def _literal(kind: Kind, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'" if "'" not in value else f'"{value}"'
    return f"{value}{'l' if kind.type == 'long' else 'f' if kind.type == 'float' else ''}"


def make_call(dice: random.Random) -> tuple[str, list[tuple[str, int, list[Any]]]]:
    """An app with one call, and its events."""
    kinds: list[Kind] = []
    if dice.random() < len(NESTED) / (len(NESTED) + 2 * len(ROWS)):
        value = KINDS[dice.choice(("s", "i", "l", "d", "b"))]
        kinds = [value, value, KINDS["small"], KINDS["k"]]
        call = dice.choice(NESTED).format("a0", "a1", i="a2", k="a3")
    else:
        name, *arguments = dice.choice(ROWS)
        if arguments and "{0}" in arguments[0]:  # read what was written: of a moment
            kinds.append(KINDS["moment"])
            arguments[0] = arguments[0].format("a0")
        call = f"{name}({', '.join(_argument(a, kinds, dice) for a in arguments)})"
    attributes = "".join(f", a{i} {kind.type}" for i, kind in enumerate(kinds))
    app = (
        f"define stream S (n int{attributes}); "
        f"@info(name='q') from S select n, {call} as r insert into O;"
    )
    return app, [
        ("S", START + 10 * (i + 1), [i, *(dice.choice(kind.pool) for kind in kinds)])
        for i in range(EVENTS)
    ]


def _argument(name: str, kinds: list[Kind], dice: random.Random) -> str:
    """As an attribute, which is added to `kinds`, or as a constant."""
    kind = KINDS.get(name)
    if kind is None:
        return name  # written out
    constant = dice.random() < CONSTANT_SHARE if kind.constant is None else kind.constant
    if constant:
        values = [v for v in kind.pool if v is not None and "'" not in str(v)]
        value = dice.choice(values)
        if not isinstance(value, int) or value > -(2**31):
            return _literal(kind, value)
    kinds.append(kind)
    return f"a{len(kinds) - 1}"
