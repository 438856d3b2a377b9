"""Write queries with stream processors: a chain of steps between the stream and the selection.

    chunk -> filters, operator -> chunk -> filters, window -> chunk -> filters, select

Each step is a function that takes a chunk of rows with their kinds, and an operator that appends
to the next one; what its timer lets out goes on from there. Used by `queries` where a query has a
processor; queries without one keep their shorter forms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from edgewise.kernel.codegen.code_writer import CodeWriter
from edgewise.kernel.codegen.expr_text import ExprWriter
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder, StateScope
from edgewise.kernel.codegen.row_layout import RowLayout
from edgewise.kernel.codegen.selector import SelectWriter
from edgewise.kernel.codegen.window_calls import make_window
from edgewise.plan.exprs import Expr
from edgewise.plan.nodes import Handler, Query, StreamCall, StreamInput, Window
from edgewise.plan.processors import cluster_settings, count_settings

Step = tuple[tuple[Handler, ...], StreamCall | Window]


class ChainedQuery(Protocol):
    """What of a query's writer a chain needs."""

    builder: FragmentBuilder
    query: Query
    writer: CodeWriter
    name: str
    scope: StateScope
    names: RowLayout
    source: StreamInput

    def exprs(self) -> ExprWriter: ...
    def handlers(self, handlers: tuple[Handler, ...], slot: str, done: set[str]) -> None: ...
    def unpack(self, done: set[str], *exprs: Expr | None) -> None: ...
    def selector(self, *, only_current: bool) -> SelectWriter: ...
    def select_function(
        self, select: SelectWriter, after: tuple[Handler, ...], slot: str
    ) -> None: ...


def has_processor(handlers: tuple[Handler, ...]) -> bool:
    return any(isinstance(h, StreamCall) and h.operator for h in handlers)


def _split(handlers: tuple[Handler, ...]) -> tuple[list[Step], tuple[Handler, ...]]:
    """Steps that end in a processor, and the handlers after the last of them."""
    steps: list[Step] = []
    plain: list[Handler] = []
    for handler in handlers:
        if isinstance(handler, StreamCall) and handler.operator:
            steps.append((tuple(plain), handler))
            plain = []
        else:
            plain.append(handler)
    return steps, tuple(plain)


def write_chain(code: ChainedQuery) -> None:
    """`_in`, the steps behind it, and `_select`."""
    source = code.source
    steps, last = _split(source.before)
    if source.window is not None:
        steps.append((last, source.window))
        behind, last = _split(source.after)
    else:
        behind, last = _split((*last, *source.after))
    steps += behind
    names = [f"{code.name}_step{i}" for i in range(len(steps))]
    for i, (handlers, operator) in enumerate(steps):
        following = names[i + 1] if i + 1 < len(names) else f"{code.name}_select"
        _write_step(code, names[i], handlers, operator, following)
    select = code.selector(only_current=False)
    code.select_function(select, last, source.slot)
    code.writer.line(f"{code.name}_in = {names[0]}")


def _write_step(
    code: ChainedQuery,
    name: str,
    handlers: tuple[Handler, ...],
    operator: StreamCall | Window,
    following: str,
) -> None:
    w, builder, scope, slot = code.writer, code.builder, code.scope, code.source.slot
    cell, node = scope.next_cell, builder.next_node
    if isinstance(operator, Window):
        made = make_window(builder, operator, slot, code.names, cell, code.query.span)
    else:
        made = MAKERS[operator.name.lower()](operator).format(f"rt, {node}, {cell}")
    scope.cell(f"{name}_op.fresh()")
    builder.node(f"{name}_timer")
    w.line()
    w.line(f"{name}_op = {made}")
    with w.block(f"def {name}(S, chunk)"):
        w.line("out = []")
        with w.block("for kind, ts, row in chunk"):
            if isinstance(operator, StreamCall):
                with w.block("if kind == 2"):
                    w.line(f"{name}_op.reset(S, ts, row, out)")
                    w.line("continue")
            _write_push(code, name, handlers, operator)
        w.line(f"{name}_op.end(S, out)")
        with w.block("if out"):
            w.line(f"{following}(S, out)")
    with w.block(f"def {name}_timer(S, due, payload)"):
        w.line("out = []")
        w.line(f"{name}_op.timer(S, due, payload, out)")
        with w.block("if out"):
            w.line(f"{following}(S, out)")


