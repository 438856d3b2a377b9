"""Windows and aggregates as a library of its own: no Spark, no server.

from edgewise.eep import Mean, sliding
window = sliding(Mean(), 3)
for price in (1.0, 2.0, 3.0, 4.0):
    for mean in window.push(price):
        print(mean)          # 2.0, then 3.0
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
