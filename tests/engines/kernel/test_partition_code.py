from tests.engines.kernel.apps import data, engine, feed

COUNT = "partition with (k of A) begin from A select k, count() as n insert into O; end;"


def test_each_key_has_its_own_state_and_null_has_none():
    events = [("A", 1, "x", 0), ("A", 2, "y", 0), ("A", 3, "x", 0), ("A", 4, None, 0)]
    assert data(COUNT, events) == [("x", 1), ("y", 1), ("x", 2)]


def test_an_event_goes_to_every_range_it_satisfies():
    query = (
        "partition with (v < 5 as 'low' or v < 9 as 'most' of A) begin "
        "from A select v, count() as n insert into O; end;"
    )
    assert data(query, [("A", 1, "x", 7), ("A", 2, "x", 3), ("A", 3, "x", 10)]) == [
        (7, 1), (3, 1), (3, 2),
    ]  # fmt: skip


def test_inner_streams_stay_inside():
    query = (
        "partition with (k of A) begin from A select k, v insert into #I; "
        "from #I#window.length(2) select k, sum(v) as s insert into O; end;"
    )
    assert data(query, [("A", 1, "x", 1), ("A", 2, "y", 5), ("A", 3, "x", 2)]) == [
        ("x", 1), ("y", 5), ("x", 3),
    ]  # fmt: skip


def test_timers_of_many_keys_all_fire():
    query = (
        "partition with (k of A) begin from A#window.timeBatch(10 milliseconds) "
        "select k, count() as n insert into O; end;"
    )
    assert data(query, [("A", 1001, "x", 1), ("A", 1001, "y", 1), 1020]) == [("x", 1), ("y", 1)]


def test_an_idle_instance_is_freed():
    query = "@purge(enable='true', interval='1 sec', idle.period='10 sec') " + COUNT
    running = engine(query)
    feed(running, [("A", 1000, "x", 0), ("A", 5000, "x", 0), 14000, ("A", 14001, "x", 0)])
    assert [e.data[1] for e in running.take() if e.stream == "O"] == [1, 2, 3]
    feed(running, [30000, ("A", 30001, "x", 0)])
    assert [e.data[1] for e in running.take() if e.stream == "O"] == [1]
