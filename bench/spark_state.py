"""Claim: state beside the kernels, in files by batch id, beats Spark's own state operators.

    python -m bench spark_state [--quick]

The same generated kernel, events and two partitions of the key space; only the place
of its state differs. Figures and conclusions: `docs/explanation/decisions/state.md`.

    files      `foreachBatch`, a shuffle, `mapInArrow`, changed keys in versioned files (ours)
    driver     the same without a shuffle, in the driver (ours for small batches)
    value      `applyInPandasWithState`, one call a partition, its state one value
    map        `transformWithStateInPandas`, one call a partition, its state a map by key
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from bench.spark import BATCHES, fill, running
from bench.spark_peers import STORE, warm_rate
from edgewise.engines.batch.columns import CLOCK, OFFSET, STREAM
from edgewise.engines.batch.job import Job
from edgewise.engines.batch.live_kernels import fingerprint_plan
from edgewise.engines.batch.outputs import build_ordered_schema, convert_to_tables
from edgewise.engines.batch.run import split_runs
from edgewise.event.arrow import AT, KIND, TS
from edgewise.kernel import compile_kernel
from edgewise.lang import compile_app
from edgewise.plan.rules.keys import split_into_fragments

SOURCE = (
    "define stream S (k string, v int, t long); partition with (k of S) begin "
    "from every e1=S[v > 50] -> e2=S[v < 5] within 1 hour "
    "select e1.v as a, e2.v as b insert into O; end;"
)
PARTS = 2
SHARD = "shard"
COLUMNS = (TS, AT, KIND, OFFSET, CLOCK, STREAM, "s0_k", "s0_v", "s0_t")


def job_of(source: str) -> Job:
    app = compile_app(source).app
    [fragment] = split_into_fragments(app)
    return Job(app, fragment, 0, 0, "", ("S",), fingerprint=fingerprint_plan(app, [fragment]))


def fed(job: Job, kernel: Any, frames: Iterator[Any]) -> Any:
    """The rows a kernel makes of one call's events, as a pandas frame."""
    whole = pd.concat([f for f in frames if len(f)]).sort_values(OFFSET)
    for run, _ in split_runs(job, pa.RecordBatch.from_pandas(whole, preserve_index=False)):
        kernel.feed(run)
    schemas = {s.name: s.schema for s in job.outputs}
    emitted = convert_to_tables(kernel.take_columns(), schemas).get("O")
    if not emitted:
        return build_ordered_schema(schemas["O"]).empty_table().to_pandas()
    return pa.concat_tables(emitted).to_pandas()


def as_value(job: Job) -> Callable[..., Iterator[Any]]:
    """State of a partition as one value, unpacked and packed whole at each call."""

    def call(_: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        kernel = compile_kernel(job.app, job.fragment)
        kept: dict[bytes, bytes] = msgspec.msgpack.decode(state.get[0]) if state.exists else {}
        kernel.restore(kept.items())
        yield fed(job, kernel, frames)
        for key, value in kernel.changed():
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = value
        state.update((msgspec.msgpack.encode(kept),))

    return call


class AsMap(StatefulProcessor):
    """State of a partition as a map of Spark's own store: only changed keys are written."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: Any) -> None:
        self.keys = handle.getMapState("keys", "key binary", "value binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: ARG002, N802, N803
        kernel = compile_kernel(self.job.app, self.job.fragment)
        kernel.restore((bytes(k[0]), bytes(v[0])) for k, v in self.keys.iterator())
        yield fed(self.job, kernel, (f.set_axis([*COLUMNS, SHARD], axis=1) for f in rows))
        for changed, value in kernel.changed():
            if value is None:
                self.keys.removeKey((changed,))
            else:
                self.keys.updateValue((changed,), (value,))

    def close(self) -> None:
        pass


def by_spark(spark: SparkSession, log: Path, size: int, how: str) -> float:
    """Events a second of warm micro-batches with the state in Spark's own operators."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STORE)
    spark.conf.set("spark.sql.shuffle.partitions", str(PARTS))
    job = job_of(SOURCE)
    frame = spark.readStream.format("edgewise").option("logs", f'{{"S": "{log}"}}')
    shard = sf.pmod(sf.xxhash64("s0_k"), sf.lit(PARTS)).alias(SHARD)
    rows = frame.option("max_rows", str(size)).load()
    wanted = rows.where("s0_v > 50 or s0_v < 5").select(*COLUMNS, shard)  # as the engine does
    schema = from_arrow_schema(build_ordered_schema(job.app.stream("O").schema))
    grouped = wanted.groupBy(SHARD)
    made: DataFrame
    if how == "value":
        made = grouped.applyInPandasWithState(
            as_value(job), schema, "state binary", "append", "NoTimeout"
        )
    else:
        made = grouped.transformWithStateInPandas(AsMap(job), schema, "Append", "None")
    with tempfile.TemporaryDirectory(prefix="edgewise-bench-") as place:
        writer = made.writeStream.format("noop").option("checkpointLocation", place)
        return warm_rate(writer.trigger(availableNow=True).start())


def by_files(spark: SparkSession, log: Path, size: int, small_batch_rows: int) -> float:
    with running(spark, SOURCE, log, size) as app:
        app.config = dataclasses.replace(app.config, small_batch_rows=small_batch_rows)
        return warm_rate(app.start_stream(available_now=True), size)


def main(argv: list[str] | None = None) -> int:
    from edgewise.spark.session import start_session

    parser = argparse.ArgumentParser(prog="bench.spark_state", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer events")
    size = 50_000 if parser.parse_args(argv).quick else 200_000
    spark = start_session("local[2]")
    print(f"{size:,} events a micro-batch, {BATCHES - 1} warm ones; events a second")
    names = ("files", "driver", "value", "map")
    print(f"{'keys':>10}" + "".join(f"{n:>12}" for n in names) + f"{'files/best of Spark':>22}")
    for keys in (100, 10_000, 1_000_000):
        with tempfile.TemporaryDirectory(prefix="edgewise-bench-") as place:
            log = Path(place) / "S"
            fill(log, SOURCE, size * BATCHES, keys)
            found = [
                by_files(spark, log, size, 0),
                by_files(spark, log, size, size),
                by_spark(spark, log, size, "value"),
                by_spark(spark, log, size, "map"),
            ]
            ratio = f"{found[0] / max(found[2:]):>21.1f}x"
            print(f"{keys:>10,}" + "".join(f"{f:>12,.0f}" for f in found) + ratio, flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
