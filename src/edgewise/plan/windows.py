"""List every window and its arguments: one table for the checker and both engines."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from edgewise.event.types import AttrType
from edgewise.plan.exprs import Const, Expr, Field
from edgewise.plan.functions import ANY, NUMBER, SET, TEXT, TRUTH, WHOLE, Types


class Form(enum.Enum):
    """Whether an argument must be known when the app is compiled."""

    CONSTANT = "a constant"
    ATTRIBUTE = "an attribute"
    EITHER = "a constant or an attribute"


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    types: Types
    form: Form = Form.CONSTANT


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """`overloads` are the legal argument lists; `repeats` may follow any of them, repeated.

    `bounded` says what limits its memory: 'events', 'time' or '' for the input alone.
    """

    name: str
    overloads: tuple[tuple[Param, ...], ...]
    repeats: tuple[Param, ...] = ()
    rule: Callable[[tuple[Expr, ...]], str] | None = None
    batch: bool = False
    bounded: str = "events"
    wall_clock: bool = False


TIME = Param("time", WHOLE)
COUNT = Param("count", frozenset({AttrType.INT}))
START = Param("start", WHOLE)
STREAM_CURRENT = Param("streamCurrent", TRUTH)
STAMP = Param("timestamp", frozenset({AttrType.LONG}), Form.ATTRIBUTE)
KEY = Param("key", TEXT, Form.ATTRIBUTE)
LATENCY = Param("latency", WHOLE)
CONDITION = Param("expression", TEXT, Form.EITHER)
RATIO = Param("ratio", frozenset({AttrType.DOUBLE}))
ATTRIBUTE = Param("attribute", ANY, Form.ATTRIBUTE)
FIRST_START = Param("start", WHOLE, Form.EITHER)
INCLUDE = Param("includeTrigger", TRUTH, Form.EITHER)


def _latency_fits(args: tuple[Expr, ...]) -> str:
    gap, latency = args[0], args[-1]
    if len(args) > 1 and isinstance(gap, Const) and isinstance(latency, Const):
        return "the latency is longer than the gap" if latency.value > gap.value else ""
    return ""


def _orders_are_known(args: tuple[Expr, ...]) -> str:
    """After the length: attributes, each with an optional 'asc' or 'desc'."""
    before: Expr | None = None
    for arg in args[1:]:
        if isinstance(arg, Const):
            if str(arg.value).lower() not in {"asc", "desc"}:
                return f"'{arg.value}' is not an order; use 'asc' or 'desc'"
            if not isinstance(before, Field):
                return "an order follows an attribute"
        before = arg
    return ""


def _cron_has_fields(args: tuple[Expr, ...]) -> str:
    if isinstance(args[0], Const) and len(str(args[0].value).split()) not in {6, 7}:
        return "a cron expression has six fields: sec min hour day month weekday"
    return ""


def _not_negative(args: tuple[Expr, ...]) -> str:
    for arg in args:
        if isinstance(arg, Const) and arg.type in WHOLE and arg.value < 0:
            return "a length or a time cannot be negative"
    return ""


UNIQUE_KEY = Param("key", ANY - SET, Form.ATTRIBUTE)
COMPARED = Param("attribute", NUMBER | TEXT, Form.ATTRIBUTE)
SIZE = Param("length", WHOLE)

_EXTERNAL_BATCH = (STAMP, TIME, FIRST_START, Param("timeout", WHOLE), Param("replace", TRUTH))

_UNIQUE = (
    WindowSpec("unique:ever", ((UNIQUE_KEY,),), repeats=(UNIQUE_KEY,), bounded=""),
    WindowSpec("unique:first", ((UNIQUE_KEY,),), repeats=(UNIQUE_KEY,), bounded=""),
    WindowSpec("unique:length", ((UNIQUE_KEY, COUNT),), rule=_not_negative),
    WindowSpec("unique:time", ((UNIQUE_KEY, TIME),), rule=_not_negative, bounded="time"),
    *(
        WindowSpec(f"unique:{name}", ((UNIQUE_KEY, COUNT),), rule=_not_negative, batch=True)
        for name in ("lengthBatch", "firstLengthBatch")
    ),
    *(
        WindowSpec(
            f"unique:{name}",
            ((UNIQUE_KEY, TIME), (UNIQUE_KEY, TIME, START)),
            rule=_not_negative,
            batch=True,
            bounded="time",
        )
        for name in ("timeBatch", "firstTimeBatch")
    ),
    WindowSpec(
        "unique:timeLengthBatch",
        ((UNIQUE_KEY, TIME, COUNT), (UNIQUE_KEY, TIME, START, COUNT)),
        rule=_not_negative,
        batch=True,
    ),
    WindowSpec(
        "unique:externalTimeBatch",
        tuple((UNIQUE_KEY, *_EXTERNAL_BATCH[:n]) for n in range(2, 6)),
        batch=True,
        bounded="time",
    ),
)

_EXTREME = tuple(
    spec
    for by in ("max", "min")
    for spec in (
        WindowSpec(f"extrema:{by}ByLength", ((COMPARED, SIZE),), rule=_not_negative),
        WindowSpec(
            f"extrema:{by}ByLengthBatch", ((COMPARED, COUNT),), rule=_not_negative, batch=True
        ),
        WindowSpec(f"extrema:{by}byTime", ((COMPARED, TIME),), rule=_not_negative, bounded="time"),
        WindowSpec(
            f"extrema:{by}byTimeBatch",
            ((COMPARED, TIME), (COMPARED, TIME, START)),
            rule=_not_negative,
            batch=True,
            bounded="time",
        ),
    )
)

WINDOWS = {
    spec.name.lower(): spec
    for spec in (
        WindowSpec("length", ((COUNT,),), rule=_not_negative),
        WindowSpec(
            "lengthBatch", ((COUNT,), (COUNT, STREAM_CURRENT)), rule=_not_negative, batch=True
        ),
        WindowSpec("time", ((TIME,),), rule=_not_negative, bounded="time"),
        WindowSpec(
            "timeBatch",
            ((TIME,), (TIME, START), (TIME, STREAM_CURRENT), (TIME, START, STREAM_CURRENT)),
            rule=_not_negative,
            batch=True,
            bounded="time",
        ),
        WindowSpec("externalTime", ((STAMP, TIME),), rule=_not_negative, bounded="time"),
        WindowSpec(
            "externalTimeBatch",
            tuple(_EXTERNAL_BATCH[:n] for n in range(2, 6)),
            batch=True,
            bounded="time",
        ),
        WindowSpec("timeLength", ((TIME, COUNT),), rule=_not_negative),
        WindowSpec(
            "session",
            ((TIME,), (TIME, KEY), (TIME, LATENCY), (TIME, KEY, LATENCY)),
            rule=_latency_fits,
            bounded="time",
        ),
        WindowSpec(
            "sort",
            ((COUNT, ATTRIBUTE),),
            repeats=(Param("attribute or order", ANY, Form.EITHER),),
            rule=_orders_are_known,
        ),
        WindowSpec("frequent", ((COUNT,),), repeats=(ATTRIBUTE,)),
        WindowSpec("lossyFrequent", ((RATIO,), (RATIO, RATIO)), repeats=(ATTRIBUTE,)),
        WindowSpec(
            "cron",
            ((Param("cron", TEXT),),),
            rule=_cron_has_fields,
            batch=True,
            bounded="",
            wall_clock=True,
        ),
        WindowSpec("delay", ((TIME,),), rule=_not_negative, bounded="time"),
        WindowSpec("hopping", ((TIME, TIME),), rule=_not_negative, bounded="time"),
        WindowSpec("batch", ((), (COUNT,)), rule=_not_negative, batch=True),
        WindowSpec("expression", ((CONDITION,),), bounded=""),
        WindowSpec(
            "expressionBatch",
            tuple((CONDITION, INCLUDE, STREAM_CURRENT)[:n] for n in range(1, 4)),
            batch=True,
            bounded="",
        ),
        *_UNIQUE,
        *_EXTREME,
    )
}
