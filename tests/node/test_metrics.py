from edgewise.node.metrics import engine_metrics

PROGRESS = {
    "rows_in": 7,
    "rows_out": 3,
    "counts": {"late": {"S": 2}, "dropped": {'a "b"': 5, "partition1": 1}},
}


def test_what_was_dropped_is_there_by_name():
    lines = engine_metrics(PROGRESS).splitlines()
    assert 'edgewise_engine_dropped_total{owner="partition1"} 1' in lines
    assert 'edgewise_engine_dropped_total{owner="a \\"b\\""} 5' in lines
    assert 'edgewise_engine_late_total{stream="S"} 2' in lines
    assert "edgewise_engine_rows_in_total 7" in lines


def test_before_the_engine_told_anything_all_is_zero():
    assert "edgewise_engine_rows_out_total 0" in engine_metrics({}).splitlines()
