"""State of a version comes from memory only when it is exactly the one asked for."""

import dataclasses

import pytest

from edgewise.engines import host
from edgewise.engines.host import (
    Cut,
    Job,
    ask,
    run_part,
    runs,
    whole_chunks,
)
from edgewise.engines.results import add_counts
from edgewise.event.event import Kind
from edgewise.event.types import AttrType
from edgewise.lang import compile_app
from edgewise.lang.compiler import compile_query
from edgewise.plan.functions import FUNCTIONS, TEXT, scalar
from edgewise.plan.rules.keys import split

COUNTS = "define stream S (k string); from S select k, count() as n group by k insert into O;"


def job(version, root, text=COUNTS, **functions):
    app = compile_app(text, functions=FUNCTIONS.with_(*functions.values())).app
    [fragment] = split(app)
    return Job(app, fragment, version, version, str(root), ("S",))


def batch(*keys, first, kinds=None):
    import pyarrow as pa

    size = len(keys)
    return pa.RecordBatch.from_pydict(
        {
            "_ts": [first] * size,
            "_at": [1] * size,
            "_offset": list(range(first, first + size)),
            "_clock": [first] * size,
            "_kind": pa.array(kinds or [0] * size, pa.int8()),
            "_stream": pa.array([0] * size, pa.int32()),
            "s0_k": list(keys),
        }
    )


def rows_of(made):
    return {stream: rows.to_pylist() for stream, rows in made.ordered()}


def counts(made):
    return [row["n"] for row in rows_of(made)["O"]]


def test_a_batch_that_is_repeated_starts_from_the_state_before_it(tmp_path):
    assert counts(run_part(job(0, tmp_path), 0, [batch("a", "a", first=0)])) == [1, 2]
    assert counts(run_part(job(1, tmp_path), 0, [batch("a", first=2)])) == [3]
    assert counts(run_part(job(1, tmp_path), 0, [batch("a", first=2)])) == [3]


def test_another_process_goes_on_from_the_files(tmp_path, monkeypatch):
    run_part(job(0, tmp_path), 0, [batch("a", "b", first=0)])
    monkeypatch.setattr(host, "_LIVE", host.LiveKernels())
    assert counts(run_part(job(1, tmp_path), 0, [batch("b", first=2)])) == [2]


def test_a_process_keeps_a_bounded_number_of_kernels(tmp_path, monkeypatch):
    monkeypatch.setattr(host, "LIVE_KERNELS_MAX", 2)
    live = host.LiveKernels()
    monkeypatch.setattr(host, "_LIVE", live)
    for part in range(5):
        run_part(job(0, tmp_path), part, [batch("a", first=0)])
    assert len(live._kernels) == 2


def test_a_cut_counts_its_rows():
    assert Cut(0, {"S": 3, "T": 0}, {"S": 5, "T": 1}, 0, 0).rows == 3


def test_rows_of_named_windows_stay_inside(tmp_path):
    app = compile_app(
        "define stream S (k string); define window W (k string) length(2) output all events; "
        "from S select k insert into W; from W select k, count() as n insert into O;"
    ).app
    [fragment] = split(app)
    inside = Job(app, fragment, 0, 0, str(tmp_path), ("S",))
    assert counts(run_part(inside, 0, [batch("a", "b", first=0)])) == [1, 2]


def test_what_failed_is_told(tmp_path, caplog):
    app = compile_app("define stream S (k string); from S[str:regexp(k, k)] insert into O;").app
    [fragment] = split(app)
    work = Job(app, fragment, 0, 0, str(tmp_path), ("S",))
    done = run_part(work, 0, [batch("a", "(", first=0)])
    rows = rows_of(done)
    assert list(rows) == ["O", "$faults"]
    assert len(rows["O"]) == 1
    assert done.counts == {"faults": {"S": 1}}
    assert "stream S: 1 events failed and were dropped: " in caplog.text


BOUNDED = """
@lateness('1 sec') define stream S (k string);
@state(limit='2') partition with (k of S) begin from S select k, count() as n insert into O; end;
"""


def test_what_is_late_and_what_is_dropped_is_counted_with_the_rows(tmp_path):
    import pyarrow as pa

    app = compile_app(BOUNDED).app
    [fragment] = split(app)
    found = {}
    for version, (keys, first) in enumerate([("abc", 5000), ("d", 1000), ("e", 9000)]):
        work = Job(app, fragment, version, first if version != 1 else 5000, str(tmp_path), ("S",))
        rows = batch(*keys, first=first)
        if version == 1:
            rows = rows.set_column(3, "_clock", pa.array([5000]))
        made = run_part(work, 0, [rows])
        add_counts(found, made.counts)
        assert sum(map(len, rows_of(made).values())) == (0, 1, 3)[version]
    assert found == {"late": {"S": 1}, "dropped": {"partition1": 1}}


def fail_on_b(text):
    if text == "b":
        raise ValueError("no b, please")
    return text


PICKY = scalar("my:picky", TEXT, returns=lambda _: AttrType.STRING, python=fail_on_b)


