"""Write feeders: columns in, one event at a time inside.

A stream that a single simple query reads is fed in straight lines, with no function call for an
event; a sliding window also where others read the stream after it. `SHAPES` says which queries
these are and who writes them, the first that applies; the last one applies always and calls the
functions of the queries.

    shape                        query                                       code
    filter                       no state                                    a comprehension
    pattern                      chains and sequences, kept by key           a loop
    sliding window               length, time, external time; current rows   arrays or a loop
    time batch                   external time batch                         a loop over few events
    calls                        any                                         a loop of calls

A longer source is the price: the rows of all shapes must be those of the last one, which tests
compare.
"""

from __future__ import annotations

from collections.abc import Callable

from edgewise.kernel.codegen.code_writer import tuple_text
from edgewise.kernel.codegen.column_masks import all_of
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter
from edgewise.kernel.codegen.feeder_loop import Feeder, write_calls
from edgewise.kernel.codegen.filter_index import Reader
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.keyed_query import EventTest, KeyedQueryWriter
from edgewise.kernel.codegen.row_text import emit_columns, emit_row, output_sink
from edgewise.kernel.codegen.sliding_events import is_sliding_window, write_sliding_window
from edgewise.kernel.codegen.stream_query import QueryWriter, StreamQueryWriter
from edgewise.kernel.codegen.time_batches import write_batch, write_batches
from edgewise.plan.exprs import Agg, Call, Expr, Field, InTable, OutField, walk
from edgewise.plan.nodes import EventType, Filter, InsertInto
from edgewise.plan.rules.sliceable_windows import find_time_attribute, has_only_sums

OTHERS_MAX = 8  # queries that are called one by one; of more, an index finds those that match
_CLOCKED = {"currenttimemillis", "uuid"}


def write_feeder(builder: FragmentBuilder, stream: str, readers: list[Reader]) -> None:
    """The function that takes runs of this stream, and those it needs."""
    feeder = Feeder(builder, stream, None)
    if readers:
        (first, _), *rest = readers
        if first is not None and _is_leaf(builder, first):
            feeder = Feeder(builder, stream, first, tuple(n for _, names in rest for n in names))
    if len(feeder.others) > OTHERS_MAX or (feeder.others and not is_sliding_window(feeder)):
        feeder = Feeder(builder, stream, None)
    builder.writer.line()
    next(write for suits, write in SHAPES if suits(feeder))(feeder)


def _is_leaf(builder: FragmentBuilder, code: QueryWriter) -> bool:
    """Its rows go to the world and nowhere else."""
    output = code.query.output
    return (
        isinstance(output, InsertInto)
        and output.target not in builder.read()
        and builder.app.table(output.target) is None
        and builder.app.window(output.target) is None
        and not output.target.startswith("#")
        and code.query.name not in builder.taps
        and code.query.rate is None
    )


# Calls: every query can be fed so.


def _write_calls(feeder: Feeder) -> None:
    _declare_batches(feeder)
    with feeder.writer.block(f"def {feeder.name}(run)"):
        write_calls(feeder)


# A filter.


def _is_filter(feeder: Feeder) -> bool:
    code, builder = feeder.reader, feeder.builder
    if not isinstance(code, StreamQueryWriter) or builder.fragment.keyed:
        return False
    select, handlers = code.query.select, (*code.source.before, *code.source.after)
    exprs = [i.expr for i in select.items]
    exprs += [h.condition for h in handlers if isinstance(h, Filter)]
    exprs += [select.having] if select.having is not None else []
    nodes = [n for e in exprs for n in walk(e)]
    return (
        code.source.window is None
        and not code.named
        and not builder.timers
        and not code.query.partition
        and not select.order_by
        and select.limit is None
        and select.offset is None
        and code.query.output.events is not EventType.EXPIRED
        and all(isinstance(h, Filter) for h in handlers)
        and not any(isinstance(n, Agg | InTable) for n in nodes)
        and not any(isinstance(n, Call) and _reads_the_clock(n) for n in nodes)
    )


def _reads_the_clock(call: Call) -> bool:
    return call.clocked or call.name.lower() in _CLOCKED


