"""Write sliding windows over groups that take a long run at once.

A length window is computed by `operators.vectors`; a time window by `operators.column_windows`,
where the groups are the keys of the fragment. Shorter runs go through the loop below it.
"""

from __future__ import annotations

from edgewise.event.types import AttrType
from edgewise.kernel.codegen.code_writer import tuple_text
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.row_text import emit_columns
from edgewise.kernel.codegen.select_columns import columns_text, is_plain
from edgewise.kernel.codegen.selector import SelectWriter
from edgewise.kernel.codegen.stream_query import StreamQueryWriter
from edgewise.plan.exprs import Agg, Const, Expr, Field, walk
from edgewise.plan.nodes import EventType


def adds_up(select: SelectWriter) -> bool:
    """Counts and sums of whole numbers by group: the order of additions does not matter."""
    wanted = select.select
    found = [n for i in wanted.items for n in walk(i.expr) if isinstance(n, Agg)]
    plain = [a.args == () if a.name.lower() == "count" else _whole(a) for a in found]
    return bool(wanted.group_by) and wanted.having is None and all(plain)


def _whole(agg: Agg) -> bool:
    arg = agg.args[0] if len(agg.args) == 1 else None
    numbers = (AttrType.INT, AttrType.LONG)
    return agg.name.lower() in {"sum", "avg"} and isinstance(arg, Field) and arg.type in numbers


def write_slide(
    builder: FragmentBuilder, stream: str, code: StreamQueryWriter, select: SelectWriter
) -> None:
    """A long run as arrays, where its sums are exact; the loop below does the others."""
    w, names, source = builder.writer, builder.schema(stream).names, code.source
    assert source.window is not None
    size = source.window.args[0]
    assert isinstance(size, Const)
    keys = [names.index(f.name) for f in select.select.group_by]
    old, new = (
        (f"row[{keys[0]}]", f"columns[{keys[0]}]")
        if len(keys) == 1
        else (
            f"({', '.join(f'row[{k}]' for k in keys)})",
            f"zip({', '.join(f'columns[{k}]' for k in keys)})",
        )
    )
    w.line("columns = run.columns")
    with w.block("if len(run.ts) >= vec.LEAST_EVENTS and not heap"):
        w.line("old = [row for _, row in held]")
        w.line(f"slide = vec.Slide([*({old} for row in old), *{new}], len(old), {size.value})")
        found = {n: i for i, n in enumerate(_aggregates(select))}
        sums = []
        for agg, i in found.items():
            if agg.args and isinstance(agg.args[0], Field):
                at = names.index(agg.args[0].name)
                w.line(f"s{i} = slide.sums([*(row[{at}] for row in old), *columns[{at}]])")
                sums.append(f"s{i} is not None")
        with w.block(f"if {' and '.join(sums) or True}"):
            for agg, i in found.items():
                kind = agg.name.lower()
                text = {"avg": f"slide.means(s{i})", "sum": f"s{i}.tolist()"}.get(kind)
                w.line(f"a{i} = {text or 'slide.counts()'}")
            _slid_rows(builder, stream, code, found)
            w.line("events = zip(run.ts, zip(*columns))")
            w.line(f"held.extend(islice(events, max(0, len(run.ts) - {size.value}), None))")
            with w.block(f"while len(held) > {size.value}"):
                w.line("held.popleft()")
            w.line("groups.clear()")
            with w.block("for _, row in held"):
                text = code.names.unpack(code.names.used(*select.expressions()))
                w.line(text)
                select.step("add")
            w.line("rt.now = max(rt.now, run.clock[-1])")
            w.line("return")


def _aggregates(select: SelectWriter) -> list[Agg]:
    found = (n for i in select.select.items for n in walk(i.expr) if isinstance(n, Agg))
    return list(dict.fromkeys(found))


def _slid_rows(
    builder: FragmentBuilder, stream: str, code: StreamQueryWriter, found: dict[Agg, int]
) -> None:
    """All rows of the run: columns in, columns out."""
    w, names, columns = builder.writer, builder.schema(stream).names, builder.event_locals(stream)
    read = code.read_columns()

    def resolve(expr: Expr) -> ExprText:
        return ExprText(f"x{found[expr]}", nullable=False) if isinstance(expr, Agg) else read(expr)

    items = [i.expr for i in code.query.select.items]
    used = [key[1] for key in code.names.used(*items)]
    exprs = ExprWriter(w, resolve)
    values = [exprs.value(e) for e in items]
    left = [*(columns[n] for n in used), *(f"x{i}" for i in found.values())]
    right = [*(f"columns[{names.index(n)}]" for n in used), *(f"a{i}" for i in found.values())]
    if all(value in left for value in values):
        data = f"[{', '.join(right[left.index(value)] for value in values)}]"
    else:
        left, right = ["ts", *left], ["run.ts", *right]
        rows = f"{tuple_text(values)} for {', '.join(left)} in zip({', '.join(right)})"
        data = f"list(zip(*({rows})))"
    w.line("n = len(run.ts)")
    own = {name: f"run.{name}" for name in ("clock", "offset", "ts", "at")}
    w.lines_of("rt.put(", emit_columns(code.query.output.target, data, **own), ")")


def slides_by_key(builder: FragmentBuilder, code: StreamQueryWriter) -> bool:
    """A time window whose groups are the fragment's keys; nobody sees an event leave."""
    query, window, select = code.query, code.source.window, code.windowed
    stream = code.source.stream
    return (
        builder.fragment.keyed
        and window is not None
        and window.name.lower() == "time"
        and select is not None
        and adds_up(select)
        and {f.name for f in select.select.group_by} == set(builder.fragment.key_of(stream))
        and is_plain(select.select)
        and not (code.source.before or code.source.after)
        and not (select.select.order_by or query.rate or query.partition)
        and select.select.limit is None
        and select.select.offset is None
        and query.output.events is EventType.CURRENT
        and not builder.guarded(stream)
    )


def write_slide_by_key(builder: FragmentBuilder, stream: str, code: StreamQueryWriter) -> None:
    w, names = builder.writer, builder.schema(stream).names
    select, window = code.windowed, code.source.window
    assert select is not None
    assert window is not None
    [span] = window.args
    assert isinstance(span, Const)
    keys = "".join(f"{names.index(n)}, " for n in builder.fragment.key_of(stream))
    w.line("columns = run.columns")
    w.line(f"slide = col.SlidingByKey.of(rt, run, ({keys}), {code.window_cell}, {span.value})")
    with w.block("if slide is not None"):
        data = columns_text(select.select, names, "columns[{}]".format, "slide.{}({})".format)
        w.line(f"data = {data}")
        with w.block("if not any(c is None for c in data)"):
            w.line(f"rt.put(slide.block({code.query.output.target!r}, data))")
            with w.block(f"for S, held in slide.settle({code.window_node})"):
                w.line(f"groups = S[{select.cell}]")
                w.line("groups.clear()")
                with w.block("for _, _, _, row in held"):
                    w.line(code.names.unpack(code.names.used(*select.expressions())))
                    select.step("add")
            w.line("return")
