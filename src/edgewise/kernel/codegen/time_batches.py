"""Write external time batches over groups that take a long run at once, as columns.

Most events only join a batch. Here a run is cut where its time passes the end of a batch; each
part is summed by key in dictionaries, in order, and the rows of all its groups are made together.
State is that of `operators.ExternalTimeBatch`: what is left at the end of the run waits there.
"""

from __future__ import annotations

from edgewise.event.types import AttrType
from edgewise.kernel.codegen.code_writer import tuple_text
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.row_text import emit_columns
from edgewise.kernel.codegen.select_columns import columns_text, is_plain
from edgewise.kernel.codegen.stream_query import StreamQueryWriter
from edgewise.plan.exprs import Agg, Const, Expr, Field, walk

_EXACT = (AttrType.STRING, AttrType.BOOL, AttrType.INT, AttrType.LONG)  # equal is the same


def write_batches(builder: FragmentBuilder, stream: str, code: StreamQueryWriter) -> None:
    """Inside the feeder, with `batch`, `heap` and `S` at hand; shorter runs go on below it."""
    w, names = builder.writer, builder.schema(stream).names
    window = code.source.window
    assert window is not None
    stamp, span = window.args
    assert isinstance(stamp, Field)
    assert isinstance(span, Const)
    w.line(f"times = vec.moments(run.columns[{names.index(stamp.name)}])")
    with w.block("if batch and times is not None and not heap and not batch[3]"):
        w.line("columns, low = run.columns, 0")
        w.line("high = vec.first_from(times, 0, batch[2])")
        at_once = _at_once(code)
        if at_once:
            w.line("closed = True")
        with w.block("while high is not None"):
            if at_once:
                _write_closed(builder, names, code, span.value)
            w.line("stamps, part = run.ts[low:high], [c[low:high] for c in columns]")
            with w.block("if batch[0]"):
                w.line("batch[0] += zip(stamps, zip(*part))")
                w.line("stamps = [ts for ts, _ in batch[0]]")
                w.line("part = list(zip(*(row for _, row in batch[0])))")
            w.line("cause = run.clock[high], run.offset[high], run.at[high]")
            w.line(f"rt.put({code.name}_batch(part, stamps, *cause))")
            w.line("now = int(times[high])")
            w.line(f"batch[2] = now - (now - batch[2]) % {span.value} + {span.value}")
            w.line("batch[0], batch[1], low = [], [], high")
            w.line("high = vec.first_from(times, low, batch[2])")
        w.line("batch[0] += zip(run.ts[low:], zip(*(c[low:] for c in columns)))")
        w.line("rt.now = max(rt.now, run.clock[-1])")
        w.line("return")


def _at_once(code: StreamQueryWriter) -> bool:
    """Its rows are attributes and aggregates as they are: columns in, columns out."""
    select = code.query.select
    return all(f.type in _EXACT for f in select.group_by) and is_plain(select)


def _write_closed(
    builder: FragmentBuilder, names: tuple[str, ...], code: StreamQueryWriter, span: int
) -> None:
    """All batches that a run of Arrow columns closes, together."""
    w, select = builder.writer, code.query.select
    keys = "".join(f"{names.index(f.name)}, " for f in select.group_by)
    with w.block("if closed and not batch[0]"):
        w.line(f"closed = col.ClosedBatches.of(run, ({keys}), times, low, batch[2], {span})")
        with w.block("if closed is not None"):
            data = columns_text(
                select,
                names,
                "closed.taken(columns[{}])".format,
                lambda call, position: (
                    f"closed.{call}({f'columns[{position}]' if position else ''})"
                ),
            )
            w.line(f"data = {data}")
            with w.block("if not any(c is None for c in data)"):
                w.line(f"rt.put(closed.block({code.query.output.target!r}, data))")
                w.line("batch[2], low = closed.bound, closed.stop")
                w.line("break")
            w.line("closed = None")


