"""Claim: a live node keeps up with hundreds of thousands of events a second, its windows full.

    python -m bench live [--quick]
    python -m bench.live --engine embedded --kind "avg 30 s" --rate 200000 --seconds 30

Whole nodes: `edgewise run` as a process, HTTP in, the edge out. Each kind of query gets rising
rates until its backlog grows; printed are the last rate that was sustained, how far the engine was
behind (backlog over rate, p50 and p99), the age of updates at a client, the engine's share of a
core, how long batches waited for saves, and the bytes of state that were written per event. A
window is filled first, with events whose own time lies in the past, so a window of an hour takes
seconds to fill. The peer is the same kernel over events in memory: the ratio says what being live
costs. A whole run is kept in bench/results/live.txt.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.kernels import events
from edgewise.client.aio import connect
from edgewise.engines.embedded.fragments import split_for_one_process
from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.lang import compile_app
from edgewise.wire.view import Update

RESULTS = Path(__file__).parent / "results" / "live.txt"
POST_EVERY_S = 0.02
FILL_EVENTS = 20_000  # of one body while a window is filled
START_S = 90  # until a node listens
BACKLOG_S_MAX = 1.0  # of events that may wait at the end of a rate that counts as sustained
HEAD = """@app:name('live')
@source(type='http', @map(type='json'))
define stream S (k string, v int);
@sink(type='topic', path='a/{k}')
define stream A (k string, a double);
"""
PATTERN = (
    "define stream P (k string, a int, b int);\n"
    "partition with (k of S) begin from every e1=S[v > 95] -> e2=S[v < 5] within 10 sec "
    "select e1.k as k, e1.v as a, e2.v as b insert into P; end;\n"
)
COUNT = "select k, convert(count(), 'double') as a group by k having count() > 1000000"


@dataclass(frozen=True, slots=True)
class Kind:
    """A query, how long its window is, and how many keys its events have."""

    name: str
    text: str
    span_s: float = 0
    keys: int = 5_000


def average(span_s: int, keys: int = 5_000) -> Kind:
    text = f"from S#window.time({span_s} sec) select k, avg(v) as a group by k insert into A;\n"
    return Kind(f"avg {span_s} s, {keys} keys", text, span_s, keys)


KINDS = (
    Kind("filter", "from S[v > 98] select k, convert(v, 'double') as a insert into A;\n"),
    Kind("keyed pattern", PATTERN),
    average(1),
    average(30),
    Kind("avg 30 s beside a pattern", PATTERN + average(30).text, 30),
    average(30, 100),
    average(30, 100_000),
    Kind("README's count, 600 s", f"from S#window.time(600 sec) {COUNT} insert into A;\n", 600),
    average(3600),
    Kind("avg 30 s, no group", "from S#window.time(30 sec) select 'all' as k, avg(v) as a "
         "insert into A;\n", 30),
    Kind("timeBatch 1 s", "from S#window.timeBatch(1 sec) select k, avg(v) as a group by k "
         "insert into A;\n", 1),
)  # fmt: skip
QUICK_KINDS = ["filter", "avg 30 s beside", "timeBatch"]
KERNEL_EVENTS = 200_000  # fed from memory, for the ratio
RATES = (5_000, 20_000, 60_000, 120_000, 200_000, 300_000)


@dataclass
class Node:
    """A node as a process, seen from outside."""

    process: subprocess.Popen[str]
    ingest: str = ""
    edge: str = ""

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://{self.ingest}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = re.findall(r"^(edgewise_engine_\w+) (\S+)$", text, re.MULTILINE)
        return {name.removeprefix("edgewise_engine_"): float(value) for name, value in found}

    def engine_cpu_s(self) -> float:
        """Processor time of all processes below the node: the engine, a JVM, its workers."""
        total = 0.0
        for pid in _list_descendants(self.process.pid):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return total


def _list_descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children = [int(child) for child in task.read_text().split()]
            found += itertools.chain(children, *map(_list_descendants, children))
    return found


@contextlib.contextmanager
def run_node(text: str, engine: str, options: list[str]) -> Iterator[Node]:
    """`edgewise run` in a directory of its own, with no limit on the log but the disk's."""
    with tempfile.TemporaryDirectory(prefix="live-") as place:
        app = Path(place) / "live.siddhi"
        app.write_text(HEAD + text)
        command = [sys.executable, "-m", "edgewise", "run", str(app), "--engine", engine]
        command += ["--data", f"{place}/data", "--http-port", "0", "--edge-port", "0", *options]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        node = Node(process)
        assert process.stderr is not None
        said = ""
        try:
            for line in process.stderr:
                said += line
                if found := re.search(r"ingest +http://([^/\s]+)/streams/", line):
                    node.ingest = found[1]
                if found := re.search(r"edge +http://([^/\s]+)/", line):
                    node.edge = found[1]
                if node.ingest and node.edge:
                    break
            else:
                raise OSError(f"the node did not start:\n{said}")
            threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
            wait_until_ready(node)
            yield node
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _drain(stream: Any) -> None:
    for line in stream:
        if os.environ.get("LIVE_VERBOSE"):
            print(line, end="", flush=True)


