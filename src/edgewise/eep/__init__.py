"""Compute windows and aggregates over plain values: no Spark, no server, no app.

>>> from edgewise import eep
>>> window = eep.sliding(eep.Mean(), 3)
>>> [window.push(price) for price in (1.0, 2.0, 3.0, 4.0)]
[(), (), (2.0,), (3.0,)]

The aggregates here are the definitions that queries and merges follow; `laws` checks yours.
"""

from edgewise.eep.aggregate import Aggregate
from edgewise.eep.clock import Clock, Counting, EventTime, Vector, Wall, happened_before
from edgewise.eep.composite import Composite, Stats
from edgewise.eep.contents import Distinct, First, Last, Percentile, TopK, Whole
from edgewise.eep.numeric import Count, Max, Mean, Min, StdDev, Sum, Variance
from edgewise.eep.window import Window, monotonic, periodic, sliding, tumbling

__all__ = [
    "Aggregate",
    "Clock",
    "Composite",
    "Count",
    "Counting",
    "Distinct",
    "EventTime",
    "First",
    "Last",
    "Max",
    "Mean",
    "Min",
    "Percentile",
    "Stats",
    "StdDev",
    "Sum",
    "TopK",
    "Variance",
    "Vector",
    "Wall",
    "Whole",
    "Window",
    "happened_before",
    "monotonic",
    "periodic",
    "sliding",
    "tumbling",
]
