"""Claim: generated kernels keep up with Siddhi on the JVM, and leave it behind on keyed patterns.

    python -m bench kernels [--quick]

The same events in, the same rows out, or it fails. Processor time, one core each, both on their
second (warm) run; of the peer only the thread that sends counts, its compiler and collector do
not. Without a JDK, Maven and a network its column holds what was measured elsewhere, marked `*`.
Then what keys and pending matches cost in memory. The last whole run is kept in
bench/results/kernels.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import kernel_memory, siddhi
from bench.siddhi import classpath
from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

__all__ = ["CLAIMS", "HEAD", "Claim", "classpath", "drawn", "events", "ours", "theirs"]

RESULTS = Path(__file__).parent / "results"
HEAD = "define stream S (k string, v int, t long); "
RUN_EVENTS = 8192
MEMORY_AIM_MB = 500  # for a million keys with one pending match each
PENDING = (
    "partitioned every e1 -> e2 within",
    "every e1 -> e2[k == e1.k] within 1 s",
    "partitioned sequence with +",
)


@dataclass(frozen=True, slots=True)
class Claim:
    """`known` is the peer's rate where it was measured before, M ev/s."""

    name: str
    query: str
    aim: float
    known: float
    peer_events: int = 1_000_000
    per_ms: int = 1  # events a millisecond of event time


EQUALITY = (
    "from every e1=S[v > 95] -> e2=S[k == e1.k and v < 5] within 1 sec "
    "select e1.v as a, e2.v as b insert into O;"
)
CLAIMS = (
    Claim("filter", "from S[v > 50] select k, v insert into O;", 1, 5.5),
    Claim(
        "length(1000) avg group by",
        "from S#window.length(1000) select k, avg(v) as a group by k insert into O;", 1, 1.5,
    ),
    Claim(
        "externalTimeBatch 1 s group by",
        "from S#window.externalTimeBatch(t, 1 sec) "
        "select k, sum(v) as s group by k insert into O;",
        1, 2.4,
    ),
    Claim(
        "time(1 s) avg group by",
        "from S#window.time(1 sec) select k, avg(v) as a group by k insert into O;", 2, 0.36,
    ),
    Claim("time(1 s) avg", "from S#window.time(1 sec) select avg(v) as a insert into O;", 2, 0.36),
    Claim(
        "externalTime(1 s) avg group by",
        "from S#window.externalTime(t, 1 sec) select k, avg(v) as a group by k insert into O;",
        2, 0.32,
    ),
    Claim(
        "sort(100)", "from S#window.sort(100, v) select k, avg(v) as a insert into O;", 2, 0.39,
        peer_events=200_000,
    ),
    Claim(
        "timeBatch(1 s) avg group by",
        "from S#window.timeBatch(1 sec) select k, avg(v) as a group by k insert into O;", 2, 0.0,
    ),
    Claim(
        "partitioned every e1 -> e2 within",
        "partition with (k of S) begin from every e1=S[v > 95] -> e2=S[v < 5] within 10 sec "
        "select e1.v as a, e2.v as b insert into O; end;", 3, 0.62,
    ),
    Claim(
        "partitioned sequence with +",
        "partition with (k of S) begin from every e1=S[v > 50], e2=S[v > 50]+, e3=S[v < 20] "
        "select e1.v as a, e3.v as b insert into O; end;", 3, 0.30,
    ),
    Claim(
        "every e1 -> e2[k == e1.k] within 1 s", EQUALITY, 50, 0.24, peer_events=200_000
    ),
    Claim(
        "the same, 20,000 events a second", EQUALITY, 50, 0.02, peer_events=200_000, per_ms=20
    ),
    Claim(
        "1,000 filters on one stream",
        " ".join(f"from S[k == 'k{n}'] select k, v insert into O;" for n in range(1000)),
        10, 0.0, peer_events=100_000,
    ),
)  # fmt: skip


def numbers(count: int) -> Any:
    """What the peer draws, one after the other: x * 1103515245 + 12345 modulo 2**31, from 7."""
    steps = min(count, RUN_EVENTS)
    factor, term = np.empty(steps, np.int64), np.empty(steps, np.int64)
    a, c = 1, 0
    for at in range(steps):
        a, c = a * 1103515245 % 2**31, (c * 1103515245 + 12345) % 2**31
        factor[at], term[at] = a, c
    x, found = 7, []
    for _ in range(0, count, RUN_EVENTS):
        found.append((factor * x + term) % 2**31)
        x = int(found[-1][-1])
    return np.concatenate(found)[:count]


def drawn(count: int, distinct: int = 1000) -> tuple[Any, Any]:
    """The numbers of the events' keys, and their values."""
    x = numbers(count)
    return x // 7 % distinct, x // 65536 % 100


