"""What people write by hand: `transformWithState` by key, a window aggregate over Parquet."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

PATTERN, SEQUENCE, SLIDING = "pattern", "sequence", "sliding"
WITHIN_MS = 10_000
SPAN_MS = 1000
STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class ByKey(StatefulProcessor):
    """One call per key and batch, its partial matches in a state variable."""

    rows = "a int, b int"

    def init(self, handle: Any) -> None:
        self.pending = handle.getValueState("pending", "value array<bigint>, since array<bigint>")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        kept = self.pending.get()
        values, since = (list(kept[0]), list(kept[1])) if kept else ([], [])
        for row in sorted(rows, key=lambda r: r.t):
            yield from self.step(row.v, row.t, values, since)
        self.pending.update((values, since))

    def step(self, v: int, t: int, values: list[int], since: list[int]) -> Iterator[Row]:
        raise NotImplementedError

    def close(self) -> None:
        pass


class Pattern(ByKey):
    """every e1[v > 95] -> e2[v < 5] within 10 sec"""

    def step(self, v: int, t: int, values: list[int], since: list[int]) -> Iterator[Row]:
        while since and t - since[0] > WITHIN_MS:
            del values[0], since[0]
        if v < 5:
            for first in values:
                yield Row(a=first, b=v)
            values.clear()
            since.clear()
        elif v > 95:
            values.append(v)
            since.append(t)


class Sequence(ByKey):
    """every e1[v > 50], e2[v > 50]+, e3[v < 20]"""

    def step(self, v: int, t: int, values: list[int], since: list[int]) -> Iterator[Row]:
        if v > 50:
            values.append(v)
            since.append(t)
            return
        if v < 20:
            for first in values[:-1]:
                yield Row(a=first, b=v)
        values.clear()
        since.clear()


class Sliding(ByKey):
    """The mean of a key's last second"""

    rows = "a double"

    def step(self, v: int, t: int, values: list[int], since: list[int]) -> Iterator[Row]:
        while since and t - since[0] >= SPAN_MS:
            del values[0], since[0]
        values.append(v)
        since.append(t)
        yield Row(a=sum(values) / len(values))


TEXTBOOK: dict[str, type[ByKey]] = {PATTERN: Pattern, SEQUENCE: Sequence, SLIDING: Sliding}


def by_key(spark: SparkSession, which: str, log: Path, size: int) -> float:
    """Events a second of the warm micro-batches of the textbook form, rows thrown away."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STORE)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    frame = spark.readStream.format("edgewise").option("path", str(log))
    rows = frame.option("max_rows", str(size)).load().select("k", "v", "t")
    found = rows.groupBy("k").transformWithState(
        TEXTBOOK[which](), TEXTBOOK[which].rows, "Append", "None"
    )
    with tempfile.TemporaryDirectory(prefix="edgewise-bench-") as place:
        query = (
            found.writeStream.format("noop")
            .option("checkpointLocation", place)
            .trigger(availableNow=True)
            .start()
        )
        return warm_rate(query)


def warm_rate(query: StreamingQuery, batch_rows: int = 0, warm_up: int = 1) -> float:
    """Events a second of the micro-batches after the first `warm_up`; the query ends by itself.

    Spark counts nothing where driver or tasks read the log themselves: then `batch_rows` are in
    each.
    """
    query.awaitTermination()
    done = [p for p in query.recentProgress if p.batchId >= warm_up and "addBatch" in p.durationMs]
    warm = [p for p in done if p.numInputRows or batch_rows]
    seconds = sum(p.durationMs["triggerExecution"] for p in warm) / 1000
    return sum(p.numInputRows or batch_rows for p in warm) / seconds


def tumbling(spark: SparkSession, parquet: Path, target: Path, count: int) -> float:
    """The tumbling sum by key as a batch over Parquet to Parquet, shuffled as fits two cores."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    shutil.rmtree(target, ignore_errors=True)
    began = time.perf_counter()
    frame: DataFrame = spark.read.parquet(str(parquet))
    second = sf.floor(sf.col("t") / 1000)
    frame.groupBy(second.alias("second"), "k").agg(sf.sum("v").alias("s")).orderBy(
        "second"
    ).write.parquet(str(target))
    return count / (time.perf_counter() - began)
