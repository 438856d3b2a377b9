"""Feeders as text: columns in, one event at a time inside.

A stream that a single simple query reads is fed in straight lines, with no function call for an
event: a filter is one comprehension, a sliding window over groups and a keyed pair of a pattern
are one loop. Everything else goes through the functions of the queries.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.engines.kernel.batch_code import write_batch, write_batches
from edgewise.engines.kernel.exprs import Code, Exprs
from edgewise.engines.kernel.mask_code import all_of
from edgewise.engines.kernel.page import Page
from edgewise.engines.kernel.pair_code import KeyedQuery, Suits
from edgewise.engines.kernel.queries import QueryCode, StreamQuery
from edgewise.engines.kernel.selector import SelectorCode
from edgewise.engines.kernel.slide_code import (
    adds_up,
    slides_by_key,
    write_slide,
    write_slide_by_key,
)
from edgewise.engines.kernel.writer import local
from edgewise.plan.exprs import Agg, Call, Const, Expr, Field, InTable, OutField, walk
from edgewise.plan.nodes import EventType, Filter, InsertInto
from edgewise.plan.rules.stretch import stamp_of, sums_up

_CLOCKED = {"currenttimemillis", "uuid"}


def write_feeder(page: Page, stream: str, codes: Mapping[str, QueryCode]) -> None:
    w = page.writer
    w.line()
    readers = page.readers(stream)
    code = codes[readers[0].name] if len(readers) == 1 else None
    alone = not any(a.input.stream == stream for a in page.app.aggregations)
    leaf = alone and code is not None and _leaf(page, code)
    alone = leaf and not page.fragment.keyed
    plain = alone and isinstance(code, StreamQuery) and _stateless(page, code)
    if plain and page.guarded(stream):
        with w.block(f"def each_{local(stream)}(run)"):
            _general(page, stream)
        w.line()
    if alone and isinstance(code, StreamQuery) and _gathers(code) and sums_up(code.query):
        write_batch(page, stream, code)
        w.line(f"rt.batches = {code.window_cell}")
        w.line()
    with w.block(f"def feed_{local(stream)}(run)"):
        if isinstance(code, StreamQuery) and plain:
            _comprehension(page, stream, code)
            return
        if alone and not page.guarded(stream):
            if isinstance(code, KeyedQuery):
                _keyed(page, stream, code)
                return
            if isinstance(code, StreamQuery) and code.sliding is not None:
                _sliding(page, stream, code, code.sliding)
                return
            if isinstance(code, StreamQuery) and _gathers(code):
                _gathering(page, stream, code)
                return
        if leaf and isinstance(code, StreamQuery) and slides_by_key(page, code):
            write_slide_by_key(page, stream, code)
        _general(page, stream)


def _leaf(page: Page, code: QueryCode) -> bool:
    """Its rows go to the world and nowhere else."""
    output = code.query.output
    return (
        isinstance(output, InsertInto)
        and output.target not in page.read()
        and page.app.table(output.target) is None
        and page.app.window(output.target) is None
        and not output.target.startswith("#")
        and code.query.name not in page.taps
        and code.query.rate is None
    )


def _columns(page: Page, stream: str, used: list[str] | None = None) -> tuple[str, str]:
    """The loop's variables and the zip that fills them."""
    names = page.schema(stream).names
    wanted = list(names) if used is None else used
    left = ", ".join(["ts", "offset", "clock", "at", *(f"c_{local(n)}" for n in wanted)])
    if used is None:
        return left, "zip(run.ts, run.offset, run.clock, run.at, *run.columns)"
    right = "".join(f", columns[{names.index(n)}]" for n in wanted)
    return left, f"zip(run.ts, run.offset, run.clock, run.at{right})"


def _row(page: Page, stream: str) -> str:
    names = [f"c_{local(n)}" for n in page.schema(stream).names]
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _general(page: Page, stream: str) -> None:
    w = page.writer
    w.line("heap = rt.heap")
    if not page.fragment.keyed:
        w.line("S = None")
    left, source = _columns(page, stream)
    with w.block(f"for {left} in {source}"):
        with w.block("if heap and heap[0][0] <= clock"):
            w.line("rt.fire(clock, at)")
        w.line("rt.begin(clock, 1, offset, at)")
        if page.fragment.keyed:
            parts = [f"c_{local(n)}" for n in page.fragment.key_of(stream)]
            key = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
            w.line(f"S = rt.state({key})")
        else:
            with w.block("if S is None"):
                w.line("S = rt.state(())")
            w.line("rt.root = S")
        w.line(f"{page.stream_name(stream)}(S, [(0, ts, {_row(page, stream)})])")


def _stateless(page: Page, code: StreamQuery) -> bool:
    select, source = code.query.select, code.source
    exprs = [i.expr for i in select.items]
    exprs += [h.condition for h in (*source.before, *source.after) if isinstance(h, Filter)]
    exprs += [select.having] if select.having is not None else []
    nodes = [n for e in exprs for n in walk(e)]
    return (
        source.window is None
        and not code.named
        and not page.timers
        and not code.query.partition
        and not select.order_by
        and select.limit is None
        and select.offset is None
        and code.query.output.events is not EventType.EXPIRED
        and all(isinstance(h, Filter) for h in (*source.before, *source.after))
        and not any(isinstance(n, Agg | InTable) for n in nodes)
        and not any(isinstance(n, Call) and _clocked(n) for n in nodes)
    )