def wait_until_ready(node: Node) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://{node.ingest}/readyz", timeout=5) as answer,
        ):
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise TimeoutError(f"the node on {node.ingest} is not ready after {START_S} s")


def build_body(count: int, keys: int, seed: int, times: Any = None) -> bytes:
    """Events as one Arrow stream; with `times` in ms, else the node stamps them."""
    chance = np.random.default_rng(seed)
    names = np.array([f"k{n}" for n in range(keys)])
    columns = {
        "k": pa.array(names[chance.integers(0, keys, count)]),
        "v": pa.array(chance.integers(0, 100, count).astype(np.int32)),
    }
    if times is not None:
        columns["_ts"] = pa.array(times)
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


class Sender:
    """One connection that posts bodies at a rate."""

    TYPE = "application/vnd.apache.arrow.stream"

    def __init__(self, node: Node) -> None:
        host, port = node.ingest.split(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=120)
        self.sent = 0

    def post(self, body: bytes, count: int) -> None:
        self._connection.request("POST", "/streams/S", body, {"Content-Type": self.TYPE})
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status >= 300:
            raise OSError(f"{answer.status}: {said[:200]!r}")
        self.sent += count

    def run(self, rate: int, keys: int, seconds: float) -> None:
        count = max(1, int(rate * POST_EVERY_S))
        bodies = [build_body(count, keys, seed) for seed in range(16)]
        began = time.monotonic()
        for n in itertools.count():
            due = began + n * POST_EVERY_S
            if due - began >= seconds:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            self.post(bodies[n % 16], count)


def fill(node: Node, sender: Sender, kind: Kind, rate: int) -> None:
    """All that the window would hold at this rate, as if sent until now."""
    total = int(kind.span_s * rate)
    now = int(time.time() * 1000)
    for low in range(0, total, FILL_EVENTS):
        count = min(FILL_EVENTS, total - low)
        ages = (total - np.arange(low, low + count)) / rate * 1000
        sender.post(build_body(count, kind.keys, low, (now - ages).astype(np.int64)), count)
    while node.metrics().get("rows_in_total", 0) < sender.sent:
        time.sleep(0.2)


@dataclass
class Seen:
    """What was measured at one rate."""

    rate: int
    sent: float = 0.0
    lags_s: list[float] = field(default_factory=list)
    ages_s: list[float] = field(default_factory=list)
    cpu: float = 0.0
    state_bytes_per_event: float = 0.0
    save_share: float = 0.0

    def sustained(self) -> bool:
        return self.sent > 0.95 * self.rate and self.lags_s[-1] < BACKLOG_S_MAX


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values) or [float("nan")]
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def measure(node: Node, kind: Kind, rate: int, seconds: float) -> Seen:
    sender, seen, done = Sender(node), Seen(rate), threading.Event()
    sender.sent = int(node.metrics().get("rows_in_total", 0))
    if kind.span_s:
        fill(node, sender, kind, rate)
    before, cpu, first = node.metrics(), node.engine_cpu_s(), sender.sent
    ages = threading.Thread(target=watch_ages, args=(node, seen, done), daemon=True)
    ages.start()

    def sample() -> None:
        while not done.wait(0.25):
            backlog = node.metrics().get("backlog_rows", 0)
            seen.lags_s.append(backlog / rate)

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    began = time.monotonic()
    sender.run(rate, kind.keys, seconds)
    took = time.monotonic() - began
    after = node.metrics()
    seen.cpu = (node.engine_cpu_s() - cpu) / took
    done.set()
    sampler.join()
    ages.join(5)
    events = sender.sent - first
    seen.sent = events / took
    written = after["state_written_bytes_total"] - before["state_written_bytes_total"]
    seen.state_bytes_per_event = written / max(1, after["rows_in_total"] - before["rows_in_total"])
    spent = after["state_save_seconds_total"] - before["state_save_seconds_total"]
    seen.save_share = spent / took
    return seen


