"""Find windows that run on several tasks without a key, because time slices are independent.

An external time batch that sums up by group forgets everything when it closes. Between two ends of
batches a slice of events is therefore computed by itself, as long as their times ascend.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.event.types import AttrType
from edgewise.plan.exprs import Agg, Call, Const, Field, InTable, walk
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, EventType, InsertInto, Query, StreamInput

_NUMBERS = (AttrType.INT, AttrType.LONG, AttrType.DOUBLE)


@dataclass(frozen=True, slots=True)
class TimeBatchWindow:
    """Of `span` ms by an attribute of an input."""

    stream: str
    attribute: str
    span: int


def find_time_batch_window(app: App, fragment: Fragment) -> TimeBatchWindow | None:
    """None where slices of the input depend on each other."""
    queries = [q for q in app.queries if q.name in fragment.queries]
    if len(queries) != 1:  # none where an aggregation is all there is
        return None
    [query] = queries
    source = query.input
    if fragment.keyed or len(app.inputs) > 1 or not isinstance(source, StreamInput):
        return None
    if fragment.inputs != (app.inputs[0].name,) or app.inputs[0].lateness_ms is not None:
        return None
    if any(a.input.stream == source.stream and fragment.holds(a.name) for a in app.aggregations):
        return None
    stamp, output = find_time_attribute(source), query.output
    if stamp is None or source.window is None:
        return None
    span = source.window.args[1]
    held = app.table(output.target) is not None or app.window(output.target) is not None
    if query.partition or query.rate is not None or held or not isinstance(output, InsertInto):
        return None
    if not has_only_sums(query) or not isinstance(span, Const):
        return None
    return TimeBatchWindow(source.stream, stamp.name, span.value)


def find_time_attribute(source: StreamInput) -> Field | None:
    """The attribute whose time cuts an external time batch; None for all other windows."""
    window = source.window
    if window is None or window.name.lower() != "externaltimebatch" or len(window.args) != 2:
        return None
    stamp = window.args[0]
    return stamp if isinstance(stamp, Field) else None


def has_only_sums(query: Query) -> bool:
    """Sums, counts and means by group, current rows only, nothing that looks at single rows."""
    select, source = query.select, query.input
    assert isinstance(source, StreamInput)
    nodes = [n for i in select.items for n in walk(i.expr)]
    return (
        bool(select.group_by)
        and any(isinstance(n, Agg) for n in nodes)
        and all(_is_plain_sum(n) for n in nodes if isinstance(n, Agg))
        and not any(isinstance(n, Call | InTable) for n in nodes)
        and select.having is None
        and not select.order_by
        and select.limit is None
        and select.offset is None
        and query.output.events is EventType.CURRENT
        and not source.before
        and not source.after
    )


def _is_plain_sum(agg: Agg) -> bool:
    if agg.name.lower() == "count":
        return not agg.args
    arg = agg.args[0] if len(agg.args) == 1 else None
    return agg.name.lower() in {"sum", "avg"} and isinstance(arg, Field) and arg.type in _NUMBERS