def events(count: int, distinct: int = 1000, per_ms: int = 1) -> list[EventRun]:
    """The peer's events, as runs of columns."""
    drawn_keys, drawn_values = drawn(count, distinct)
    keys, values = [f"k{n}" for n in drawn_keys.tolist()], drawn_values.tolist()
    runs = []
    for low in range(0, count, RUN_EVENTS):
        high = min(low + RUN_EVENTS, count)
        columns: list[Any] = [keys[low:high], values[low:high], list(range(low, high))]
        ts, clock = ([n // per_ms + 1 for n in range(low, high)] for _ in range(2))
        runs.append(
            EventRun("S", ts, columns, list(range(low, high)), clock, [t * 1000 for t in ts])
        )
    return runs


def ours(query: str, runs: list[EventRun]) -> tuple[float, int]:
    """Events a second on the second (warm) run, and rows."""
    app = compile_app(HEAD + query).app
    fragment = Fragment("bench", tuple(q.name for q in app.queries))
    rate, rows = 0.0, 0
    for _ in range(2):
        kernel, rows = compile_kernel(app, fragment), 0
        start = time.process_time()
        for run in runs:
            kernel.feed(run)
            rows += sum(map(len, kernel.take_columns()))
        rate = sum(len(r.ts) for r in runs) / (time.process_time() - start)
    return rate, rows


def theirs(path: str, claim: Claim, count: int) -> tuple[float, int] | None:
    return siddhi.rate(path, HEAD + claim.query, min(count, claim.peer_events), claim.per_ms)


def compare(claim: Claim, path: str, count: int) -> dict[str, Any]:
    """Both on the same events; the same rows must come out."""
    size = min(count, claim.peer_events)
    rate, rows = ours(claim.query, events(size, per_ms=claim.per_ms))
    peer = theirs(path, claim, size) if path else None
    beside, mark = (peer[0] / 1e6, " ") if peer else (claim.known, "*")
    ratio = rate / 1e6 / beside if beside else 0.0
    same = "" if peer is None else "same" if peer[1] == rows else f"theirs {peer[1]}"
    print(
        f"{claim.name:38} {rate / 1e6:8.3f} {beside:7.3f}{mark} {ratio:7.1f}x {claim.aim:4.0f}x"
        f"  {rows:8} {same}",
        flush=True,
    )
    return {
        "query": claim.name, "events": size, "ours": rate / 1e6, "siddhi": beside,
        "measured": peer is not None, "ratio": ratio, "aim": claim.aim, "rows": rows,
        "same_rows": peer is None or peer[1] == rows,
    }  # fmt: skip


def memory(keys: int) -> list[dict[str, Any]]:
    """Megabytes for so many keys with one pending match each."""
    print(f"\n{'one pending match a key':38} {'keys':>9} {'MB':>7} {'aim MB':>7} {'B/key':>6}")
    found = []
    for name in PENDING:
        claim = next(c for c in CLAIMS if c.name == name)
        source = HEAD + re.sub(r"within \d+ sec", "within 1 hour", claim.query)
        held = kernel_memory.held_by(source, keys)
        further = (
            (kernel_memory.held_by(source, keys, 2) - held) / keys if "seq" not in name else 0
        )
        more = f"  {further:.0f} B for one match more" if further else ""
        aim = MEMORY_AIM_MB * keys // 1_000_000
        print(f"{name:38} {keys:9} {held / 1e6:7.0f} {aim:7} {held / keys:6.0f}{more}", flush=True)
        found.append({"query": name, "keys": keys, "mb": held / 1e6, "bytes_per_key": held / keys,
                      "bytes_per_match": further})  # fmt: skip
    return found


def window_memory(events: int) -> list[dict[str, Any]]:
    """Bytes of an event that a window holds, its text and numbers included."""
    print(f"\n{'held by a window':38} {'events':>9} {'B/event':>7}")
    found = []
    for window in ("time(1 hour)", "externalTime(t, 1 hour)", "length(100000000)"):
        text = f"from S#window.{window} select count() as n having n < 0 insert into O;"
        each = kernel_memory.held_by(HEAD + text, events) / events
        print(f"{window:38} {events:9} {each:7.0f}", flush=True)
        found.append({"window": window, "events": events, "bytes_per_event": each})
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 200_000 if parser.parse_args(argv).quick else 1_000_000
    path = siddhi.classpath()
    load = os.getloadavg()[0]
    print(f"M ev/s, one core each, load of the machine before: {load:.1f}")
    print(f"{'query':38} {'ours':>8} {'Siddhi':>8} {'ratio':>8} {'aim':>5}  {'rows':>8}")
    found = [compare(claim, path, count) for claim in CLAIMS]
    held, in_windows = memory(count), window_memory(count)
    if count == 1_000_000:
        kept = {"load": load, "speed": found, "memory": held, "windows": in_windows}
        (RESULTS / "kernels.json").write_text(json.dumps(kept, indent=1) + "\n")
    return 0 if all(each["same_rows"] for each in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
