"""The log against the bare disk, in one run: `python -m bench.log [--quick] [--dir DIR]`.

Append and read are compared with writing and reading the same bytes through plain file I/O, with
an fsync where the log has one; a single durable event with one bare fsync. The rounds of the two
sides alternate, so that a disk that gets slower gets slower for both; the figure is the median.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edgewise.event.arrow import to_arrow
from edgewise.event.schema import Schema
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

SCHEMA = Schema.of("Bench", user="string", device="string", value="double", count="long")
ARROW = to_arrow(SCHEMA)
EVENT_BYTES = 125
MIB = 1e6


def batch_of(rows: int) -> Any:
    """Rows of EVENT_BYTES each, as the log stores them (system columns included)."""
    ts = np.arange(rows, dtype=np.int64)
    user = [f"user-{i % 1000:035d}" for i in range(rows)]
    device = [f"device-{i % 7:037d}" for i in range(rows)]
    arrays: list[Any] = [
        pa.array(ts),
        pa.array(ts * 1000),
        pa.array(np.zeros(rows, np.int8)),
        pa.array(user),
        pa.array(device),
        pa.array(ts / 3),
        pa.array(ts),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Plain:
    """The same bytes with plain file I/O."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path = path
        self.data = data
        self.fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC)

    def append(self) -> None:
        os.write(self.fd, self.data)
        os.fsync(self.fd)

    def read(self) -> int:
        total = 0
        with self.path.open("rb", buffering=0) as file:
            while piece := file.read(1 << 20):
                total += len(piece)
        return total


def log_size(directory: Path) -> int:
    return sum(f.stat().st_size for f in directory.glob("*.seg"))


def compare_bulk(directory: Path, rows: int, rounds: int) -> None:
    batch = batch_of(rows)
    size = batch.serialize().size
    writer = SegmentWriter.open(directory / "bulk", SCHEMA)
    plain = Plain(directory / "plain", os.urandom(size))
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(timed(plain.append))
        ours.append(timed(lambda: writer.append(batch)))
    say_rate(f"append, {rows} events a batch", (rows, size), ours, theirs, "write + fsync")

    reader = SegmentReader.open(directory / "bulk")
    head = reader.head().offset
    reader.close()
    ours, theirs = [], []
    for _ in range(5):
        theirs.append(timed(plain.read) / rounds)
        ours.append(timed(lambda: read_all(directory / "bulk", head)) / rounds)
    say_rate("read, first time (checksums)", (rows, size), ours, theirs, "read")
    again = SegmentReader.open(directory / "bulk")
    touch(again, head)
    ours = [timed(lambda: touch(again, head)) / rounds for _ in range(5)]
    say_rate("read, again (mapped, no copy)", (rows, size), ours, theirs, "read")
    again.close()
    writer.close()
    os.close(plain.fd)


def read_all(directory: Path, head: int) -> None:
    reader = SegmentReader.open(directory)
    assert touch(reader, head) == head
    reader.close()


def touch(reader: SegmentReader, head: int) -> int:
    """Look at every byte, as the plain read does."""
    rows = 0
    for batch in reader.read(0, head):
        rows += batch.rows.num_rows
        for buffer in (b for c in batch.rows.columns for b in c.buffers() if b):
            np.frombuffer(buffer, np.int64, buffer.size // 8).max(initial=0)
    return rows


def say_rate(
    what: str, batch: tuple[int, int], ours: list[float], theirs: list[float], peer: str
) -> None:
    rows, size = batch
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(
        f"{what:34} {rows / mine / 1e6:8.2f} M events/s {size / mine / MIB:8.0f} MB/s"
        f"   {peer:14} {size / other / MIB:8.0f} MB/s   ratio {other / mine:5.2f}"
    )


def compare_single(directory: Path, rounds: int) -> None:
    batch = batch_of(1)
    writer = SegmentWriter.open(directory / "single", SCHEMA)
    plain = Plain(directory / "plain-single", os.urandom(EVENT_BYTES))
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(timed(plain.append))
        ours.append(timed(lambda: writer.append(batch)))
    for share in (0.5, 0.99):
        mine, other = percentile(ours, share) * 1e6, percentile(theirs, share) * 1e6
        print(
            f"one durable event, p{share * 100:<14.0f} {mine:8.0f} us"
            f"   one write + fsync {other:8.0f} us   ratio {mine / other:5.2f}"
        )
    threads, each = 16, max(rounds // 16, 10)
    taken = timed(lambda: run_threads(writer, batch, threads, each))
    rate, alone = threads * each / taken, 1 / statistics.median(ours)
    print(
        f"{threads} threads, one event each       {rate:8.0f} appends/s"
        f"   one thread {alone:8.0f} appends/s   ratio {rate / alone:5.2f}"
    )
    writer.close()
    os.close(plain.fd)


def run_threads(writer: SegmentWriter, batch: Any, threads: int, each: int) -> None:
    def produce() -> None:
        for _ in range(each):
            writer.append(batch)

    started = [threading.Thread(target=produce) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def follow(directory: str, total: int, answers: Any) -> None:
    """The reader of another process: how late each event was seen after its append returned."""
    reader = SegmentReader.open(Path(directory))
    answers.put("ready")
    at, seen = 0, []
    while at < total and reader.wait(at, 30):
        head = reader.head().offset
        rows = sum(b.rows.num_rows for b in reader.read(at, head))
        seen += [time.monotonic()] * rows
        at += rows
    answers.put(seen)


def tail_latency(directory: Path, rounds: int) -> None:
    batch = batch_of(1)
    writer = SegmentWriter.open(directory / "tail", SCHEMA)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    reader = context.Process(target=follow, args=(str(directory / "tail"), rounds, answers))
    reader.start()
    answers.get()
    before, after = [], []
    for _ in range(rounds):
        before.append(time.monotonic())
        writer.append(batch)
        after.append(time.monotonic())
        time.sleep(0.002)
    seen = answers.get()
    reader.join()
    writer.close()
    for name, start in (("append called", before), ("append returned", after)):
        late = [1000 * (s - b) for s, b in zip(seen, start, strict=True)]
        print(
            f"tail in another process, {name + ' to rows read':32}"
            f" p50 {percentile(late, 0.5):6.2f} ms   p99 {percentile(late, 0.99):6.2f} ms"
        )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.log", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--dir", type=Path, default=None, help="a directory on the disk to measure"
    )
    args = parser.parse_args(argv)
    directory = Path(tempfile.mkdtemp(prefix="edgewise-bench-", dir=args.dir))
    try:
        rows = 65_536
        size = batch_of(rows).serialize().size
        print(f"{os.cpu_count()} cores, {directory}, {size / rows:.0f} B an event, medians")
        compare_bulk(directory, rows, 8 if args.quick else 40)
        (directory / "small").mkdir()
        compare_bulk(directory / "small", 4096, 30 if args.quick else 300)
        compare_single(directory, 100 if args.quick else 1000)
        tail_latency(directory, 100 if args.quick else 1000)
    finally:
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
