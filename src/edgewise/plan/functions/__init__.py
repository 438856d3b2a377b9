"""Every function an app can call, with its types: one table for the checker and all engines.

One module for each namespace; `table` has the form of a row. Users add rows of their own, with a
Python function or the name of a native Spark expression as the body:
`FUNCTIONS.with_(scalar("my:twice", NUMBER, returns=same, python=lambda x: 2 * x))`.
"""

from edgewise.plan.functions import (
    aggregates,
    environment,
    geo,
    jsons,
    lists,
    maps,
    maths,
    regexes,
    strings,
    times,
    units,
)
from edgewise.plan.functions.language import AGGREGATES, SCALARS
from edgewise.plan.functions.table import (
    ANY,
    NUMBER,
    SET,
    TEXT,
    TRUTH,
    WHOLE,
    Function,
    FunctionTable,
    Returns,
    Types,
    aggregate,
    overloaded,
    same,
    scalar,
)

__all__ = [
    "AGGREGATES", "ANY", "FUNCTIONS", "NUMBER", "SET", "TEXT", "TRUTH", "WHOLE", "Function",
    "FunctionTable", "Returns", "Types", "aggregate", "overloaded", "same", "scalar",
]  # fmt: skip

NAMESPACES = (
    aggregates,
    environment,
    geo,
    jsons,
    lists,
    maps,
    maths,
    regexes,
    strings,
    times,
    units,
)

FUNCTIONS = FunctionTable(
    (*AGGREGATES, *SCALARS, *(row for namespace in NAMESPACES for row in namespace.FUNCTIONS))
)
