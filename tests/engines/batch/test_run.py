"""A key partition is run from exactly the state version before its batch."""

import dataclasses

import pytest
from tests.support.batch_jobs import build_batch, build_job, list_rows

from edgewise.engines.batch import run
from edgewise.engines.batch.live_kernels import LiveKernels
from edgewise.engines.batch.outputs import add_counts
from edgewise.engines.batch.run import (
    answer_query,
    join_chunks,
    run_key_partition,
    split_runs,
)
from edgewise.event.event import EventKind
from edgewise.event.types import AttrType
from edgewise.lang.compiler import compile_query
from edgewise.plan.functions import TEXT, scalar


def counts(made):
    return [row["n"] for row in list_rows(made)["O"]]


def test_a_batch_that_is_repeated_starts_from_the_state_before_it(tmp_path):
    assert counts(
        run_key_partition(build_job(0, tmp_path), 0, [build_batch("a", "a", first=0)])
    ) == [1, 2]
    assert counts(run_key_partition(build_job(1, tmp_path), 0, [build_batch("a", first=2)])) == [3]
    assert counts(run_key_partition(build_job(1, tmp_path), 0, [build_batch("a", first=2)])) == [3]


def test_another_process_continues_from_the_files(tmp_path, monkeypatch):
    run_key_partition(build_job(0, tmp_path), 0, [build_batch("a", "b", first=0)])
    monkeypatch.setattr(run, "_live", LiveKernels())
    assert counts(run_key_partition(build_job(1, tmp_path), 0, [build_batch("b", first=2)])) == [2]


def test_rows_of_named_windows_stay_inside(tmp_path):
    text = (
        "define stream S (k string); define window W (k string) length(2) output all events; "
        "from S select k insert into W; from W select k, count() as n insert into O;"
    )
    inside = build_job(0, tmp_path, text)
    assert counts(run_key_partition(inside, 0, [build_batch("a", "b", first=0)])) == [1, 2]


def test_failed_events_become_fault_rows_and_a_warning(tmp_path, caplog):
    text = "define stream S (k string); from S[str:regexp(k, k)] insert into O;"
    work = build_job(0, tmp_path, text)
    done = run_key_partition(work, 0, [build_batch("a", "(", first=0)])
    rows = list_rows(done)
    assert list(rows) == ["O", "$faults"]
    assert len(rows["O"]) == 1
    assert done.counts == {"faults": {"S": 1}}
    assert "stream S: 1 events failed and were dropped: " in caplog.text


BOUNDED = """
@lateness('1 sec') define stream S (k string);
@state(limit='2') partition with (k of S) begin from S select k, count() as n insert into O; end;
"""


def test_late_and_dropped_events_are_counted_with_the_rows(tmp_path):
    import pyarrow as pa

    found = {}
    for version, (keys, first) in enumerate([("abc", 5000), ("d", 1000), ("e", 9000)]):
        clock = first if version != 1 else 5000
        work = dataclasses.replace(build_job(version, tmp_path, BOUNDED), clock=clock)
        rows = build_batch(*keys, first=first)
        if version == 1:
            rows = rows.set_column(3, "_clock", pa.array([5000]))
        made = run_key_partition(work, 0, [rows])
        add_counts(found, made.counts)
        assert sum(map(len, list_rows(made).values())) == (0, 1, 3)[version]
    assert found == {"late": {"S": 1}, "dropped": {"partition1": 1}}


def fail_on_b(text):
    if text == "b":
        raise ValueError("no b, please")
    return text


PICKY = scalar("my:picky", TEXT, returns=lambda _: AttrType.STRING, python=fail_on_b)


@pytest.mark.parametrize("where", ["my:picky(k) as k, count() as n", "k, count() as n"])
def test_an_event_that_fails_is_a_fault_row_and_the_others_are_counted(tmp_path, where):
    rest = "group by k" if "picky" in where else "group by k having my:picky(k) == k"
    text = f"define stream S (k string); from S select {where} {rest} insert into O;"
    first = build_job(0, tmp_path, text, picky=PICKY)
    made = run_key_partition(first, 0, [build_batch("a", "b", "a", first=0)])
    rows = list_rows(made)
    assert [(r["k"], r["n"]) for r in rows["O"]] == [("a", 1), ("a", 2)]
    [fault] = rows["$faults"]
    assert (fault["stream"], fault["offset"], fault["event"]) == ("S", 1, '["b"]')
    assert fault["error"] == "ValueError: no b, please"
    assert made.counts == {"faults": {"S": 1}}
    following = build_job(1, tmp_path, text, picky=PICKY)
    made = run_key_partition(following, 0, [build_batch("b", "a", first=3)])
    assert counts(made) == [3]
    assert made.counts == {"faults": {"S": 1}}


