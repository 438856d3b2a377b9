"""Every function an app can call, with its types: one table for the checker and both engines.

A row says what a function takes and gives, and for all but the plain ones its body in Python;
engines hold the bodies of those by name, and may have faster ones for others.
Users add rows of their own, with a Python function or the name of a native Spark expression as
the body: `FUNCTIONS.with_(scalar("my:twice", NUMBER, returns=same, python=lambda x: 2 * x))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from edgewise.event.types import NUMERIC, AttrType, promote
from edgewise.plan import maths, strings, times
from edgewise.plan.exprs import Const, Expr

Types: TypeAlias = frozenset[AttrType]
Args: TypeAlias = tuple[Expr, ...]
Returns: TypeAlias = AttrType | Callable[[Args], AttrType]

STRING, INT, LONG = AttrType.STRING, AttrType.INT, AttrType.LONG
FLOAT, DOUBLE, BOOL, OBJECT = AttrType.FLOAT, AttrType.DOUBLE, AttrType.BOOL, AttrType.OBJECT

ANY: Types = frozenset(AttrType)
NUMBER: Types = frozenset(NUMERIC)
WHOLE: Types = frozenset({INT, LONG})
TEXT: Types = frozenset({STRING})
TRUTH: Types = frozenset({BOOL})
SET: Types = frozenset({OBJECT})

TYPE_NAMES = {t.value: t for t in AttrType if t is not OBJECT}


@dataclass(frozen=True, slots=True)
class Function:
    """`takes` has the legal types of each argument; the last `optional` may be left out.

    A `variadic` function repeats its last argument. `agree` gives the places of arguments that
    must have one type. `rule` finds what types cannot say and returns it as a sentence, or ''.
    A `clocked` body is given the event time before its arguments. Unless it `takes_null`, a body
    never sees a null argument: the result is null.
    """

    name: str
    takes: tuple[Types, ...]
    returns: Returns
    optional: int = 0
    variadic: bool = False
    aggregate: bool = False
    agree: tuple[int, ...] | None = None
    rule: Callable[[Args], str] | None = None
    python: Callable[..., Any] | None = None
    spark: str = ""
    clocked: bool = False
    takes_null: bool = False

    def type_of(self, args: Args) -> AttrType:
        return self.returns if isinstance(self.returns, AttrType) else self.returns(args)

    @property
    def least(self) -> int:
        return len(self.takes) - self.optional

    @property
    def most(self) -> int | None:
        return None if self.variadic else len(self.takes)


class FunctionTable(Mapping[str, Function]):
    """Looked up without regard to case, as the language does."""

    def __init__(self, functions: tuple[Function, ...]) -> None:
        self._by_name = {f.name.lower(): f for f in functions}

    def with_(self, *functions: Function) -> FunctionTable:
        """This table and some more; a new one may take the place of an old one."""
        return FunctionTable((*self._by_name.values(), *functions))

    def __getitem__(self, name: str) -> Function:
        return self._by_name[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return (f.name for f in self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)


def scalar(name: str, *takes: Types, returns: Returns, **more: Any) -> Function:
    return Function(name, takes, returns, **more)


def aggregate(name: str, *takes: Types, returns: Returns, **more: Any) -> Function:
    return Function(name, takes, returns, aggregate=True, **more)


# Types that depend on the arguments.


def same(args: Args) -> AttrType:
    return args[0].type


def second(args: Args) -> AttrType:
    return args[1].type


def summed(args: Args) -> AttrType:
    return LONG if args[0].type in WHOLE else DOUBLE


def rounded(args: Args) -> AttrType:
    return LONG if args[0].type in {LONG, DOUBLE} else INT


def promoted(args: Args) -> AttrType:
    found = args[0].type
    for arg in args[1:]:
        found = promote(found, arg.type)
    return found


def named(args: Args) -> AttrType:
    """The type that the second argument names."""
    assert isinstance(args[1], Const)
    return TYPE_NAMES[str(args[1].value).lower()]


def names_a_type(args: Args) -> str:
    kind = args[1]
    if not isinstance(kind, Const):
        return "the type must be a constant in quotes, such as 'double'"
    if str(kind.value).lower() not in TYPE_NAMES:
        return f"'{kind.value}' is not a type; use one of {', '.join(TYPE_NAMES)}"
    return ""


AGGREGATES = (
    aggregate("sum", NUMBER, returns=summed),
    aggregate("avg", NUMBER, returns=DOUBLE),
    aggregate("count", ANY, returns=LONG, optional=1),
    aggregate("distinctCount", ANY, returns=LONG),
    aggregate("min", NUMBER, returns=same),
    aggregate("max", NUMBER, returns=same),
    aggregate("minForever", NUMBER, returns=same),
    aggregate("maxForever", NUMBER, returns=same),
    aggregate("stdDev", NUMBER, returns=DOUBLE),
    aggregate("and", TRUTH, returns=BOOL),
    aggregate("or", TRUTH, returns=BOOL),
    aggregate("unionSet", SET, returns=OBJECT),
)

SCALARS = (
    scalar("cast", ANY, TEXT, returns=named, rule=names_a_type),
    scalar("convert", ANY - SET, TEXT, returns=named, rule=names_a_type),
    scalar("coalesce", ANY, returns=same, variadic=True, agree=()),
    scalar("default", ANY, ANY, returns=same, agree=()),
    scalar("ifThenElse", TRUTH, ANY, ANY, returns=second, agree=(1, 2)),
    *(
        scalar(f"instanceOf{kind}", ANY, returns=BOOL)
        for kind in ("String", "Integer", "Long", "Float", "Double", "Boolean")
    ),
    scalar("maximum", NUMBER, returns=same, variadic=True, agree=()),
    scalar("minimum", NUMBER, returns=same, variadic=True, agree=()),
    scalar("UUID", returns=STRING),
    scalar("currentTimeMillis", returns=LONG),
    scalar("eventTimestamp", returns=LONG),
    scalar("createSet", ANY - SET, returns=OBJECT),
    scalar("sizeOfSet", SET, returns=INT),
)

STRINGS = (
    scalar("str:charAt", TEXT, WHOLE, returns=STRING, python=strings.char_at),
    scalar(
        "str:coalesce",
        TEXT,
        returns=STRING,
        variadic=True,
        python=strings.coalesce,
        takes_null=True,
    ),
    scalar(
        "str:concat",
        ANY,
        ANY,
        returns=STRING,
        variadic=True,
        python=strings.concat,
        takes_null=True,
    ),
    scalar("str:contains", TEXT, TEXT, returns=BOOL, python=strings.contains),
    scalar("str:equalsIgnoreCase", TEXT, TEXT, returns=BOOL, python=strings.equals_ignore_case),
    scalar(
        "str:fillTemplate",
        TEXT,
        ANY,
        returns=STRING,
        variadic=True,
        python=strings.fill_template,
        takes_null=True,
    ),
    scalar("str:hex", TEXT, returns=STRING, python=strings.to_hex),
    scalar("str:length", TEXT, returns=INT, python=strings.length),
    scalar("str:locate", TEXT, TEXT, WHOLE, returns=INT, optional=1, python=strings.locate),
    scalar("str:lower", TEXT, returns=STRING, python=strings.lower),
    scalar("str:regexp", TEXT, TEXT, returns=BOOL, python=strings.regexp),
    scalar("str:repeat", TEXT, WHOLE, returns=STRING, python=strings.repeat),
    scalar("str:replaceAll", TEXT, TEXT, TEXT, returns=STRING, python=strings.replace_all),
    scalar("str:replaceFirst", TEXT, TEXT, TEXT, returns=STRING, python=strings.replace_first),
    scalar("str:reverse", TEXT, returns=STRING, python=strings.reverse),
    scalar("str:split", TEXT, TEXT, WHOLE, returns=STRING, python=strings.split),
    scalar("str:strcmp", TEXT, TEXT, returns=INT, python=strings.strcmp),
    scalar("str:substr", TEXT, WHOLE, WHOLE, returns=STRING, optional=1, python=strings.substr),
    scalar("str:trim", TEXT, returns=STRING, python=strings.trim),
    scalar("str:unhex", TEXT, returns=STRING, python=strings.from_hex),
    scalar("str:upper", TEXT, returns=STRING, python=strings.upper),
)

_OF_TWO = frozenset({"atan2", "copySign", "log", "power"})

MATHS = (
    *(
        scalar(
            f"math:{name}",
            *[NUMBER] * (2 if name in _OF_TWO else 1),
            returns=DOUBLE,
            python=maths.real(function),
        )
        for name, function in maths.REALS.items()
    ),
    scalar("math:abs", NUMBER, returns=same, python=maths.absolute),
    scalar("math:bin", WHOLE, returns=STRING, python=maths.to_bin),
    scalar("math:conv", TEXT, WHOLE, WHOLE, returns=STRING, python=maths.conv),
    scalar("math:e", returns=DOUBLE, python=maths.e),
    scalar("math:getExponent", NUMBER, returns=INT, python=maths.exponent),
    scalar("math:hex", WHOLE, returns=STRING, python=maths.to_hex),
    scalar("math:isInfinite", frozenset({FLOAT, DOUBLE}), returns=BOOL, python=maths.is_infinite),
    scalar("math:isNan", frozenset({FLOAT, DOUBLE}), returns=BOOL, python=maths.is_nan),
    scalar("math:max", NUMBER, NUMBER, returns=promoted, python=maths.larger),
    scalar("math:min", NUMBER, NUMBER, returns=promoted, python=maths.smaller),
    scalar("math:oct", WHOLE, returns=STRING, python=maths.to_oct),
    scalar("math:parseDouble", TEXT, returns=DOUBLE, python=maths.parse_real),
    scalar("math:parseFloat", TEXT, returns=FLOAT, python=maths.parse_real),
    scalar("math:parseInt", TEXT, returns=INT, python=maths.parse_whole),
    scalar("math:parseLong", TEXT, returns=LONG, python=maths.parse_whole),
    scalar("math:pi", returns=DOUBLE, python=maths.pi),
    scalar("math:round", NUMBER, returns=rounded, python=maths.rounded),
    scalar("math:signum", NUMBER, returns=INT, python=maths.signum),
)

TIMES = (
    scalar("time:currentDate", returns=STRING, python=times.current_date, clocked=True),
    scalar("time:currentTime", returns=STRING, python=times.current_time, clocked=True),
    scalar("time:currentTimestamp", returns=STRING, python=times.current_timestamp, clocked=True),
    scalar("time:date", TEXT, TEXT, returns=STRING, optional=1, python=times.date),
    scalar(
        "time:dateAdd",
        TEXT | {LONG},
        WHOLE,
        TEXT,
        TEXT,
        returns=STRING,
        optional=1,
        python=times.date_add,
    ),
    scalar(
        "time:dateDiff", TEXT, TEXT, TEXT, TEXT, returns=INT, optional=2, python=times.date_diff
    ),
    scalar(
        "time:dateFormat",
        TEXT | {LONG},
        TEXT,
        TEXT,
        returns=STRING,
        optional=1,
        python=times.date_format,
    ),
    scalar(
        "time:dateSub",
        TEXT | {LONG},
        WHOLE,
        TEXT,
        TEXT,
        returns=STRING,
        optional=1,
        python=times.date_sub,
    ),
    scalar("time:dayOfWeek", TEXT, TEXT, returns=STRING, optional=1, python=times.day_of_week),
    scalar(
        "time:extract", TEXT | {LONG}, TEXT, TEXT, returns=INT, optional=1, python=times.extract
    ),
    scalar(
        "time:timestampInMilliseconds",
        TEXT,
        TEXT,
        returns=LONG,
        optional=2,
        python=times.timestamp,
        clocked=True,
    ),
    scalar("time:utcTimestamp", returns=STRING, python=times.current_timestamp, clocked=True),
)

FUNCTIONS = FunctionTable((*AGGREGATES, *SCALARS, *STRINGS, *MATHS, *TIMES))
