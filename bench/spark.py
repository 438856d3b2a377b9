"""Claim: a plan on Spark is faster than the tool people would otherwise reach for.

    python -m bench spark [--quick]

Everything is end to end and durable: events from our log, through a Spark stream or batch on two
cores, rows appended to our log, checkpoint and state in files; all in the directory for temporary
files. The first micro-batches and runs only warm up: first of all many small ones, until the JVM
has compiled what starts a job; a node that runs for minutes is there. Peers in the same run, on
the same events: Siddhi (one JVM, in process, nothing durable), the textbook `transformWithState`
of the same logic, PySpark written by hand over Parquet.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import kernels
from bench.spark_floor import floors
from bench.spark_peers import PATTERN, SEQUENCE, SLIDING, by_key, tumbling, warm_rate
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.spark.choose import SMALL_BATCH_ROWS, SparkConfig
from edgewise.spark.execution import SparkEngine

BATCHES = 4  # micro-batches of a stream run
CHEAP, DEAR = 8_000_000, 1_000_000  # events a micro-batch, by what one costs
JOBS = 150  # of the warm-up, and how many events each has: just too many for the driver alone
JOB_EVENTS = SMALL_BATCH_ROWS + 1
WARM_UP = 2  # of them: until workers have their memory
RUNS = 3  # the best counts
TEXTBOOK_EVENTS = 500_000  # a micro-batch
TEXTBOOK_BATCHES = 3
QUERY_OF = {claim.name: claim.query for claim in kernels.CLAIMS}


@dataclass(frozen=True, slots=True)
class Claim:
    name: str
    query: str
    aim: float  # times Siddhi
    peer_events: int
    size: int
    textbook: str = ""  # which `transformWithState` to run beside


CLAIMS = (
    Claim("filter, projection", QUERY_OF["filter"], 2, 1_000_000, CHEAP),
    Claim(
        "tumbling 1 s group by", QUERY_OF["externalTimeBatch 1 s group by"], 2, 1_000_000, CHEAP
    ),
    Claim(
        "sliding 1 s group by",
        "from S#window.time(1 sec) select k, avg(v) as a group by k insert into O;",
        1, 500_000, DEAR, SLIDING,
    ),
    Claim(
        "keyed pattern", QUERY_OF["partitioned every e1 -> e2 within"], 1, 500_000, DEAR, PATTERN
    ),
    Claim("keyed sequence", QUERY_OF["partitioned sequence with +"], 1, 500_000, DEAR, SEQUENCE),
    Claim(
        "pattern with an equality",
        QUERY_OF["every e1 -> e2[k == e1.k] within 1 s"], 20, 50_000, CHEAP,
    ),
)  # fmt: skip


def fill(path: Path, source: str, count: int, keys: int = 1000) -> Any:
    """A log of the events the peers get; answers what is in it."""
    schema = compile_app(source).app.inputs[0].schema
    writer = SegmentWriter.open(path, schema)
    drawn, values = kernels.drawn(count, keys)
    names = pa.array([f"k{n}" for n in range(keys)])
    moments = np.arange(1, count + 1)
    columns: tuple[Any, ...] = (
        moments, moments, np.zeros(count, np.int8),
        pa.DictionaryArray.from_arrays(pa.array(drawn), names).cast(pa.string()),
        values.astype(np.int32), moments - 1,
    )  # fmt: skip
    table = pa.Table.from_arrays([pa.array(c) for c in columns], schema=writer.schema)
    for batch in table.to_batches(kernels.RUN_EVENTS):
        writer.append(batch)
    writer.close()
    return table


@contextmanager
def running(spark: Any, source: str, log: Path, rows_max: int) -> Iterator[SparkEngine]:
    """An app on its own checkpoint and output logs, all gone afterwards."""
    app = compile_app(source).app
    with tempfile.TemporaryDirectory(prefix="edgewise-bench-") as place:
        writers = {
            s.name: SegmentWriter.open(Path(place) / s.name, s.schema)
            for s in app.streams
            if s.name not in {i.name for i in app.inputs}
        }
        config = SparkConfig(rows_max=rows_max, history_rows_max=rows_max)
        logs = {app.inputs[0].name: log}
        checkpoint = Path(place) / "checkpoint"
        yield SparkEngine.open(
            spark, app, logs=logs, writers=writers, checkpoint=checkpoint, config=config
        )
        for writer in writers.values():
            writer.close()


def warm(spark: Any, log: Path) -> None:
    """Small micro-batches, until the JVM is quick at what starts a job."""
    with running(spark, kernels.HEAD + QUERY_OF["filter"], log, JOB_EVENTS) as app:
        app.start_stream(available_now=True, end={"S": JOBS * JOB_EVENTS}).awaitTermination()


def stream_rate(spark: Any, source: str, log: Path, rows_max: int) -> tuple[float, int]:
    """Events a second of the warm micro-batches, and rows of all."""
    with running(spark, source, log, rows_max) as app:
        query = app.start_stream(available_now=True, end={"S": rows_max * BATCHES})
        return warm_rate(query, rows_max, WARM_UP), app.progress.rows_out


def batch_rate(
    spark: Any, source: str, log: Path, rows_max: int, count: int, *, warm_up: int = 0
) -> float:
    """Events a second of a batch over `count` events, without the first `warm_up`."""
    with running(spark, source, log, rows_max) as app:
        if warm_up:
            app.run_history(end={"S": warm_up})
        began = time.perf_counter()
        app.run_history(end={"S": count})
        return (count - warm_up) / (time.perf_counter() - began)


def siddhi(path: str, claim: Claim) -> tuple[float, int] | None:
    peer = kernels.Claim(claim.name, claim.query, claim.aim, 0.0, claim.peer_events)
    return kernels.theirs(path, peer, claim.peer_events)


def rates(spark: Any, place: Path, size: int | None, only: str = "") -> None:
    """`size`: events a micro-batch, for all claims alike."""
    claims = [c for c in CLAIMS if only in c.name]
    log, short = place / "S", place / "few"
    largest = max(size or c.size for c in claims)
    few = min(largest, TEXTBOOK_EVENTS)
    fill(log, kernels.HEAD + QUERY_OF["filter"], max(largest * BATCHES, JOBS * JOB_EVENTS))
    fill(short, kernels.HEAD + QUERY_OF["filter"], few * TEXTBOOK_BATCHES)
    path = kernels.classpath()
    warm(spark, log)
    print(f"\n{BATCHES} micro-batches of so many events each; events a second")
    print(
        f"{'query':<26}{'events':>10}{'stream':>11}{'batch':>11}{'Siddhi':>11}{'ratio':>8}{'aim':>5}"
        f"{'textbook':>11}{'ratio':>8}"
    )
    for claim in claims:
        source, each = kernels.HEAD + claim.query, size or claim.size
        ours, rows = max(stream_rate(spark, source, log, each) for _ in range(RUNS))
        whole = max(
            batch_rate(spark, source, log, each, each * BATCHES, warm_up=each * WARM_UP)
            for _ in range(RUNS)
        )
        peer = siddhi(path, claim) if path else None
        line = f"{claim.name:<26}{each:>10,}{ours:>11,.0f}{whole:>11,.0f}"
        line += (
            f"{peer[0]:>11,.0f}{ours / peer[0]:>7.1f}x{claim.aim:>4.0f}x" if peer else f"{'-':>24}"
        )
        if claim.textbook:
            slow = by_key(spark, claim.textbook, short, few)
            line += f"{slow:>11,.0f}{ours / slow:>7.1f}x"
        print(f"{line}   ({rows:,} rows)", flush=True)


def history(spark: Any, place: Path, size: int) -> None:
    """The tumbling aggregate over history beside PySpark written by hand, same rows to disk."""
    log, parquet = place / "H", place / "H.parquet"
    source = kernels.HEAD + QUERY_OF["externalTimeBatch 1 s group by"]
    pq.write_table(fill(log, source, size), parquet)
    ours = max(batch_rate(spark, source, log, size, size) for _ in range(RUNS))
    theirs = max(tumbling(spark, parquet, place / "by-hand", size) for _ in range(RUNS))
    print(f"\ntumbling aggregate over {size:,} events of history; aim: by hand at most 1.3x")
    print(f"ours {ours:,.0f}/s, PySpark by hand {theirs:,.0f}/s, ratio {theirs / ours:.2f}")


def growth(spark: Any, place: Path, size: int) -> None:
    """Cost per event when one thing grows; aim: none faster than n log n."""
    pattern = QUERY_OF["partitioned every e1 -> e2 within"]
    many = " ".join(f"from S[v > {n}] select k, v insert into O{n};" for n in range(10))
    one = "from S[v > 50] select k, v insert into O50;"
    rows: Sequence[tuple[str, str, int, int, str, int, int]] = (
        ("events x10", pattern, size, 1000, pattern, size * 10, 1000),
        ("keys x100", pattern, size, 1000, pattern, size, 100_000),
        ("queries x10", one, size, 1000, many, size, 1000),
    )
    print(f"\n{'growth':<14}{'us an event':>12}{'grown':>12}{'ratio':>8}")
    for name, small, count, keys, large, count2, keys2 in rows:
        costs = []
        for at, (query, n, k) in enumerate(((small, count, keys), (large, count2, keys2))):
            log = place / f"{name}-{at}"
            fill(log, kernels.HEAD + query, n * BATCHES, k)
            costs.append(1e6 / stream_rate(spark, kernels.HEAD + query, log, n)[0])
        print(
            f"{name:<14}{costs[0]:>12.2f}{costs[1]:>12.2f}{costs[1] / costs[0]:>8.2f}", flush=True
        )


def main(argv: list[str] | None = None) -> int:
    from edgewise.spark.session import start_session

    parser = argparse.ArgumentParser(prog="bench.spark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer events")
    parser.add_argument("--only", choices=("rates", "history", "floor", "growth"))
    parser.add_argument("--size", type=int, help="events a micro-batch")
    parser.add_argument("--query", default="", help="rates: only queries whose name holds this")
    arguments = parser.parse_args(argv)
    each = arguments.size or (200_000 if arguments.quick else None)
    size = each or DEAR
    spark = start_session("local[2]")
    parts: dict[str, Callable[[Path], None]] = {
        "rates": lambda place: rates(spark, place, each, arguments.query),
        "history": lambda place: history(spark, place, size * BATCHES),
        "floor": lambda place: floors(spark, place, 50 if arguments.quick else 200),
        "growth": lambda place: growth(spark, place, size // 10),
    }
    for name, part in parts.items():
        if arguments.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="edgewise-bench-") as place:
                part(Path(place))
    spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