def _write_filter(feeder: Feeder) -> None:
    w, guarded = feeder.writer, feeder.builder.guarded(feeder.stream)
    if guarded:
        with w.block(f"def {feeder.name}_singly(run)"):
            write_calls(feeder)
        w.line()
    with w.block(f"def {feeder.name}(run)"):
        w.line("columns = run.columns")
        code = feeder.stream_query()
        filters = [h.condition for h in (*code.source.before, *code.source.after)
                   if isinstance(h, Filter)]  # fmt: skip
        text = _comprehension(feeder, code, filters)
        if code.query.select.having is None and _pick_by_mask(feeder, code, filters):
            with w.block("else"):
                _write_guarded(feeder, text)
        else:
            _write_guarded(feeder, text)
        feeder.move_clock(-1)


def _comprehension(feeder: Feeder, code: StreamQueryWriter, filters: list[Expr]) -> list[str]:
    items = {i.name: i.expr for i in code.query.select.items}
    having = [code.query.select.having] if code.query.select.having is not None else []
    read = code.read_columns()

    def resolve(expr: Expr) -> ExprText:
        if isinstance(expr, OutField):
            return ExprText(ExprWriter(feeder.writer, resolve).value(items[expr.name]))
        return read(expr)

    exprs = ExprWriter(feeder.writer, resolve)
    conditions = [exprs.condition(c) for c in (*filters, *having)]
    data = tuple_text([exprs.value(e) for e in items.values()])
    used = [key[1] for key in code.names.used(*filters, *having, *items.values())]
    used += [n for condition in having for n in _behind(code, condition) if n not in used]
    left, right = feeder.loop(used)
    text = ["rt.rows += [", f"    {emit_row(code.query.output.target, data)}"]
    text.append(f"    for {left} in zip({right})")
    if conditions:
        text.append(f"    if {' and '.join(conditions)}")
    return [*text, "]"]


def _behind(code: StreamQueryWriter, having: Expr) -> list[str]:
    """Attributes behind the outputs that `having` reads."""
    outs = {n.name for n in walk(having) if isinstance(n, OutField)}
    exprs = [i.expr for i in code.query.select.items if i.name in outs]
    return [key[1] for key in code.names.used(*exprs)]


def _write_guarded(feeder: Feeder, text: list[str]) -> None:
    w = feeder.writer
    if not feeder.builder.guarded(feeder.stream):
        for line in text:
            w.line(line)
        return
    with w.block("try"):  # where one event fails nothing was added yet: find it event by event
        for line in text:
            w.line(line)
    with w.block("except Exception"):
        w.line(f"{feeder.name}_singly(run)")


def _pick_by_mask(feeder: Feeder, code: StreamQueryWriter, filters: list[Expr]) -> bool:
    """Attributes of events that a mask picks go out as columns; True where `else` follows."""
    w, names, arrays = feeder.writer, feeder.names, feeder.builder.array_locals(feeder.stream)
    items = [i.expr for i in code.query.select.items]
    test = all_of(tuple(filters), arrays)
    if not test or not all(isinstance(item, Field) for item in items):
        return False
    read = [key[1] for key in code.names.used(*filters)]
    mine = [arrays[n] for n in read]
    w.assign(mine, (f"vec.whole(columns[{names.index(n)}])" for n in read))
    with w.block(f"if {' is not None and '.join(mine)} is not None"):
        w.line(f"picked = vec.hits({test})")
        w.line("take, n = vec.taker(picked), len(picked)")
        data = [f"take(columns[{names.index(item.name)}])" for item in items
                if isinstance(item, Field)]  # fmt: skip
        taken = {name: f"take(run.{name})" for name in ("clock", "offset", "ts", "at")}
        block = emit_columns(code.query.output.target, f"[{', '.join(data)}]", **taken)
        w.lines_of("rt.put(", block, ")")
    return True


# Patterns and sequences that keep their matches by key.


def _is_keyed_pattern(feeder: Feeder) -> bool:
    return feeder.straight and isinstance(feeder.reader, KeyedQueryWriter)


def _write_keyed_pattern(feeder: Feeder) -> None:
    w, stream, code = feeder.writer, feeder.stream, feeder.reader
    assert isinstance(code, KeyedQueryWriter)
    sink = output_sink(code.query.output.target)
    suits = code.suits(stream) if not feeder.builder.timers else None
    left, right = feeder.loop(code.used(stream))
    with w.block(f"def {feeder.name}(run)"):
        w.line("heap, rows, columns = rt.heap, rt.rows, run.columns")
        feeder.move_clock(0)
        w.line(f"{code.opened} = rt.state(())[{code.cell}]")
        if suits is None:
            with w.block(f"for {left} in zip({right})"):
                feeder.fire_timers()
                code.event(stream, sink)
        else:
            _pick_suitable(feeder, suits, right)
            with w.block(f"for {left} in events"):
                code.event(stream, sink)
            code.at_last()
        feeder.move_clock(-1)


