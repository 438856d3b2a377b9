"""Declare the functions and aggregators of SiddhiQL itself: those without a namespace.

Engines have the bodies of these by name, so that generated code calls no body for a count.
"""

from __future__ import annotations

from edgewise.plan.functions.table import (
    ANY,
    BOOL,
    DOUBLE,
    INT,
    LONG,
    NUMBER,
    OBJECT,
    SET,
    STRING,
    TEXT,
    TRUTH,
    aggregate,
    named,
    names_a_type,
    same,
    scalar,
    second,
    summed,
)

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
