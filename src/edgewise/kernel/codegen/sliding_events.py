"""Write sliding windows event by event, in straight lines: no call, no chunk, no row that leaves.

Where only current rows are wanted, what leaves a window is subtracted in passing: nobody sees it
leave. `LEAVES` has the windows that can be written so, and the lines that find what leaves when an
event comes. The rows and the state are those of the operators of `sliding_windows`, which still
take what timers and chunks bring. Rows go out as columns: those of the run as they are, and one
list for each value that is computed. Where other queries read the stream too, their functions are
called in turn, and rows go out one by one; a filter would end the turn of all, so a window behind
one is left to the calls. Used by `feeders`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from edgewise.kernel.codegen.code_writer import tuple_text
from edgewise.kernel.codegen.feeder_loop import Feeder
from edgewise.kernel.codegen.row_text import emit_columns, output_sink
from edgewise.kernel.codegen.selector import SelectWriter
from edgewise.kernel.codegen.sliding_columns import (
    adds_up,
    slides_by_key,
    write_slide,
    write_slide_by_key,
)
from edgewise.kernel.codegen.stream_query import StreamQueryWriter
from edgewise.plan.exprs import Const, Field
from edgewise.plan.nodes import Filter, Window

Block = AbstractContextManager[None]


def _leave_length(feeder: Feeder, _code: StreamQueryWriter, window: Window) -> Block:
    return feeder.writer.block(f"if len(held) == {_constant(window, 0)}")


def _leave_time(feeder: Feeder, code: StreamQueryWriter, window: Window) -> Block:
    w = feeder.writer
    w.line("rt.now, rt.offset = clock, offset")
    with w.block("if not held"):
        w.line(f"rt.arm(S, {code.window_node}, clock + {max(_constant(window, 0), 1)})")
    return w.block("while held and held[0][0] <= clock")


def _leave_external_time(feeder: Feeder, code: StreamQueryWriter, window: Window) -> Block:
    w, stamp = feeder.writer, window.args[0]
    assert isinstance(stamp, Field)
    own, position = feeder.columns[stamp.name], feeder.names.index(stamp.name)
    with w.block(f"if {own} is None"):
        w.line("rt.begin(clock, 1, offset, at)")
        w.line(f"{code.name}_window.timeless()")
        w.line("continue")
    return w.block(f"while held and {own} - held[0][1][{position}] >= {_constant(window, 1)}")


# By window: what an entry is, where its row stands in it, and what opens the block that takes the
# oldest one out.
LEAVES: dict[str, tuple[str, int, Callable[[Feeder, StreamQueryWriter, Window], Block]]] = {
    "length": ("(ts, {row})", 1, _leave_length),
    "time": ("(clock + {span}, offset, ts, {row})", 3, _leave_time),
    "externaltime": ("(ts, {row})", 1, _leave_external_time),
}


def _constant(window: Window, at: int) -> int:
    arg = window.args[at]
    assert isinstance(arg, Const)
    return int(arg.value)


def is_sliding_window(feeder: Feeder) -> bool:
    code = feeder.reader
    return (
        isinstance(code, StreamQueryWriter)
        and code.sliding is not None
        and not feeder.builder.guarded(feeder.stream)
        and not (feeder.others and (code.source.before or not _writes_alone(feeder)))
    )


def _writes_alone(feeder: Feeder) -> bool:
    """No other query has rows for its target, between which its own would have a place."""
    target = feeder.stream_query().query.output.target
    return sum(query.output.target == target for query in feeder.builder.queries) == 1


def write_sliding_window(feeder: Feeder) -> None:
    w, code, builder = feeder.writer, feeder.stream_query(), feeder.builder
    select, keyed, alone = code.sliding, builder.fragment.keyed, not feeder.others
    assert select is not None
    left, right = feeder.loop()
    out = _Columns(feeder, code, select) if alone and _writes_alone(feeder) else None
    if out is not None and out.picks:
        left, right = f"i, {left}", f"range(len(run.ts)), {right}"
    with w.block(f"def {feeder.name}(run)"):
        if keyed and alone and slides_by_key(builder, code):
            write_slide_by_key(builder, feeder.stream, code)
        w.line("heap, rows = rt.heap, rt.rows" if out is None else "heap = rt.heap")
        feeder.move_clock(0)
        if keyed:
            w.line("keys, dirty = rt.keys, rt.dirty")
        else:
            w.line("S = rt.state(())")
            _open_cells(feeder, code, select)
            if alone and not code.source.before and _is_length(code) and adds_up(select):
                write_slide(builder, feeder.stream, code, select)
        if out is not None:
            out.begin()
        with w.block(f"for {left} in zip({right})"):
            feeder.fire_timers()
            _write_filters(feeder, code)
            if keyed:
                _find_state(feeder)
                _open_cells(feeder, code, select)
            _write_event(feeder, code, select)
            if out is not None:
                out.add()
            else:
                select.emit(output_sink(code.query.output.target))
                _call_others(feeder)
        if out is not None:
            out.end()
        feeder.move_clock(-1)


class _Columns:
    """The rows of a run as columns; `picks`: not every event has one."""

    def __init__(self, feeder: Feeder, code: StreamQueryWriter, select: SelectWriter) -> None:
        self._w, self._names, self._select = feeder.writer, feeder.names, select
        self._target = code.query.output.target
        window = code.source.window
        self.picks = bool(
            code.source.before
            or select.select.having is not None
            or (window is not None and window.name.lower() == "externaltime")
        )
        items = [item.expr for item in select.select.items]
        self._made = [i for i, item in enumerate(items) if not isinstance(item, Field)]
        self._items = items

    def begin(self) -> None:
        lists = [f"made{i}" for i in self._made] + ["picked"] * self.picks
        self._w.assign(lists, ["[]"] * len(lists))

    def add(self) -> None:
        w = self._w
        values, guards = self._select.row_values()
        lines = [f"made{i}.append({values[i]})" for i in self._made]
        lines += ["picked.append(i)"] * self.picks
        if guards:
            with w.block(f"if {' and '.join(guards)}"):
                for line in lines:
                    w.line(line)
        else:
            for line in lines:
                w.line(line)

    def end(self) -> None:
        w, take = self._w, "{}"
        if self.picks:
            w.line("take, n = vec.taker(picked), len(picked)")
            take = "take({})"
        else:
            w.line("n = len(run.ts)")
        data = [
            take.format(f"run.columns[{self._names.index(item.name)}]")
            if isinstance(item, Field)
            else f"made{i}"
            for i, item in enumerate(self._items)
        ]
        own = {name: take.format(f"run.{name}") for name in ("clock", "offset", "ts", "at")}
        block = emit_columns(self._target, f"[{', '.join(data)}]", **own)
        with w.block("if n"):
            w.lines_of("rt.put(", block, ")")


def _is_length(code: StreamQueryWriter) -> bool:
    return code.source.window is not None and code.source.window.name.lower() == "length"


def _open_cells(feeder: Feeder, code: StreamQueryWriter, select: SelectWriter) -> None:
    grouped = "groups" if select.select.group_by else "G"
    feeder.writer.line(f"held, {grouped} = S[{code.window_cell}], S[{select.cell}]")


def _find_state(feeder: Feeder) -> None:
    w, fragment = feeder.writer, feeder.builder.fragment
    w.line(f"key = {tuple_text(feeder.columns[n] for n in fragment.key_of(feeder.stream))}")
    w.line("S = keys.get(key)")
    with w.block("if S is None"):
        w.line("rt.begin(clock, 1, offset, at)")
        w.line("S = rt.state(key)")
    with w.block("else"):
        w.line("dirty.add(key)")


def _write_filters(feeder: Feeder, code: StreamQueryWriter) -> None:
    w = feeder.writer
    filters = [h.condition for h in code.source.before if isinstance(h, Filter)]
    if not filters:
        return
    needed = code.names.used(*filters)
    w.assign(
        [code.names.locals[key] for key in needed], [feeder.columns[key[1]] for key in needed]
    )
    for condition in filters:
        with w.block(f"if not {code.exprs().condition(condition)}"):
            w.line("continue")


def _write_event(feeder: Feeder, code: StreamQueryWriter, select: SelectWriter) -> None:
    w, window = feeder.writer, code.source.window
    assert window is not None
    entry, at, leave = LEAVES[window.name.lower()]
    needed = code.names.used(*select.expressions())
    leaving = code.names.used(*select.grouping())
    with leave(feeder, code, window):
        w.line(f"row = held.popleft()[{at}]")
        text = code.names.unpack(leaving)
        if text:
            w.line(text)
        select.step("subtract")
    span = max(_constant(window, 0), 1) if "{span}" in entry else 0
    w.line(f"held.append({entry.format(row=feeder.row(), span=span)})")
    w.assign(
        [code.names.locals[key] for key in needed], [feeder.columns[key[1]] for key in needed]
    )
    select.step("add")


def _call_others(feeder: Feeder) -> None:
    if not feeder.others:
        return
    w = feeder.writer
    w.line("rt.begin(clock, 1, offset, at)")
    w.line("rt.root = S")
    w.line(f"chunk = [(0, ts, {feeder.row()})]")
    for name in feeder.others:
        w.line(f"{name}(S, chunk)")