@pytest.mark.parametrize("where", ["my:picky(k) as k, count() as n", "k, count() as n"])
def test_a_poison_event_is_told_with_its_place_and_error_and_the_others_are_counted(
    tmp_path, where
):
    rest = "group by k" if "picky" in where else "group by k having my:picky(k) == k"
    text = f"define stream S (k string); from S select {where} {rest} insert into O;"
    first = job(0, tmp_path, text, picky=PICKY)
    made = run_part(first, 0, [batch("a", "b", "a", first=0)])
    rows = rows_of(made)
    assert [(r["k"], r["n"]) for r in rows["O"]] == [("a", 1), ("a", 2)]
    [fault] = rows["$faults"]
    assert (fault["stream"], fault["offset"], fault["event"]) == ("S", 1, '["b"]')
    assert fault["error"] == "ValueError: no b, please"
    assert made.counts == {"faults": {"S": 1}}
    following = job(1, tmp_path, text, picky=PICKY)
    made = run_part(following, 0, [batch("b", "a", first=3)])
    assert counts(made) == [3]
    assert made.counts == {"faults": {"S": 1}}


def test_what_a_partition_tells_about_itself_is_no_row(tmp_path):
    made = run_part(job(0, tmp_path), 0, [batch("a", "b", "a", first=0)])
    assert made.keys == 2
    assert made.counts == {}


CHUNKS = [Kind.CURRENT, Kind.MORE, Kind.CURRENT, Kind.CURRENT, Kind.MORE, Kind.MORE]
BATCHED = "define stream S (k string); from S#window.batch() select k insert into O;"


def test_a_chunk_is_one_run_of_its_own(tmp_path):
    rows = batch(*"abcdef", first=0, kinds=CHUNKS)
    found = [(list(run.columns[0]), chunk) for run, chunk in runs(job(0, tmp_path, BATCHED), rows)]
    assert found == [
        (["a"], False),
        (["b", "c"], True),
        (["d"], False),
        (["e", "f"], True),
    ]


def test_a_chunk_that_lies_in_two_batches_is_put_together(monkeypatch):
    monkeypatch.setattr(host, "RUN_ROWS", 1)
    parts = [batch("a", "b", first=0, kinds=[0, Kind.MORE]), batch("c", "d", first=2)]
    assert [b.num_rows for b in whole_chunks([*parts, batch("e", first=4)])] == [4, 1]
    [open_end] = whole_chunks([batch("a", first=0, kinds=[Kind.MORE])])
    assert open_end.num_rows == 1


def test_small_batches_are_fed_together(monkeypatch):
    monkeypatch.setattr(host, "RUN_ROWS", 3)
    small = [batch("a", first=n) for n in range(7)]
    assert [b.num_rows for b in whole_chunks(small)] == [3, 3, 1]


TABLE = """
define stream S (k string);
define table T (k string);
from S insert into T;
"""


def test_a_question_sees_the_last_batch_and_a_change_stays(tmp_path, monkeypatch):
    run_part(job(0, tmp_path, TABLE), 0, [batch("a", first=0)])
    after = job(1, tmp_path, TABLE)
    everything = compile_query("from T select k", after.app)
    assert ask(after, everything) == [("a",)]
    ask(after, compile_query("select 'x' as k insert into T", after.app))
    monkeypatch.setattr(host, "_LIVE", host.LiveKernels())
    assert ask(after, everything) == [("a",), ("x",)]
    run_part(after, 0, [batch("b", first=1)])
    assert ask(job(2, tmp_path, TABLE), everything) == [("a",), ("x",), ("b",)]


def test_a_change_by_a_question_reaches_a_worker_that_kept_the_kernel_of_before(
    tmp_path, monkeypatch
):
    worker, driver = host.LiveKernels(), host.LiveKernels()
    monkeypatch.setattr(host, "_LIVE", worker)
    run_part(job(0, tmp_path, TABLE), 0, [batch("a", first=0)])
    monkeypatch.setattr(host, "_LIVE", driver)
    after = job(1, tmp_path, TABLE)
    ask(after, compile_query("select 'x' as k insert into T", after.app))
    monkeypatch.setattr(host, "_LIVE", worker)
    run_part(dataclasses.replace(after, revision=1), 0, [batch("b", first=1)])
    everything = compile_query("from T select k", after.app)
    asked = dataclasses.replace(job(2, tmp_path, TABLE), revision=1)
    assert ask(asked, everything) == [("a",), ("x",), ("b",)]


def test_a_row_that_no_log_can_hold_is_a_fault_and_the_others_are_rows(tmp_path):
    text = "define stream S (k string); from S select k, cast(k, 'double') as d insert into O;"
    work = job(0, tmp_path, text)
    rows = rows_of(run_part(work, 0, [batch("x", None, first=0)]))
    assert [r["k"] for r in rows["O"]] == [None]
    assert rows["$faults"][0]["offset"] == 0
    assert rows["$faults"][0]["error"].startswith("d is no double: ")


def test_events_without_the_time_of_their_window_are_counted(tmp_path):
    import pyarrow as pa

    text = "define stream S (k string, t long); from S#window.externalTime(t, 5) insert into O;"
    work = job(0, tmp_path, text)
    rows = batch("a", "b", first=0).append_column("s0_t", pa.array([None, 7], pa.int64()))
    assert run_part(work, 0, [rows]).counts == {"faults": {"(no time)": 1}}