def _clocked(call: Call) -> bool:
    return call.clocked or call.name.lower() in _CLOCKED


def _comprehension(page: Page, stream: str, code: StreamQuery) -> None:
    w, query, source = page.writer, code.query, code.source
    filters = [h.condition for h in (*source.before, *source.after) if isinstance(h, Filter)]
    items = {i.name: i.expr for i in query.select.items}
    having = [query.select.having] if query.select.having is not None else []

    def resolve(expr: Expr) -> Code:
        if isinstance(expr, OutField):
            return Code(Exprs(w, resolve).value(items[expr.name]))
        found = code.names.code(expr)
        return Code(f"c_{found.text}", found.nullable) if found.text != "ts" else found

    exprs = Exprs(w, resolve)
    conditions = [exprs.condition(c) for c in (*filters, *having)]
    values = [exprs.value(e) for e in items.values()]
    used = [key[1] for key in code.names.used(*filters, *having, *items.values())]
    used += [n for key in having for n in _out_names(code, key) if n not in used]
    target = query.output.target
    data = f"({', '.join(values)}{',' if len(values) == 1 else ''})"
    w.line("columns = run.columns")
    left, right = _columns(page, stream, used)
    text = ["rt.rows += ["]
    text.append(f"    ({target!r}, clock, 1, offset, 0, ts, at, 0, {data})")
    text.append(f"    for {left} in {right}")
    if conditions:
        text.append(f"    if {' and '.join(conditions)}")
    text.append("]")
    if having or not _pick_columns(page, stream, code, filters):
        _text(page, stream, text)
    else:
        with w.block("else"):
            _text(page, stream, text)
    with w.block("if len(run.clock)"):
        w.line("rt.now = max(rt.now, run.clock[-1])")


def _text(page: Page, stream: str, text: list[str]) -> None:
    w = page.writer
    if not page.guarded(stream):
        for line in text:
            w.line(line)
    else:  # one of them fails: nothing was added yet, so find it event by event
        with w.block("try"):
            for line in text:
                w.line(line)
        with w.block("except Exception"):
            w.line(f"each_{local(stream)}(run)")


def _pick_columns(page: Page, stream: str, code: StreamQuery, filters: list[Expr]) -> bool:
    """Attributes of events that a mask picks go out as columns; True where `else` follows."""
    w, names = page.writer, page.schema(stream).names
    items = [i.expr for i in code.query.select.items]
    test = all_of(tuple(filters))
    if not test or not all(isinstance(item, Field) for item in items):
        return False
    read = [key[1] for key in code.names.used(*filters)]
    arrays = [f"a_{local(n)}" for n in read]
    wholes = [f"vec.whole(columns[{names.index(n)}])" for n in read]
    w.line(f"{', '.join(arrays)} = {', '.join(wholes)}")
    with w.block(f"if {' is not None and '.join(arrays)} is not None"):
        w.line(f"picked = vec.hits({test})")
        w.line("take, n = vec.taker(picked), len(picked)")
        places = [f"take(columns[{names.index(item.name)}])" for item in items
                  if isinstance(item, Field)]  # fmt: skip
        w.line("rt.put(OutColumns(")
        w.line(f"    {code.query.output.target!r}, take(run.clock), (1,) * n, take(run.offset),")
        w.line("    (0,) * n, take(run.ts), take(run.at), (0,) * n,")
        w.line(f"    [{', '.join(places)}],")
        w.line("))")
    return True


def _out_names(code: StreamQuery, having: Expr) -> list[str]:
    """Attributes behind the outputs that `having` reads."""
    outs = {n.name for n in walk(having) if isinstance(n, OutField)}
    exprs = [i.expr for i in code.query.select.items if i.name in outs]
    return [key[1] for key in code.names.used(*exprs)]


def _fires(page: Page) -> None:
    if page.timers:
        with page.writer.block("if heap and heap[0][0] <= clock"):
            page.writer.line("rt.fire(clock, at)")


def _keyed(page: Page, stream: str, code: KeyedQuery) -> None:
    w, target, used = page.writer, code.query.output.target, code.used(stream)
    emit = f"rows.append(({target!r}, clock, 1, offset, {{seq}}, ts, at, 0, {{data}}))"
    suits = code.suits(stream) if not page.timers else None
    w.line("heap, rows, columns = rt.heap, rt.rows, run.columns")
    with w.block("if len(run.clock)"):
        w.line("rt.now = max(rt.now, run.clock[0])")
    w.line(f"{code.opened} = rt.state(())[{code.cell}]")
    left, right = _columns(page, stream, used)
    if suits is None:
        with w.block(f"for {left} in {right}"):
            _fires(page)
            code.event(stream, emit)
    else:
        _pick(page, stream, suits, right)
        with w.block(f"for {left} in events"):
            code.event(stream, emit)
        code.at_last()
    with w.block("if len(run.clock)"):
        w.line("rt.now = max(rt.now, run.clock[-1])")


