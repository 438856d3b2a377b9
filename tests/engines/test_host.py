"""State of a version comes from memory only when it is exactly the one asked for."""

import pytest

from edgewise.engines import host
from edgewise.engines.host import Cut, Job, add_counts, by_stream, counted, fit, run_part
from edgewise.errors import SetupError
from edgewise.lang import compile_app
from edgewise.plan.rules.keys import split

TEXT = "define stream S (k string); from S select k, count() as n group by k insert into O;"


def job(version, root):
    app = compile_app(TEXT).app
    [fragment] = split(app)
    return Job(app, fragment, version, version, str(root), ("S",))


def batch(*keys, first):
    import pyarrow as pa

    size = len(keys)
    return pa.RecordBatch.from_pydict(
        {
            "_ts": [first] * size,
            "_at": [1] * size,
            "_offset": list(range(first, first + size)),
            "_clock": [first] * size,
            "_stream": pa.array([0] * size, pa.int32()),
            "s0_k": list(keys),
        }
    )


def counts(table):
    return table.column("o0_n").to_pylist()


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


def test_rows_are_sorted_and_cut_by_stream(tmp_path):
    table = run_part(job(0, tmp_path), 0, [batch("a", "b", first=0)])
    [(stream, rows)] = by_stream(job(0, tmp_path), table.take([1, 0]))
    assert stream.name == "O"
    assert rows.column("k").to_pylist() == ["a", "b"]


def test_a_table_without_a_column_of_the_log_is_refused_by_name():
    import pyarrow as pa

    from edgewise.event.arrow import to_arrow

    with pytest.raises(SetupError, match="'k'"):
        fit(pa.table({"_ts": [1]}), to_arrow(compile_app(TEXT).app.stream("S").schema))


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
    [(_, rows)] = by_stream(work, done)
    assert rows.num_rows == 1
    assert counted(work, done) == {"faults": {"S": 1}}
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
        table = run_part(work, 0, [rows])
        add_counts(found, counted(work, table))
        assert sum(rows.num_rows for _, rows in by_stream(work, table)) == (
            3 if version == 2 else 0
        )
    assert found == {"late": {"S": 1}, "dropped": {"partition1": 1}}