def test_keys_and_counts_of_a_key_partition_are_not_rows(tmp_path):
    made = run_key_partition(build_job(0, tmp_path), 0, [build_batch("a", "b", "a", first=0)])
    assert made.keys == 2
    assert made.counts == {}


CHUNKS = [
    EventKind.CURRENT,
    EventKind.MORE,
    EventKind.CURRENT,
    EventKind.CURRENT,
    EventKind.MORE,
    EventKind.MORE,
]
BATCHED = "define stream S (k string); from S#window.batch() select k insert into O;"


def test_a_chunk_is_one_run_of_its_own(tmp_path):
    rows = build_batch(*"abcdef", first=0, kinds=CHUNKS)
    found = [
        (list(run.columns[0]), chunk)
        for run, chunk in split_runs(build_job(0, tmp_path, BATCHED), rows)
    ]
    assert found == [
        (["a"], False),
        (["b", "c"], True),
        (["d"], False),
        (["e", "f"], True),
    ]


def test_a_chunk_in_two_record_batches_is_joined(monkeypatch):
    monkeypatch.setattr(run, "RUN_ROWS", 1)
    parts = [
        build_batch("a", "b", first=0, kinds=[0, EventKind.MORE]),
        build_batch("c", "d", first=2),
    ]
    assert [b.num_rows for b in join_chunks([*parts, build_batch("e", first=4)])] == [4, 1]
    [open_end] = join_chunks([build_batch("a", first=0, kinds=[EventKind.MORE])])
    assert open_end.num_rows == 1


def test_small_record_batches_are_joined(monkeypatch):
    monkeypatch.setattr(run, "RUN_ROWS", 3)
    small = [build_batch("a", first=n) for n in range(7)]
    assert [b.num_rows for b in join_chunks(small)] == [3, 3, 1]


TABLE = """
define stream S (k string);
define table T (k string);
from S insert into T;
"""


def test_an_on_demand_query_sees_the_last_batch_and_its_change_is_kept(tmp_path, monkeypatch):
    run_key_partition(build_job(0, tmp_path, TABLE), 0, [build_batch("a", first=0)])
    after = build_job(1, tmp_path, TABLE)
    everything = compile_query("from T select k", after.app)
    assert answer_query(after, everything) == [("a",)]
    answer_query(after, compile_query("select 'x' as k insert into T", after.app))
    monkeypatch.setattr(run, "_live", LiveKernels())
    assert answer_query(after, everything) == [("a",), ("x",)]
    run_key_partition(after, 0, [build_batch("b", first=1)])
    assert answer_query(build_job(2, tmp_path, TABLE), everything) == [("a",), ("x",), ("b",)]


def test_a_change_by_an_on_demand_query_reaches_a_worker_with_an_older_kernel(
    tmp_path, monkeypatch
):
    worker, driver = LiveKernels(), LiveKernels()
    monkeypatch.setattr(run, "_live", worker)
    run_key_partition(build_job(0, tmp_path, TABLE), 0, [build_batch("a", first=0)])
    monkeypatch.setattr(run, "_live", driver)
    after = build_job(1, tmp_path, TABLE)
    answer_query(after, compile_query("select 'x' as k insert into T", after.app))
    monkeypatch.setattr(run, "_live", worker)
    run_key_partition(dataclasses.replace(after, revision=1), 0, [build_batch("b", first=1)])
    everything = compile_query("from T select k", after.app)
    asked = dataclasses.replace(build_job(2, tmp_path, TABLE), revision=1)
    assert answer_query(asked, everything) == [("a",), ("x",), ("b",)]


def test_a_row_that_no_log_can_hold_is_a_fault_and_the_others_are_rows(tmp_path):
    text = "define stream S (k string); from S select k, cast(k, 'double') as d insert into O;"
    work = build_job(0, tmp_path, text)
    rows = list_rows(run_key_partition(work, 0, [build_batch("x", None, first=0)]))
    assert [r["k"] for r in rows["O"]] == [None]
    assert rows["$faults"][0]["offset"] == 0
    assert rows["$faults"][0]["error"].startswith("d is no double: ")


def test_events_without_the_time_of_their_window_are_counted(tmp_path):
    import pyarrow as pa

    text = "define stream S (k string, t long); from S#window.externalTime(t, 5) insert into O;"
    work = build_job(0, tmp_path, text)
    rows = build_batch("a", "b", first=0).append_column("s0_t", pa.array([None, 7], pa.int64()))
    assert run_key_partition(work, 0, [rows]).counts == {"faults": {"(no time)": 1}}
