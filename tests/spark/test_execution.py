"""One answer everywhere: embedded, a stream cut anywhere, a batch over history, row by row."""

import dataclasses
import itertools
import json
import os
import random
from functools import partial

import pytest
from tests.conformance.random_apps import FAMILIES
from tests.support.random_batches import (
    DEFINITIONS,
    asked_case,
    case,
    family_case,
    in_driver,
    late_case,
    plain,
)

from edgewise.engines.batch.outputs import FAULTS
from edgewise.engines.embedded.engine import EmbeddedEngine
from edgewise.errors import SetupError
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import load_logs, merge_by_time, read_rows, replay
from edgewise.node.data_dir import DataDirectory
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.spark.choose import SparkConfig
from edgewise.spark.execution import SparkEngine

SEED = int(os.environ.get("EDGEWISE_SEED", "0"))
MANY, FEW = 60, 3  # of each family

LOGINS = """
define stream login_stream (ip string, cityId string);
from login_stream#window.time(10 min)
select ip, count(ip) as loginCount, cityId
group by ip having loginCount > 10
insert into login_attempt_repeatedly_stream;
"""


def rows(app, events, engine, **config):
    return plain(replay(app, events, engine, **config))


def assert_same(seed, make=case):
    text, events, dice = make(seed)
    app = compile_app(text).app
    expected = rows(app, events, "embedded")
    small = dice.choice([0, 50_000])
    cuts = {"partitions": dice.randint(1, 3), "rows_max": dice.choice([7, 40, 1000])}
    stream = rows(app, events, "spark", master="local[2]", small_batch_rows=small, **cuts)
    assert stream == expected, f"seed {seed} as a stream, {cuts}, small={small}:\n{text}"
    batch = rows(app, events, "batch", master="local[2]", small_batch_rows=small, partitions=2)
    assert batch == expected, f"seed {seed} as a batch, small={small}:\n{text}"


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
def test_random_apps_give_the_same_rows_on_every_engine(spark, seed):
    assert_same(seed)


@pytest.mark.spark
@pytest.mark.parametrize(("make", "seed"), [(late_case, 0), (asked_case, 1)])
def test_order_timeouts_and_bounds_are_the_same_on_every_engine(spark, seed, make):
    assert_same(seed, make)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_apps_give_the_same_rows_on_every_engine(spark, seed):
    assert_same(seed)


@pytest.mark.spark
def test_the_demo_query_is_keyed_and_the_same_in_tasks(spark):
    dice = random.Random(5)
    times = itertools.accumulate(dice.choice([0, 100, 2000, 9000]) for _ in range(3000))
    events = [Event("login_stream", t, (f"ip{dice.randint(0, 20)}", "c")) for t in times]
    app = compile_app(LOGINS).app
    expected = rows(app, events, "embedded")
    assert len(expected) > 1000
    found = rows(app, events, "spark", small_batch_rows=0, rows_max=1500, partitions=3)
    assert found == expected


KEYED = (
    "from S#window.time(2 sec) select k, sum(v) as n group by k insert into O;",
    "from every a=S[v > 5] -> b=T[k == a.k] within 3 sec select a.k as k, b.v as n insert into O;",
    (
        "from S#window.time(1 sec) join T#window.time(1 sec) on S.k == T.k "
        "select S.k as k, T.v as n insert into O;"
    ),
    (
        "partition with (k of S) begin "
        "from S#window.length(3) select k, sum(v) as n insert into O; end;"
    ),
    (
        "define table Seen (k string, n int); from S select k, v as n insert into Seen; "
        "from T join Seen on T.k == Seen.k select T.k as k, Seen.n as n insert into O;"
    ),
)
SAME_MOMENT = (  # events leave together, each in its own place among those of other keys
    "from S#window.time(300) select k, v insert all events into M; "
    "from every a=M[v > 5] -> b=T[k == a.k] within 3 sec select a.k as k, b.v as n insert into O;"
)
STAGED = (
    (
        "from S#window.time(1 sec) select k, v, sum(v) as n group by k insert into X; "
        "from X#window.time(2 sec) select v, count() as n, k group by v insert into O;"
    ),
    (
        "from S[v > 2] select k, v, p, max(p) as m group by v insert into X; "
        "from X select k, v, sum(m) as m group by k insert all events into Y; "
        "from Y#window.length(2) select count() as n, m insert into O;"
    ),
    (
        "partition with (k of S) begin "
        "from S#window.length(3) select k, v, sum(v) as n insert into X; end; "
        "from every a=X[n > 5] -> b=X[v == a.v] within 3 sec select a.k as k, b.n as n "
        "insert into O;"
    ),
    (
        "from T#window.time(1 sec) select v, k, count() as c group by v insert into X; "
        "from X[c > 1] select k, v * 2 as w insert into Y; "
        "from Y#window.timeBatch(1 sec) select k, sum(w) as n group by k insert into O;"
    ),
)


