"""Name what every generated source may use: operators, functions, containers.

The keys are the globals of generated code, so they are short; no user's name can be one of them
(`codegen.name_allocator`). `compile` loads a fragment with them, `on_demand` a single query.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from itertools import islice, repeat
from typing import Any

from edgewise.errors import BadEvent
from edgewise.kernel.api import OutColumns
from edgewise.kernel.codegen import aggregates, selector
from edgewise.kernel.functions import calls, java
from edgewise.kernel.operators import (
    aggregation_buckets,
    batch_windows,
    clusters,
    column_windows,
    cron,
    external_time_batch,
    extreme_windows,
    filter_lookup,
    geo_processors,
    pattern_absence,
    pattern_bounds,
    pattern_elements,
    pattern_waiting,
    patterns,
    processors,
    rate_limits,
    regressions,
    session_window,
    sketches,
    slack,
    sliding_windows,
    stored_table,
    table_rows,
    top_counts,
    turning_points,
    unique_windows,
    vectors,
)

CODE_GLOBALS: dict[str, Any] = {
    "java": java,
    "fn": calls,
    "agg": aggregates,
    "win": sliding_windows,
    "bat": batch_windows,
    "etb": external_time_batch,
    "ext": extreme_windows,
    "uni": unique_windows,
    "clu": clusters,
    "geo": geo_processors,
    "prc": processors,
    "reg": regressions,
    "skt": sketches,
    "slk": slack,
    "top": top_counts,
    "trn": turning_points,
    "ses": session_window,
    "pat": patterns,
    "el": pattern_elements,
    "wait": pattern_waiting,
    "bounds": pattern_bounds,
    "ab": pattern_absence,
    "rate": rate_limits,
    "tab": table_rows,
    "sto": stored_table,
    "acc": aggregation_buckets,
    "cron": cron,
    "index": filter_lookup,
    "f32": java.f32,
    "vec": vectors,
    "col": column_windows,
    "deque": deque,
    "Counter": Counter,
    "OrderedDict": OrderedDict,
    "repeat": repeat,
    "islice": islice,
    "OutColumns": OutColumns,
    "arrange": selector.arrange,
    "BadEvent": BadEvent,
}
