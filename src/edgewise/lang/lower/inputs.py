"""Lower the inputs of queries: streams with handlers and windows, and joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.lang.lower.context import LoweringContext
from edgewise.lang.lower.expressions import Context
from edgewise.lang.lower.scope import Slot
from edgewise.lang.lower.symbols import AGGREGATION, STREAM, TABLE, WINDOW
from edgewise.lang.lower.windows import lower_window
from edgewise.lang.report import Refused, Report, suggest_nearest
from edgewise.lang.syntax import expr as written_expr
from edgewise.lang.syntax import query as written
from edgewise.lang.tokens import UNIT_WORDS
from edgewise.plan import nodes
from edgewise.plan.exprs import Const, Expr, Field
from edgewise.plan.streamcalls import StreamFunction

STORE_KINDS = {
    STREAM: nodes.StoreKind.STREAM,
    WINDOW: nodes.StoreKind.WINDOW,
    TABLE: nodes.StoreKind.TABLE,
    AGGREGATION: nodes.StoreKind.AGGREGATION,
}
PER_UNITS = frozenset(UNIT_WORDS) - {"week", "weeks", "millisec", "millisecond", "milliseconds"}


def lower_source(
    draft: LoweringContext,
    node: written.Source,
    kinds: tuple[str, ...] = (STREAM, WINDOW),
    *,
    operators: bool = False,
) -> tuple[nodes.StreamInput, Slot]:
    """A stream through its handlers, and the slot that later clauses see.

    What is refused is left out and the rest is read on: the report holds the problem. Stream
    processors are legal where `operators` are: in a query on one stream.
    """
    name = resolve_stream(draft, node)
    label = node.alias or name.full
    slot = Slot(label, Schema(name.full, ()), (label,), broken=True)
    with draft.report.attempt():
        entry, schema = draft.symbols.find(name, *kinds)
        slot = Slot(label, schema, (label,))
        if entry.kind == WINDOW and node.window is not None:
            hint = f"'{name.full}' is a window already; read it as it is"
            draft.report.error(node.window.at, "a named window takes no further window", hint)
    before, slot = lower_handlers(draft, node.before, slot, operators=operators)
    window: nodes.Window | None = None
    if node.window is not None:
        with draft.report.attempt():
            window = lower_window(_lower_plain_source(draft, slot), node.window)
    after, slot = lower_handlers(draft, node.after, slot, operators=operators)
    return nodes.StreamInput(name.full, label, before, window, after), slot


def resolve_stream(draft: LoweringContext, node: written.Source) -> written.Name:
    if isinstance(node.stream, written.Query):
        return draft.inner(draft, node.stream)
    return node.stream


def _lower_plain_source(draft: LoweringContext, slot: Slot) -> Context:
    return draft.context((slot,), no_aggregates="in a filter or a window")


def lower_handlers(
    draft: LoweringContext,
    handlers: tuple[written.Handler, ...],
    slot: Slot,
    others: tuple[Slot, ...] = (),
    *,
    operators: bool = False,
) -> tuple[tuple[nodes.Handler, ...], Slot]:
    """Filters and stream functions in order; a function may add attributes for those after.

    One that is refused is left out; what it would have added is then unknown.
    """
    found: list[nodes.Handler] = []
    for handler in handlers:
        slots = tuple(slot if s.name == slot.name else s for s in others) or (slot,)
        context = draft.context(slots, own=slot.name, no_aggregates="in a filter")
        try:
            if isinstance(handler, written.Filter):
                found.append(nodes.Filter(context.boolean(handler.condition, "a filter")))
            else:
                known = draft.stream_functions
                call = _lower_stream_call(context, handler, slot, known, operators=operators)
                found.append(call)
                attributes = (*slot.schema.attributes, *call.adds)
                slot = replace(slot, schema=Schema(slot.schema.name, attributes))
        except Refused:
            broken = slot.broken or isinstance(handler, written.StreamFunction)
            slot = replace(slot, broken=broken)
    return tuple(found), slot


def _lower_stream_call(
    context: Context,
    node: written.StreamFunction,
    slot: Slot,
    known: Mapping[str, StreamFunction],
    *,
    operators: bool,
) -> nodes.StreamCall:
    call = node.call
    full = f"{call.namespace}:{call.name}" if call.namespace else call.name
    function = known.get(full.lower())
    if function is None:
        context.report.check_whole()
        names = [f.name for f in known.values()]
        hint = suggest_nearest(full, names) or "a window is written #window.name()"
        context.report.fail(node.at, f"there is no stream function '{full}'", hint)
    args: tuple[Expr, ...]
    if call.star:
        args = tuple(Field(a.type, slot.name, a.name) for a in slot.schema.attributes)
    else:
        args = context.each(call.args)
    _check_overload(context.report, node, function, tuple(a.type for a in args))
    processor = function.processor
    problem = processor.rule(args) if processor and processor.rule else ""
    if problem:
        context.report.fail(node.at, f"#{function.name}: {problem}", function.usage)
    if processor and not operators:
        hint = "put it in a query before, which inserts into a stream of its own"
        context.report.fail(node.at, f"#{function.name} is not legal in a join or pattern", hint)
    adds = function.adds(args)
    for attribute in adds:
        if slot.schema.index(attribute.name) >= 0:
            context.report.fail(
                node.at, f"'{function.name}' adds '{attribute.name}', which the stream has already"
            )
    return nodes.StreamCall(function.name, args, adds, function.procedure, processor is not None)


def _check_overload(
    report: Report,
    node: written.StreamFunction,
    function: StreamFunction,
    given: tuple[AttrType, ...],
) -> None:
    if function.fits(given):
        return
    shown = ", ".join(t.value for t in given) or "nothing"
    report.fail(node.at, f"'{function.name}' does not take ({shown})", function.usage)


# Joins.


def lower_join(
    draft: LoweringContext, node: written.Join
) -> tuple[nodes.JoinInput, tuple[Slot, ...]]:
    report = draft.report
    left, left_slot = _lower_join_side(draft, node.left, triggers=node.trigger != "right")
    right, right_slot = _lower_join_side(draft, node.right, triggers=node.trigger != "left")
    slots = (left_slot, right_slot)
    if left_slot.name == right_slot.name:
        hint = "give each side a name: A as a join A as b"
        report.fail(node.at, f"both sides are called '{left_slot.name}'", hint)
    if not left.triggers and not right.triggers:
        report.error(node.at, "no side of this join triggers it", "a table only answers")
    context = draft.context(slots, no_aggregates="in 'on'")
    on: Expr | None = None
    if node.on is not None:
        with report.attempt():
            on = context.boolean(node.on, "'on'")
    within: tuple[Expr, ...] = ()
    per: Expr | None = None
    with report.attempt():
        aggregation = nodes.StoreKind.AGGREGATION in {left.kind, right.kind}
        within, per = lower_range(context, node.within, node.per, aggregation, node.at)
    if not _keeps_events(left) and not _keeps_events(right):
        hint = "add a window to a side: #window.time(1 min)"
        report.warn(node.at, "no side of this join keeps events, so none will meet", hint)
    return nodes.JoinInput(left, right, nodes.JoinKind(node.kind), on, within, per), slots


def _keeps_events(side: nodes.JoinSide) -> bool:
    return side.kind is not nodes.StoreKind.STREAM or side.input.window is not None


def _lower_join_side(
    draft: LoweringContext, node: written.Source, *, triggers: bool
) -> tuple[nodes.JoinSide, Slot]:
    kinds = (STREAM, WINDOW, TABLE, AGGREGATION)
    source, slot = lower_source(draft, node, kinds)
    entry = draft.symbols.get(source.stream)
    kind = STORE_KINDS[entry.kind if entry else STREAM]
    stored = kind in {nodes.StoreKind.TABLE, nodes.StoreKind.AGGREGATION}
    if stored and node.window is not None:
        hint = f"all rows of a {kind.value} are found; leave the window out"
        draft.report.warn(node.window.at, f"a window on a {kind.value} has no effect", hint)
        source = replace(source, window=None)
    return nodes.JoinSide(source, kind, triggers and not stored), slot


def lower_range(
    context: Context,
    within: written.Within | None,
    per: written_expr.Expression | None,
    aggregation: bool,
    at: tuple[int, int],
) -> tuple[tuple[Expr, ...], Expr | None]:
    """`within ... per ...`: needed with an aggregation and only legal with one."""
    report = context.report
    if within is None or per is None:
        if aggregation:
            hint = "add: within '2020-01-** **:**:**' per 'days'"
            report.fail(at, "an aggregation is read with 'within' and 'per'", hint)
        return (), None
    if not aggregation:
        report.fail(within.at, "'within ... per' is only legal with an aggregation")
    ends = [within.start] if within.end is None else [within.start, within.end]
    found = context.each(ends)
    for expr, text in zip(found, ends, strict=True):
        if expr.type not in {AttrType.STRING, AttrType.LONG}:
            report.fail(text.at, f"'within' takes a string or a long, not {expr.type.value}")
    unit = context.lower(per)
    if unit.type is not AttrType.STRING:
        report.fail(per.at, f"'per' takes a string, not {unit.type.value}")
    if isinstance(unit, Const) and unit.value.lower() not in PER_UNITS:
        hint = "use 'seconds', 'minutes', 'hours', 'days', 'months' or 'years'"
        report.fail(per.at, f"'{unit.value}' is not a duration", hint)
    return found, unit