@pytest.mark.parametrize("seed", range(23))
def test_batches_of_any_size_and_number_of_partitions_give_the_same_rows(tmp_path, seed):
    """In the driver, where small batches run: every batch by an engine that starts anew."""
    dice = random.Random(seed)
    text, events, _ = case(seed)
    if seed % 2:
        text = DEFINITIONS + KEYED[seed // 2 % len(KEYED)]
    if seed % 4 == 2:  # events wait to be put in order, in a fragment with a key
        late = DEFINITIONS.replace("define", "@lateness('1 sec') define")
        text = late + KEYED[seed // 4 % 3]
        assert split_into_fragments(compile_app(text).app)[0].keyed
    if seed >= 20:
        text = DEFINITIONS + SAME_MOMENT
    elif seed >= 16:
        text = DEFINITIONS + STAGED[seed - 16]
        assert len(split_into_stages(compile_app(text).app)) > 1
    app = compile_app(text).app
    assert in_driver(tmp_path, app, events, dice) == rows(app, events, "embedded")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("family", FAMILIES)
def test_apps_of_every_family_give_the_same_rows_with_any_batches(tmp_path, family, seed):
    assert_same_in_driver(tmp_path, family, seed)


def assert_same_in_driver(directory, family, seed):
    text, events, dice = family_case(family, seed)
    app = compile_app(text).app
    found = in_driver(directory, app, events, dice)
    assert found == rows(app, events, "embedded"), f"{family} {seed}:\n{text}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
def test_many_apps_of_every_family_in_the_driver(tmp_path, family):
    """EDGEWISE_SEED=n begins with another one."""
    for seed in range(SEED, SEED + MANY):
        assert_same_in_driver(tmp_path / str(seed), family, seed)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES)
def test_many_apps_of_every_family_in_tasks(spark, family):
    for seed in range(SEED + MANY, SEED + MANY + FEW):
        assert_same(seed, partial(family_case, family))


def test_a_killed_batch_is_run_again_over_the_same_range(tmp_path, monkeypatch):
    text, events, _ = case(1)
    app = compile_app(text).app
    layout = DataDirectory(tmp_path)
    load_logs(app, events[:50], layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }
    logs = {s.name: layout.log_directory(s.name) for s in app.inputs}

    def engine():
        return SparkEngine.open(
            None, app, logs=logs, writers=writers, checkpoint=layout.checkpoint("app")
        )

    killed = engine()
    monkeypatch.setattr(killed.checkpoint, "write", killed_at(2, killed.checkpoint.write))
    with pytest.raises(KeyboardInterrupt):
        killed.run_history()
    heads = [w.head.offset for w in writers.values()]
    load_logs(app, events[50:], layout)  # what came meanwhile belongs to the next batch
    again = engine()
    again._finish_pending()
    assert [w.head.offset for w in writers.values()] == heads
    again.run_history()
    names = [s.name for s in app.outputs]
    found = merge_by_time(
        (r for s in app.outputs for r in read_rows(layout.log_directory(s.name), s.schema)), names
    )
    for part in (killed, again, *writers.values()):
        part.close()
    assert [dataclasses.replace(e, at=0) for e in found] == rows(app, events, "embedded")


def killed_at(count, call):
    left = [count]

    def counted(*args):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return call(*args)

    return counted


def test_a_checkpoint_of_a_stream_refuses_a_batch(tmp_path):
    app = compile_app(LOGINS).app
    layout = DataDirectory(tmp_path)
    load_logs(app, [], layout)
    logs = {s.name: layout.log_directory(s.name) for s in app.inputs}
    job = SparkEngine.open(None, app, logs=logs, writers={}, checkpoint=tmp_path / "checkpoint")
    job.checkpoint.spark.mkdir(parents=True)
    with pytest.raises(SetupError, match="belongs to a stream"):
        job.run_history()
    with pytest.raises(SetupError, match="has begun, it continues"):
        job.start_from({"login_stream": 0})
    job.close()


FAULTY = """
@lateness('1 sec') define stream S (k string, v int, p string);
@lateness('2 sec') define stream T (k string, v int, p string);
from S[str:regexp(k, p)]#window.time(2 sec) select k, count() as n group by k insert into O;
from T[str:regexp(k, p)] select k insert into O2;
"""


@pytest.mark.parametrize("seed", range(8))
def test_late_and_failing_events_are_the_same_fault_rows_on_both_engines(tmp_path, seed):
    dice = random.Random(seed)
    app = compile_app(FAULTY).app
    times = itertools.accumulate(dice.choice([0, 300, 900]) for _ in range(60))
    events = [
        Event(
            dice.choice("ST"),
            max(t - dice.choice([0, 500, 1500, 5000]), 1),
            (dice.choice("ab"), n, dice.choice(["a", "("])),
        )
        for n, t in enumerate(times)
    ]
    told = []
    for name in ("live", "batch"):
        layout = DataDirectory(tmp_path / name)
        load_logs(app, events, layout)
        outputs = (*app.outputs, FAULTS)
        writers = {
            s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in outputs
        }
        logs = {s.name: layout.log_directory(s.name) for s in app.inputs}
        places = {"logs": logs, "writers": writers, "checkpoint": layout.checkpoint("app")}
        if name == "live":
            job = EmbeddedEngine.open(app, **places, rows_max=dice.choice([1, 7, 100]))
            while job.run_batch(0):
                pass
        else:
            sizes = {"partitions": dice.randint(1, 3), "history_rows_max": dice.choice([7, 100])}
            job = SparkEngine.open(None, app, **places, config=SparkConfig(**sizes))
            job.run_history()
        counts = job.progress.counts
        for part in (job, *writers.values()):
            part.close()
        told.append(
            sorted(e.data for e in read_rows(layout.log_directory(FAULTS.name), FAULTS.schema))
        )
        late = sum("late by" in error for _, _, error, _ in told[-1])
        assert late == sum(counts["late"].values()) > 0
        assert len(told[-1]) - late == sum(counts["faults"].values()) > 0
    assert told[0] == told[1]
    for stream, offset, _, text in told[0]:
        own = [e for e in events if e.stream == stream]
        assert json.loads(text) == list(own[offset].data)


@pytest.mark.parametrize("seed", range(6))
def test_every_row_has_the_capture_time_of_its_cause(tmp_path, seed):
    """Also in partitions that had no event of their own when time moved."""
    dice = random.Random(seed)
    app = compile_app(DEFINITIONS + KEYED[0].replace("insert", "insert all events")).app
    layout = DataDirectory(tmp_path)
    load_logs(app, case(seed)[1], layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }
    logs = {s.name: layout.log_directory(s.name) for s in app.inputs}
    config = SparkConfig(partitions=3, history_rows_max=dice.choice([1, 7, 1000]))
    places = {"logs": logs, "writers": writers, "checkpoint": layout.checkpoint("app")}
    job = SparkEngine.open(None, app, **places, config=config)
    job.run_history()
    for part in (job, *writers.values()):
        part.close()
    found = [row.at for row in read_rows(layout.log_directory("O"), app.stream("O").schema)]
    assert found
    assert min(found) > 0


def test_a_second_app_on_one_checkpoint_runs_its_own_filter(tmp_path):
    """In the same process, where the kernel of the first app is still in memory."""
    layout = DataDirectory(tmp_path)
    for index, condition in enumerate(("v > 3", "v < 3")):
        text = f"define stream S (v int); from S[{condition}] select v insert into O;"
        app = compile_app(text).app
        load_logs(app, [Event("S", 10 * index + v, (v,)) for v in (1, 5)], layout)
        writer = SegmentWriter.open(layout.log_directory("O"), app.stream("O").schema)
        job = SparkEngine.open(
            None,
            app,
            logs={"S": layout.log_directory("S")},
            writers={"O": writer},
            checkpoint=layout.checkpoint("app"),
        )
        job.run_history()
        job.close()
        writer.close()
    found = read_rows(layout.log_directory("O"), app.stream("O").schema)
    assert [row.data for row in found] == [(5,), (1,)]