def _write_push(
    code: ChainedQuery, name: str, handlers: tuple[Handler, ...], operator: StreamCall | Window
) -> None:
    w, slot = code.writer, code.source.slot
    done: set[str] = set()
    code.handlers(handlers, slot, done)
    if isinstance(operator, Window):
        w.line(f"{name}_op.push(S, ts, row, out)")
        return
    code.unpack(done, *operator.args)
    exprs = code.exprs()
    args = "".join(f"{exprs.value(a)}, " for a in operator.args)
    w.line(f"{name}_op.process(S, kind, ts, row, ({args}), out)")
    if operator.name.lower() in STARTED:
        constants = ", ".join(repr(getattr(a, "value", None)) for a in operator.args)
        code.scope.created.append(f"{name}_op.start(S, {constants})")
    for attribute in operator.adds:
        code.names.append((slot, attribute.name, None))


STARTED = frozenset({"reorder:kslack", "reorder:akslack"})  # their clock begins with the app


def _plain(kind: str, after: str = "") -> Callable[[StreamCall], str]:
    return lambda _call: f"{kind}({{}}{after})"


def _with_settings(kind: str) -> Callable[[StreamCall], str]:
    """All but the first argument are known when the app is compiled."""

    def make(call: StreamCall) -> str:
        settings = "".join(f", {getattr(a, 'value', None)!r}" for a in call.args[1:])
        ever = ", ever=True" if call.name.lower().endswith("ever") else ""
        return f"{kind}({{}}{settings}{ever})"

    return make


def _top(kind: str, *, top: bool) -> Callable[[StreamCall], str]:
    return lambda call: f"{kind}({{}}, {getattr(call.args[-1], 'value', 0)!r}, top={top})"


def _cluster(call: StreamCall) -> str:
    return f"clu.KMeans({{}}, {cluster_settings(call.name, call.args)})"


def _regression(kind: str) -> Callable[[StreamCall], str]:
    return lambda call: f"{kind}({{}}, {count_settings(call.name, call.args)})"


MAKERS: dict[str, Callable[[StreamCall], str]] = {
    "str:tokenize": _plain("prc.TokenizeText"),
    "json:tokenize": _plain("prc.TokenizeJson"),
    "json:tokenizeasobject": _plain("prc.TokenizeJsonObject"),
    "list:tokenize": _plain("prc.TokenizeList"),
    "map:tokenize": _plain("prc.TokenizeMap"),
    "unique:deduplicate": _plain("prc.Deduplicate"),
    "reorder:kslack": _plain("slk.Slack"),
    "reorder:akslack": _plain("slk.AdaptiveSlack"),
    "extrema:minmax": _plain("trn.BoundedExtremes"),
    **{
        f"{space}:{name}minmax": _plain(f"trn.{name.title()}Extremes")
        for space in ("extrema", "timeseries")
        for name in ("kernel", "kalman")
    },
    **{
        f"extrema:{word}k{batch.lower()}": _top(f"top.TopCounts{batch}", top=word == "top")
        for word in ("top", "bottom")
        for batch in ("", "LengthBatch", "TimeBatch")
    },
    **{
        f"timeseries:{prefix}{name}": _regression(f"reg.{kind}{'ByTime' if prefix else ''}")
        for prefix in ("", "lengthtime")
        for name, kind in (
            ("regress", "Regression"), ("forecast", "Forecast"), ("outlier", "Outlier"),
        )
    },
    "streamingml:kmeansincremental": _cluster,
    "streamingml:kmeansminibatch": _cluster,
    "geo:crosses": _plain("geo.Crosses"),
    "geo:stationary": _plain("geo.Stationary"),
    "geo:proximity": _plain("geo.Proximity"),
    "geo:closestpoints": _plain("geo.ClosestPoints"),
    "geo:locationapproximate": _plain("geo.LocationApproximate"),
    "approximate:count": _with_settings("skt.ApproximateCount"),
    "approximate:distinctcount": _with_settings("skt.ApproximateDistinct"),
    "approximate:distinctcountever": _with_settings("skt.ApproximateDistinct"),
}  # fmt: skip
