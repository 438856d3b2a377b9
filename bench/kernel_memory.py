"""What a key and a pending match of a kernel cost in memory, measured in a process of its own."""

from __future__ import annotations

import gc
import multiprocessing
from pathlib import Path

from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

PAGE_BYTES = 4096
RUN_EVENTS = 8192


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def held_by(source: str, keys: int, each: int = 1) -> int:
    """Bytes that a kernel grew by after `each` first events of every key, none of them answered.

    The text of a key is part of it: whoever holds a key holds its name.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_grown, (source, keys, each))


def _grown(source: str, keys: int, each: int) -> int:
    app = compile_app(source).app
    kernel = compile_kernel(app, Fragment("bench", tuple(q.name for q in app.queries)))
    kernel.feed(_run(0, RUN_EVENTS))  # code, first allocations
    gc.collect()
    before = resident()
    for turn in range(each):
        for low in range(RUN_EVENTS, keys + RUN_EVENTS, RUN_EVENTS):
            kernel.feed(_run(low, min(low + RUN_EVENTS, keys + RUN_EVENTS), turn * keys))
    assert not kernel.take_tuples(), "every match must be pending"
    gc.collect()
    return resident() - before


def _run(low: int, high: int, later: int = 0) -> EventRun:
    ts = [n + later for n in range(low, high)]
    columns: list[list[object]] = [
        [f"k{n}" for n in range(low, high)], [96 + n % 4 for n in range(low, high)], list(ts)
    ]  # fmt: skip
    return EventRun("S", ts, columns, ts, ts, ts)
