from tests.support.compiled_plans import planned, refused


def test_partitions_by_value_and_by_range():
    text = """@purge(enable='true', interval='1 sec', idle.period='1 min')
    partition with (k of A, v > 5 as 'large' or v < 5 as 'small' of B)
    begin from A#window.length(2) select k, sum(v) as t insert into #I; from #I insert into X; end;
    """
    app = planned(text)
    partition = app.partitions[0]
    assert partition.state.idle_ms == 60_000
    assert [k.stream for k in partition.keys] == ["A", "B"]
    assert partition.keys[0].value.name == "k"
    assert [r.label for r in partition.keys[1].ranges] == ["large", "small"]
    assert [s.name for s in partition.streams] == ["#I"]
    assert [q.partition for q in app.queries] == ["partition1", "partition1"]


def test_what_is_refused():
    body = "begin from A insert into X; end;"
    assert refused(f"partition with (z of A) {body}") == ["there is no attribute 'z' here"]
    assert refused(f"partition with (k of Z) {body}") == ["there is no stream or window 'Z'"]
    assert refused(f"partition with (v as 'x' of A) {body}") == [
        "a range needs a bool, this is int"
    ]


def test_an_aggregation_may_stand_before_its_stream():
    text = "define aggregation G from Late select sum(a) as t aggregate every sec; "
    assert planned(text + "define stream Late (a int);").aggregations
