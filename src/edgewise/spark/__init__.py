"""Run SiddhiQL on Spark: on DataFrames, and as the engine of a node.

    from edgewise import spark as ew

    alerts = ew.query(TEXT, logins=frame, time="ts", lateness="5 seconds")

`query`, `app`, `siddhi` and `state` are for DataFrames of one's own (`operator`); the other
modules run a node's app over its logs. No other room imports pyspark, and importing this one does
not either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgewise.spark.operator.api import app, query, siddhi, state
    from edgewise.spark.operator.apply import AppState
    from edgewise.spark.operator.results import Results

__all__ = ["AppState", "Results", "app", "query", "siddhi", "state"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'edgewise.spark' has no attribute '{name}'")
    from edgewise.spark.operator import api, apply, results

    homes = {"AppState": apply, "Results": results}
    return getattr(homes.get(name, api), name)
