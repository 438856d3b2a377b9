"""Declare the aggregates of namespaces; their bodies are in `collectors`."""

from __future__ import annotations

from edgewise.plan.exprs import Const
from edgewise.plan.functions import collectors
from edgewise.plan.functions.table import (
    ANY,
    DOUBLE,
    NUMBER,
    OBJECT,
    SET,
    STRING,
    TEXT,
    TRUTH,
    Args,
    aggregate,
    overloaded,
)

JSON = frozenset({STRING, OBJECT})
REAL = frozenset({DOUBLE})
PERCENT_MAX = 100


def _has_percent(args: Args) -> str:
    percent = args[1]
    if not isinstance(percent, Const):
        return "the percentile must be a constant"
    if not 0 < percent.value <= PERCENT_MAX:
        return "a percentile is above 0 and up to 100"
    return ""


def _has_order(args: Args) -> str:
    order = args[3] if len(args) > 3 else None
    if isinstance(order, Const) and str(order.value).upper() not in {"ASC", "DESC"}:
        return f"'{order.value}' is no order; use 'ASC' or 'DESC'"
    return ""


_JSON_SHAPES = ((JSON,), (JSON, TRUTH), (JSON, TEXT), (JSON, TEXT, TRUTH))

FUNCTIONS = (
    overloaded(
        "json:group", *_JSON_SHAPES, returns=STRING, aggregate=True, body=collectors.GroupJson()
    ),
    overloaded(
        "json:groupAsObject", *_JSON_SHAPES, returns=OBJECT, aggregate=True,
        body=collectors.GroupJsonObjects(),
    ),
    aggregate(
        "list:collect", ANY, TRUTH, returns=OBJECT, optional=1, body=collectors.CollectList()
    ),
    aggregate("list:merge", SET, TRUTH, returns=OBJECT, optional=1, body=collectors.MergeLists()),
    aggregate("map:collect", ANY, ANY, returns=OBJECT, body=collectors.CollectMap()),
    aggregate("map:merge", SET, returns=OBJECT, body=collectors.MergeMaps()),
    aggregate(
        "math:percentile", NUMBER, REAL, returns=DOUBLE, rule=_has_percent,
        body=collectors.Percentile(),
    ),
    aggregate("stats:median", NUMBER, returns=DOUBLE, body=collectors.Median()),
    aggregate(
        "str:groupConcat", TEXT, TEXT, TRUTH, TEXT, returns=STRING, optional=3, rule=_has_order,
        body=collectors.GroupConcat(),
    ),
)  # fmt: skip
