"""History as a batch, then a stream at the exact offset: the rows of one run, each once."""

import threading

import pytest

from edgewise.engines.embedded.engine import EmbeddedEngine
from edgewise.event.arrow import record_batch
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import load_logs, read_rows, replay
from edgewise.node.data_dir import DataDirectory
from edgewise.node.processes.engine import run_history
from edgewise.spark.choose import SparkConfig
from edgewise.spark.execution import SparkEngine

APP = compile_app(
    "define stream S (k string, v int);"
    "from S#window.time(3 sec) select k, sum(v) as n group by k insert into O;"
).app
START_MS, HISTORY, LATER = 20_000, 300, 40
EVENTS = [Event("S", 100 * n, (f"k{n % 5}", n % 7)) for n in range(HISTORY + LATER)]


@pytest.fixture
def directory(tmp_path):
    found = DataDirectory(tmp_path)
    load_logs(APP, EVENTS[:HISTORY], found)
    return found


@pytest.fixture
def writer(directory):
    opened = SegmentWriter.open(directory.log_directory("O"), APP.stream("O").schema)
    yield opened
    opened.close()


def append(directory, events):
    writer = SegmentWriter.open(directory.log_directory("S"), APP.stream("S").schema)
    times = [e.ts for e in events]
    columns = [list(column) for column in zip(*(e.data for e in events), strict=True)]
    writer.append(record_batch(writer.schema, times, times, [0] * len(times), columns))
    writer.close()


def expect():
    rows = replay(APP, [e for e in EVENTS if e.ts >= START_MS], "embedded")
    return [(e.ts, e.data) for e in rows]


def found(directory):
    rows = read_rows(directory.log_directory("O"), APP.stream("O").schema)
    return [(e.ts, e.data) for e in rows]


@pytest.mark.spark
@pytest.mark.parametrize("small", [0, 1000])
def test_history_is_a_batch_and_the_stream_goes_on_where_it_ended(spark, directory, writer, small):
    def start():
        return SparkEngine.open(
            spark,
            APP,
            logs={"S": directory.log_directory("S")},
            writers={"O": writer},
            checkpoint=directory.checkpoint("app"),
            config=SparkConfig(history_rows_max=60, small_batch_rows=small),
        )

    engine = start()
    run_history(engine, START_MS, threading.Event())
    assert engine.record.offsets == {"S": HISTORY}
    assert engine.record.batches > 1
    engine.close()
    append(directory, EVENTS[HISTORY:])
    engine = start()  # a restart with the same options repeats nothing
    assert engine.run_stream() == ""
    run_history(engine, START_MS, threading.Event())
    engine.close()
    assert found(directory) == expect()


def test_the_embedded_engine_starts_there_too_and_only_once(directory, writer):
    for start_ms in (START_MS, 0):
        engine = EmbeddedEngine.open(
            APP,
            logs={"S": directory.log_directory("S")},
            writers={"O": writer},
            checkpoint=directory.checkpoint("app"),
            start_ms=start_ms,
        )
        while engine.run_batch(0):
            pass
        engine.close()
        if start_ms:
            append(directory, EVENTS[HISTORY:])
    assert found(directory) == expect()