def _pick(page: Page, stream: str, suits: Suits, every: str) -> None:
    """Where time only rises, an event that suits no element by itself is not looked at."""
    w, names = page.writer, page.schema(stream).names
    columns = [f"columns[{names.index(n)}]" for n in suits.names]
    left = ", ".join(["i", *(f"c_{local(n)}" for n in suits.names)])
    w.line("picked = None")
    with w.block("if run.ts == run.clock"):
        singly = f"[i for {left} in zip(range(len(run.ts)), {', '.join(columns)}) if {suits.test}]"
        if suits.mask:
            arrays = [f"a_{local(n)}" for n in suits.names]
            w.line(f"{', '.join(arrays)} = {', '.join(f'vec.whole({c})' for c in columns)}")
            with w.block(f"if {' is None or '.join(arrays)} is None"):
                w.line(f"picked = {singly}")
            with w.block("else"):
                w.line(f"picked = vec.places({suits.mask})")
        else:
            w.line(f"picked = {singly}")
    w.line(f"events = vec.events(picked, {every.removeprefix('zip(')}")


def _gathers(code: StreamQuery) -> bool:
    """An external time batch: most events only join it."""
    return (
        stamp_of(code.source) is not None
        and not code.query.partition
        and all(isinstance(h, Filter) for h in code.source.before)
        and not any(
            isinstance(n, Call | InTable)
            for h in code.source.before
            if isinstance(h, Filter)
            for n in walk(h.condition)
        )
    )


def _gathering(page: Page, stream: str, code: StreamQuery) -> None:
    w, clocked = page.writer, stamp_of(code.source)
    assert clocked is not None
    filters = [h.condition for h in code.source.before if isinstance(h, Filter)]
    w.line("heap = rt.heap")
    with w.block("if len(run.clock)"):
        w.line("rt.now = max(rt.now, run.clock[0])")
    w.line("S = rt.state(())")
    w.line(f"batch = S[{code.window_cell}]")
    if sums_up(code.query):
        write_batches(page, stream, code)

    def resolve(expr: Expr) -> Code:
        found = code.names.code(expr)
        return Code(f"c_{found.text}", found.nullable) if found.text != "ts" else found

    left, source = _columns(page, stream)
    with w.block(f"for {left} in {source}"):
        _fires(page)
        for condition in filters:
            with w.block(f"if not {Exprs(w, resolve).condition(condition)}"):
                w.line("continue")
        stamp = f"c_{local(clocked.name)}"
        with w.block(f"if batch and {stamp} is not None and {stamp} < batch[2] and not batch[3]"):
            w.line(f"batch[0].append((ts, {_row(page, stream)}))")
            w.line("continue")
        w.line("rt.begin(clock, 1, offset, at)")
        w.line("rt.root = S")
        w.line(f"{page.stream_name(stream)}(S, [(0, ts, {_row(page, stream)})])")
    with w.block("if len(run.clock)"):
        w.line("rt.now = max(rt.now, run.clock[-1])")


def _sliding(page: Page, stream: str, code: StreamQuery, select: SelectorCode) -> None:
    """A length window with aggregates, current rows only: what leaves is subtracted in passing."""
    w, source = page.writer, code.source
    assert source.window is not None
    size = source.window.args[0]
    assert isinstance(size, Const)
    filters = [h.condition for h in source.before if isinstance(h, Filter)]
    needed = code.names.used(*filters, *select.expressions())
    w.line("heap, rows = rt.heap, rt.rows")
    with w.block("if len(run.clock)"):
        w.line("rt.now = max(rt.now, run.clock[0])")
    w.line("S = rt.state(())")
    w.line(f"held = S[{code.window_cell}]")
    w.line(f"{'groups' if select.select.group_by else 'G'} = S[{select.cell}]")
    if not filters and adds_up(select):
        write_slide(page, stream, code, select)
    left, right = _columns(page, stream)
    with w.block(f"for {left} in {right}"):
        _fires(page)
        names = ", ".join(code.names.locals[k] for k in needed)
        values = ", ".join(f"c_{code.names.locals[k]}" for k in needed)
        if filters:
            w.line(f"{names} = {values}")
            for condition in filters:
                with w.block(f"if not {code.exprs().condition(condition)}"):
                    w.line("continue")
        with w.block(f"if len(held) == {size.value}"):
            w.line("row = held.popleft()[1]")
            text = code.names.unpack(needed)
            if text:
                w.line(text)
            select.step("subtract")
        w.line(f"held.append((ts, {_row(page, stream)}))")
        if needed:
            w.line(f"{names} = {values}")
        select.step("add")
        target = code.query.output.target
        select.emit_text(f"rows.append(({target!r}, clock, 1, offset, 0, ts, at, 0, {{data}}))")
    with w.block("if len(run.clock)"):
        w.line("rt.now = max(rt.now, run.clock[-1])")
