from tests.support.kernel_runs import data, engine, play


def test_an_event_runs_all_the_way_down_before_the_next_query():
    query = (
        "from A select k, v insert into M; from M select v insert into O; "
        "from A select v + 100 as v insert into O;"
    )
    assert data(query, [("A", 1, "x", 1), ("A", 2, "x", 2)]) == [(1,), (101,), (2,), (102,)]


def test_an_expired_row_arrives_downstream_as_current():
    query = (
        "from A#window.length(1) select v insert expired events into M; "
        "from M select v insert into O;"
    )
    assert play(query, [("A", 1001, "x", 1), ("A", 1002, "x", 2)]) == [(1002, "+", 1)]


def test_one_chunk_with_an_aggregate_gives_its_last_row():
    running = engine("from A select sum(v) as s insert into O;")
    running.send_chunk("A", [(1001, ("x", 1)), (1002, ("x", 2))])
    assert [e.data for e in running.take() if e.stream == "O"] == [(3,)]


def test_a_stream_function_adds_attributes():
    query = "from P#pol2Cart(theta, rho) select x, y insert into O;"
    head = "define stream P (theta double, rho double); "
    ((x, y),) = data(query, [("P", 1, 0.0, 2.0)], head)
    assert (x, y) == (2.0, 0.0)
