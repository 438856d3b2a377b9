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


def test_time_by_phase_state_and_lag_are_there():
    told = {"batch_ms": {"run": 2.5}, "state_bytes": 9, "watermark_lag_ms": 4, "restarts": 1}
    lines = engine_metrics(told).splitlines()
    assert 'edgewise_engine_batch_ms{phase="run"} 2.5' in lines
    assert "edgewise_engine_state_bytes 9" in lines
    assert "edgewise_engine_watermark_lag_ms 4" in lines
    assert "edgewise_engine_restarts 1" in lines
    assert not any("backlog" in line for line in lines)
