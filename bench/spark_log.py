"""Spark over our log against Spark over its own Parquet files: the same rows, the same query.

Aim: at least half of Parquet's rate. Both are warm; the best of several runs counts for each.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from edgewise.event.arrow import to_arrow
from edgewise.event.schema import Schema
from edgewise.log.segment_writer import SegmentWriter

SCHEMA = Schema.of("S", k="string", v="int", p="double")
BATCH = 50_000


def rows(count: int) -> list[Any]:
    """The same record batches for both."""
    dice = np.random.default_rng(1)
    schema = to_arrow(SCHEMA)
    batches = []
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        ts = np.arange(first, first + size, dtype=np.int64)
        keys = pa.array([f"key-{n}" for n in dice.integers(0, 1000, size)])
        arrays: list[Any] = [
            pa.array(ts),
            pa.array(ts * 1000),
            pa.array(np.zeros(size, dtype=np.int8)),
            keys,
            pa.array(dice.integers(0, 100, size).astype(np.int32)),
            pa.array(dice.random(size)),
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return batches


def best_s(frame: Any, times: int) -> float:
    """The shortest of some runs to a sink that takes everything; the first only warms up."""
    taken = []
    for _ in range(times + 1):
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        taken.append(time.perf_counter() - began)
    return min(taken[1:])


def main(argv: list[str] | None = None) -> int:
    from pyspark.sql import functions as sf

    from edgewise.spark.session import start_session

    parser = argparse.ArgumentParser(prog="bench.spark_log", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, fewer runs")
    arguments = parser.parse_args(argv)
    count, times = (500_000, 2) if arguments.quick else (3_000_000, 3)
    spark = start_session("local[2]")
    with tempfile.TemporaryDirectory(prefix="edgewise-bench-") as directory:
        batches = rows(count)
        log, parquet = Path(directory) / "S", Path(directory) / "parquet"
        writer = SegmentWriter.open(log, SCHEMA)
        for batch in batches:
            writer.append(batch)
        writer.close()
        parquet.mkdir()
        half = len(batches) // 2 or 1
        for name, part in (("a", batches[:half]), ("b", batches[half:])):
            if part:
                pq.write_table(pa.Table.from_batches(part), parquet / f"{name}.parquet")
        ours = spark.read.format("edgewise").option("path", str(log)).load()
        theirs = spark.read.parquet(str(parquet))
        print(f"{count:,} rows, {times} runs, best counts; events/s")
        print(f"{'query':<28}{'our log':>14}{'Parquet':>14}{'ratio':>8}")
        queries: list[tuple[str, Callable[[Any], Any]]] = [
            ("scan all columns", lambda df: df),
            ("filter and project", lambda df: df.where("v > 50").select("k", "p")),
            ("count and sum by key", lambda df: df.groupBy("k").agg(sf.count("*"), sf.sum("p"))),
        ]
        for name, query in queries:
            a = best_s(query(ours), times)
            b = best_s(query(theirs), times)
            print(f"{name:<28}{count / a:>14,.0f}{count / b:>14,.0f}{b / a:>8.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
