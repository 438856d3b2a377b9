"""Stores as text: tables, named windows, aggregations, triggers."""

from __future__ import annotations

from edgewise.engines.kernel.aggregation_code import write_aggregation
from edgewise.engines.kernel.names import Names
from edgewise.engines.kernel.page import Page
from edgewise.engines.kernel.tables import write_table
from edgewise.engines.kernel.window_code import APART, make_window
from edgewise.engines.kernel.writer import local
from edgewise.errors import Span
from edgewise.plan.nodes import EventType, NamedWindow, Trigger


def write_stores(page: Page) -> None:
    app, holds = page.app, page.fragment.holds
    for table in (t for t in app.tables if holds(t.name)):
        page.own(f"table {table.name}")
        write_table(page, table)
    for window in (w for w in app.windows if holds(w.name)):
        page.own(f"window {window.name}")
        _named_window(page, window)
    for aggregation in (a for a in app.aggregations if holds(a.name)):
        page.own(f"aggregation {aggregation.name}")
        write_aggregation(page, aggregation)
    for trigger in (t for t in app.triggers if holds(t.name)):
        page.own(f"trigger {trigger.name}")
        _trigger(page, trigger)


def _named_window(page: Page, window: NamedWindow) -> None:
    w, name = page.writer, f"window_{local(window.name)}"
    cell = page.root.next_cell
    page.stores[window.name] = cell
    names = Names((window.name, n, None) for n in window.schema.names)
    text = make_window(page, window.window, window.name, names, cell, Span(1, 1))
    w.line(f"{name} = {text}")
    w.line(f"rt.stores[{window.name!r}] = {name}")
    page.root.cell(f"{name}.fresh()")
    page.node(f"{name}_timer")
    readers = page.readers(window.name)
    keep = {EventType.CURRENT: "r[0] == 0", EventType.EXPIRED: "r[0] == 1"}.get(window.events)
    with w.block(f"def {name}_give(S, chunk)"):
        if keep:
            w.line(f"chunk = [r for r in chunk if {keep}]")
        if readers:
            with w.block("if chunk"):
                w.line(f"{page.stream_name(window.name)}(S, chunk)")
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


def _trigger(page: Page, trigger: Trigger) -> None:
    w, name = page.writer, f"trigger_{local(trigger.name)}"
    node = page.next_node
    if trigger.cron:
        w.line(f"{name}_cron = cron.parse({trigger.cron!r})")
    with w.block(f"def {name}(S, due, payload)"):
        if trigger.every_ms is not None:
            w.line(f"rt.arm(S, {node}, due + {trigger.every_ms}, rt.offset)")
        elif trigger.cron:
            w.line(f"rt.arm(S, {node}, {name}_cron.after(due), rt.offset)")
        if trigger.name in page.read():
            w.line(f"{page.stream_name(trigger.name)}(S, [(0, due, (due,))])")
        w.line(f"emit({trigger.name!r}, [(0, due, (due,))])")
    page.node(name)
    if trigger.at_start:
        page.root.created.append(f"{name}(S, rt.now, None)")
    elif trigger.cron:
        page.root.created.append(f"rt.arm(S, {node}, {name}_cron.after(rt.now))")
    elif trigger.every_ms is not None:
        page.root.created.append(f"rt.arm(S, {node}, rt.now + {trigger.every_ms})")