def write_batch(builder: FragmentBuilder, stream: str, code: StreamQueryWriter) -> None:
    """A function from the columns of one batch to its rows."""
    w, names, select = builder.writer, builder.schema(stream).names, code.query.select
    found = dict.fromkeys(n for i in select.items for n in walk(i.expr) if isinstance(n, Agg))
    cells = {agg: n for n, agg in enumerate(found)}
    data = _from_groups(code, cells)
    with w.block(f"def {code.name}_batch(columns, stamps, clock, offset, at)"):
        keys = [f"columns[{names.index(f.name)}]" for f in select.group_by]
        w.line(f"keys = {keys[0]}" if len(keys) == 1 else f"keys = list(zip({', '.join(keys)}))")
        last = "stamps" if data else "range(len(stamps))"
        w.line(f"last = dict(zip(keys, {last}))")
        for agg, n in cells.items():
            _gather(builder, names, agg, n)
        w.line("n = len(last)")
        if not data:
            w.line("take = vec.taker(list(last.values()))")
        w.line(f"data = {data or _from_rows(builder, names, code, cells)}")
        block = emit_columns(
            code.query.output.target,
            "data",
            clock="(clock,) * n",
            offset="(offset,) * n",
            seq="range(n)",
            ts="list(last.values())" if data else "take(stamps)",
            at="(at,) * n",
        )
        w.lines_of("return ", block)


def _gather(builder: FragmentBuilder, names: tuple[str, ...], agg: Agg, n: int) -> None:
    """`a<n>`: the value of an aggregate for each group, in the order of `last`."""
    w, kind = builder.writer, agg.name.lower()
    if kind == "count":
        w.line(f"a{n} = list(Counter(keys).values())")
        return
    arg, zero = agg.args[0], "0" if kind == "sum" and agg.type is AttrType.LONG else "0.0"
    assert isinstance(arg, Field)
    w.line(f"s{n} = {{}}")
    if kind == "avg":
        w.line(f"n{n} = dict.fromkeys(last, 0)")
    with (
        w.block(f"for key, x in zip(keys, columns[{names.index(arg.name)}])"),
        w.block("if x is not None"),
    ):
        w.line(f"s{n}[key] = s{n}.get(key, {zero}) + x")
        if kind == "avg":
            w.line(f"n{n}[key] += 1")
    if kind == "avg":
        w.line(f"a{n} = [s{n}[key] / n if n else None for key, n in n{n}.items()]")
    elif arg.type is AttrType.LONG:
        w.line(f"a{n} = vec.wrapped(s{n}, last)")
    else:
        w.line(f"a{n} = list(map(s{n}.get, last))")


def _from_groups(code: StreamQueryWriter, cells: dict[Agg, int]) -> str:
    """The rows' values where all are keys or aggregates; '' where one must be looked up."""
    groups = code.query.select.group_by
    items = [i.expr for i in code.query.select.items]
    # Zeros of either sign are one group: its key is then not that of the last event.
    exact = all(f.type in _EXACT for f in groups)
    if not exact or not all(i in cells or i in groups for i in items):
        return ""

    def value(item: Expr) -> str:
        if isinstance(item, Agg):
            return f"a{cells[item]}"
        return "list(last)" if len(groups) == 1 else f"[k[{groups.index(item)}] for k in last]"

    return f"[{', '.join(map(value, items))}]"


def _from_rows(
    builder: FragmentBuilder,
    names: tuple[str, ...],
    code: StreamQueryWriter,
    cells: dict[Agg, int],
) -> str:
    """The rows' values: of the last event of each group, and its aggregates."""
    columns, read = builder.event_locals(code.source.stream), code.read_columns()

    def resolve(expr: Expr) -> ExprText:
        return ExprText(f"x{cells[expr]}") if isinstance(expr, Agg) else read(expr)

    items = [i.expr for i in code.query.select.items]
    used = [key[1] for key in code.names.used(*items)]
    exprs = ExprWriter(builder.writer, resolve)
    values = [exprs.value(e) for e in items]
    left = ["ts", *(columns[n] for n in used), *(f"x{n}" for n in cells.values())]
    right = ["take(stamps)", *(f"take(columns[{names.index(n)}])" for n in used)]
    right += [f"a{n}" for n in cells.values()]
    rows = f"{tuple_text(values)} for {', '.join(left)} in zip({', '.join(right)})"
    return f"list(zip(*({rows})))"