def _pick_suitable(feeder: Feeder, suits: EventTest, every: str) -> None:
    """Where time only rises, an event that suits no element by itself is not looked at."""
    w, names = feeder.writer, feeder.names
    columns = [f"columns[{names.index(n)}]" for n in suits.names]
    left = ", ".join(["i", *(feeder.columns[n] for n in suits.names)])
    w.line("picked = None")
    with w.block("if run.ts == run.clock"):
        singly = f"[i for {left} in zip(range(len(run.ts)), {', '.join(columns)}) if {suits.test}]"
        if suits.mask:
            all_arrays = feeder.builder.array_locals(feeder.stream)
            arrays = [all_arrays[n] for n in suits.names]
            w.assign(arrays, (f"vec.whole({c})" for c in columns))
            with w.block(f"if {' is None or '.join(arrays)} is None"):
                w.line(f"picked = {singly}")
            with w.block("else"):
                w.line(f"picked = vec.positions({suits.mask})")
        else:
            w.line(f"picked = {singly}")
    w.line(f"events = vec.events(picked, {every})")


# An external time batch: most events only join it.


def _gathers(code: QueryWriter | None) -> bool:
    if not isinstance(code, StreamQueryWriter):
        return False
    filters = [h.condition for h in code.source.before if isinstance(h, Filter)]
    return (
        find_time_attribute(code.source) is not None
        and not code.query.partition
        and len(filters) == len(code.source.before)
        and not any(isinstance(n, Call | InTable) for f in filters for n in walk(f))
    )


def _is_time_batch(feeder: Feeder) -> bool:
    return feeder.straight and _gathers(feeder.reader)


def _declare_batches(feeder: Feeder) -> None:
    """Where whole batches are made at once: the function, and the cell that holds the open one."""
    code, builder = feeder.reader, feeder.builder
    if builder.fragment.keyed or not isinstance(code, StreamQueryWriter):
        return
    if _gathers(code) and has_only_sums(code.query):
        write_batch(builder, feeder.stream, code)
        builder.writer.line(f"rt.batches = {code.window_cell}")
        builder.writer.line()


def _write_time_batch(feeder: Feeder) -> None:
    _declare_batches(feeder)
    w, builder, code = feeder.writer, feeder.builder, feeder.stream_query()
    clocked = find_time_attribute(code.source)
    assert clocked is not None
    stamp = feeder.columns[clocked.name]
    left, right = feeder.loop()
    with w.block(f"def {feeder.name}(run)"):
        w.line("heap = rt.heap")
        feeder.move_clock(0)
        w.line("S = rt.state(())")
        w.line(f"batch = S[{code.window_cell}]")
        if has_only_sums(code.query):
            write_batches(builder, feeder.stream, code)
        with w.block(f"for {left} in zip({right})"):
            feeder.fire_timers()
            for handler in code.source.before:
                assert isinstance(handler, Filter)
                test = ExprWriter(w, code.read_columns()).condition(handler.condition)
                with w.block(f"if not {test}"):
                    w.line("continue")
            joins = f"{stamp} is not None and {stamp} < batch[2] and not batch[3]"
            with w.block(f"if batch and {joins}"):
                w.line(f"batch[0].append((ts, {feeder.row()}))")
                w.line("continue")
            w.line("rt.begin(clock, 1, offset, at)")
            w.line("rt.root = S")
            w.line(f"{builder.stream_name(feeder.stream)}(S, [(0, ts, {feeder.row()})])")
        feeder.move_clock(-1)


SHAPES: tuple[tuple[Callable[[Feeder], bool], Callable[[Feeder], None]], ...] = (
    (_is_filter, _write_filter),
    (_is_keyed_pattern, _write_keyed_pattern),
    (is_sliding_window, write_sliding_window),
    (_is_time_batch, _write_time_batch),
    (lambda _feeder: True, _write_calls),
)
