"""Write the definitions of stores: tables, named windows, aggregations, triggers."""

from __future__ import annotations

from edgewise.errors import Span
from edgewise.kernel.codegen.aggregation_store import write_aggregation
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.name_allocator import Stem
from edgewise.kernel.codegen.row_layout import RowLayout
from edgewise.kernel.codegen.table_access import write_table
from edgewise.kernel.codegen.window_calls import APART, make_window
from edgewise.plan.nodes import EventType, NamedWindow, Trigger


def write_stores(builder: FragmentBuilder) -> None:
    app, holds = builder.app, builder.fragment.holds
    for table in (t for t in app.tables if holds(t.name)):
        builder.own(f"table {table.name}")
        write_table(builder, table)
    for window in (w for w in app.windows if holds(w.name)):
        builder.own(f"window {window.name}")
        _named_window(builder, window)
    for aggregation in (a for a in app.aggregations if holds(a.name)):
        builder.own(f"aggregation {aggregation.name}")
        write_aggregation(builder, aggregation)
    for trigger in (t for t in app.triggers if holds(t.name)):
        builder.own(f"trigger {trigger.name}")
        _trigger(builder, trigger)


def _named_window(builder: FragmentBuilder, window: NamedWindow) -> None:
    w, name = builder.writer, builder.store_name(window.name)
    cell = builder.root.next_cell
    builder.stores[window.name] = cell
    names = RowLayout((window.name, n, None) for n in window.schema.names)
    text = make_window(builder, window.window, window.name, names, cell, Span(1, 1))
    w.line(f"{name} = {text}")
    w.line(f"rt.stores[{window.name!r}] = {name}")
    builder.root.cell(f"{name}.fresh()")
    builder.node(f"{name}_timer")
    readers = builder.readers(window.name)
    keep = {EventType.CURRENT: "r[0] == 0", EventType.EXPIRED: "r[0] == 1"}.get(window.events)
    with w.block(f"def {name}_give(S, chunk)"):
        if keep:
            w.line(f"chunk = [r for r in chunk if {keep}]")
        if readers:
            with w.block("if chunk"):
                w.line(f"{builder.stream_name(window.name)}(S, chunk)")
        w.line(f"emit({window.name!r}, [r for r in chunk if r[0] != 2])")
    with w.block(f"def {name}_in(S, chunk)"):
        w.line("out = []")
        with w.block("for _, ts, row in chunk"):
            w.line(f"{name}.push(S, ts, row, out)")
            if window.window.name.lower() in APART:
                with w.block("if out"):
                    w.line(f"{name}_give(S, out)")
                    w.line("out = []")
        w.line(f"{name}.end(S, out)")
        with w.block("if out"):
            w.line(f"{name}_give(S, out)")
    with w.block(f"def {name}_timer(S, due, payload)"):
        w.line("out = []")
        w.line(f"{name}.timer(S, due, payload, out)")
        with w.block("if out"):
            w.line(f"{name}_give(S, out)")


def _trigger(builder: FragmentBuilder, trigger: Trigger) -> None:
    w = builder.writer
    name = w.stems.allocate(Stem.TRIGGER, trigger.name, trigger.name)
    node = builder.next_node
    if trigger.cron:
        w.line(f"{name}_cron = cron.parse({trigger.cron!r})")
    with w.block(f"def {name}(S, due, payload)"):
        if trigger.every_ms is not None:
            w.line(f"rt.arm(S, {node}, due + {trigger.every_ms}, rt.offset)")
        elif trigger.cron:
            w.line(f"rt.arm(S, {node}, {name}_cron.after(due), rt.offset)")
        if trigger.name in builder.read():
            w.line(f"{builder.stream_name(trigger.name)}(S, [(0, due, (due,))])")
        w.line(f"emit({trigger.name!r}, [(0, due, (due,))])")
    builder.node(name)
    if trigger.at_start:
        builder.root.created.append(f"{name}(S, rt.now, None)")
    elif trigger.cron:
        builder.root.created.append(f"rt.arm(S, {node}, {name}_cron.after(rt.now))")
    elif trigger.every_ms is not None:
        builder.root.created.append(f"rt.arm(S, {node}, rt.now + {trigger.every_ms})")