def watch_ages(node: Node, seen: Seen, done: threading.Event) -> None:
    async def watch() -> None:
        async with connect(f"ws://{node.edge}/ws") as client:
            updates = client.subscribe("a/k1")
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    event = await asyncio.wait_for(anext(updates), 0.5)
                    if isinstance(event, Update):
                        seen.ages_s.append(time.time() - event.meta.at_us / 1e6)

    asyncio.run(watch())


TITLES = (
    f"{'query':28}{'engine':>9}{'ev/s':>9}{'sent':>9}{'lag p50':>9}{'p99 s':>7}{'age p50':>9}"
    f"{'p99 s':>7}{'core':>6}{'saves':>7}{'B/event':>9}"
)


def show(kind: Kind, engine: str, seen: Seen) -> str:
    lags, ages = seen.lags_s, seen.ages_s
    return (
        f"{kind.name:28}{engine:>9}{seen.rate:>9}{seen.sent:>9.0f}{quantile(lags, 0.5):>9.2f}"
        f"{quantile(lags, 0.99):>7.2f}{quantile(ages, 0.5):>9.2f}{quantile(ages, 0.99):>7.2f}"
        f"{seen.cpu:>6.2f}{seen.save_share:>7.1%}{seen.state_bytes_per_event:>9.1f}"
        f"{'' if seen.sustained() else '   falls behind'}"
    )


def rate_kernels(kind: Kind, count: int) -> float:
    """Events a second of processor time when the same kernels are fed from memory."""
    app = compile_app(HEAD + kind.text).app
    found = [(f, compile_kernel(app, f)) for f in split_for_one_process(app)]
    began = time.process_time()
    for run in events(count, kind.keys, per_ms=20):
        short = EventRun("S", run.ts, run.columns[:2], run.offset, run.clock, run.at)
        for _, kernel in found:
            kernel.feed(short)
            kernel.take_columns()
    return count / (time.process_time() - began)


def climb(kind: Kind, engine: str, rates: tuple[int, ...], seconds: float) -> list[str]:
    """Rising rates until one is not sustained; a node of its own for each."""
    lines, best = [], 0
    for rate in rates:
        with run_node(kind.text, engine, []) as node:
            seen = measure(node, kind, rate, seconds)
        lines.append(show(kind, engine, seen))
        print(lines[-1], flush=True)
        if not seen.sustained():
            break
        best = rate
    kernel = rate_kernels(kind, KERNEL_EVENTS)
    ratio = f"{kernel / best:.1f} times that" if best else "no rate was sustained"
    lines.append(
        f"{kind.name:28}{engine:>9}{best:>9} sustained; kernel alone {kernel:,.0f}: {ratio}"
    )
    print(lines[-1], flush=True)
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.live", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three kinds, two rates, seconds")
    parser.add_argument("--engine", action="append", choices=("embedded", "spark"))
    parser.add_argument("--kind", action="append", help="part of a kind's name")
    parser.add_argument("--rate", action="append", type=int)
    parser.add_argument("--seconds", type=float, default=0)
    args = parser.parse_args(argv)
    seconds = args.seconds or (5 if args.quick else 30)
    wanted = args.kind or (QUICK_KINDS if args.quick else [""])
    kinds = [k for k in KINDS if any(part in k.name for part in wanted)]
    rates = tuple(args.rate or (RATES[:2] if args.quick else RATES))
    engines = args.engine or (["embedded"] if args.quick else ["embedded", "spark"])
    lines = [f"load of the machine before: {os.getloadavg()[0]:.1f}", TITLES]
    print("\n".join(lines), flush=True)
    for engine, kind in itertools.product(engines, kinds):
        lines += climb(kind, engine, rates, seconds)
    if not (args.quick or args.kind or args.rate or args.engine):
        RESULTS.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
