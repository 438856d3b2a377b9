"""A sliding window over groups, a long run at once: text that hands the run to `vectors` (a length
window) or, where the fragment has the groups for keys, to `columnar` (a time window).
"""

from __future__ import annotations

from edgewise.engines.kernel.column_code import columns_text, is_plain
from edgewise.engines.kernel.exprs import Code, Exprs
from edgewise.engines.kernel.page import Page
from edgewise.engines.kernel.queries import StreamQuery
from edgewise.engines.kernel.selector import SelectorCode
from edgewise.engines.kernel.writer import local
from edgewise.event.types import AttrType
from edgewise.plan.exprs import Agg, Const, Expr, Field, walk
from edgewise.plan.nodes import EventType


def adds_up(select: SelectorCode) -> bool:
    """Counts and sums of whole numbers by group: the order of additions does not matter."""
    wanted = select.select
    found = [n for i in wanted.items for n in walk(i.expr) if isinstance(n, Agg)]
    plain = [a.args == () if a.name.lower() == "count" else _whole(a) for a in found]
    return bool(wanted.group_by) and wanted.having is None and all(plain)


def _whole(agg: Agg) -> bool:
    arg = agg.args[0] if len(agg.args) == 1 else None
    numbers = (AttrType.INT, AttrType.LONG)
    return agg.name.lower() in {"sum", "avg"} and isinstance(arg, Field) and arg.type in numbers


def write_slide(page: Page, stream: str, code: StreamQuery, select: SelectorCode) -> None:
    """A long run as arrays, where its sums are exact; the loop below does the others."""
    w, names, source = page.writer, page.schema(stream).names, code.source
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
            _slid_rows(page, stream, code, found)
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


def _aggregates(select: SelectorCode) -> list[Agg]:
    found = (n for i in select.select.items for n in walk(i.expr) if isinstance(n, Agg))
    return list(dict.fromkeys(found))


def _slid_rows(page: Page, stream: str, code: StreamQuery, found: dict[Agg, int]) -> None:
    """All rows of the run: columns in, columns out."""
    w, names = page.writer, page.schema(stream).names

    def resolve(expr: Expr) -> Code:
        if isinstance(expr, Agg):
            return Code(f"x{found[expr]}", nullable=False)
        known = code.names.code(expr)
        return Code(f"c_{known.text}", known.nullable) if known.text != "ts" else known

    items = [i.expr for i in code.query.select.items]
    used = [key[1] for key in code.names.used(*items)]
    exprs = Exprs(w, resolve)
    values = [exprs.value(e) for e in items]
    left = [*(f"c_{local(n)}" for n in used), *(f"x{i}" for i in found.values())]
    right = [*(f"columns[{names.index(n)}]" for n in used), *(f"a{i}" for i in found.values())]
    target, times = code.query.output.target, "(0,) * n"
    if all(value in left for value in values):
        data = f"[{', '.join(right[left.index(value)] for value in values)}]"
    else:
        left, right = ["ts", *left], ["run.ts", *right]
        made = f"({', '.join(values)}{',' if len(values) == 1 else ''})"
        data = f"list(zip(*({made} for {', '.join(left)} in zip({', '.join(right)}))))"
    w.line("n = len(run.ts)")
    w.line("rt.put(OutColumns(")
    w.line(f"    {target!r}, run.clock, (1,) * n, run.offset, {times}, run.ts, run.at, {times},")
    w.line(f"    {data},")
    w.line("))")


def slides_by_key(page: Page, code: StreamQuery) -> bool:
    """A time window whose groups are the fragment's keys; nobody sees an event leave."""
    query, window, select = code.query, code.source.window, code.windowed
    stream = code.source.stream
    return (
        page.fragment.keyed
        and window is not None
        and window.name.lower() == "time"
        and select is not None
        and adds_up(select)
        and {f.name for f in select.select.group_by} == set(page.fragment.key_of(stream))
        and is_plain(select.select)
        and not (code.source.before or code.source.after)
        and not (select.select.order_by or query.rate or query.partition)
        and select.select.limit is None
        and select.select.offset is None
        and query.output.events is EventType.CURRENT
        and not page.guarded(stream)
    )


def write_slide_by_key(page: Page, stream: str, code: StreamQuery) -> None:
    w, names = page.writer, page.schema(stream).names
    select, window = code.windowed, code.source.window
    assert select is not None
    assert window is not None
    [span] = window.args
    assert isinstance(span, Const)
    keys = "".join(f"{names.index(n)}, " for n in page.fragment.key_of(stream))
    w.line("columns = run.columns")
    w.line(f"slide = col.Sliding.of(rt, run, ({keys}), {code.window_cell}, {span.value})")
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
