import re

from hypothesis import given
from hypothesis import strategies as st

from edgewise.node.upkeep.metrics import (
    GAUGES,
    SAMPLES_MAX,
    TOTALS,
    WINDOW_US,
    Rates,
    render_engine_metrics,
)

PROGRESS = {
    "rows_in": 7,
    "rows_out": 3,
    "counts": {"late": {"S": 2}, "dropped": {'a "b"': 5, "partition1": 1}},
}


def test_what_was_dropped_is_there_by_name():
    lines = render_engine_metrics(PROGRESS).splitlines()
    assert 'edgewise_engine_dropped_total{owner="partition1"} 1' in lines
    assert 'edgewise_engine_dropped_total{owner="a \\"b\\""} 5' in lines
    assert 'edgewise_engine_late_total{stream="S"} 2' in lines
    assert "edgewise_engine_rows_in_total 7" in lines


def test_before_the_engine_told_anything_all_is_zero():
    assert "edgewise_engine_rows_out_total 0" in render_engine_metrics({}).splitlines()


def test_time_by_phase_state_and_lag_are_there():
    phases = {"run": 2.5, "trigger": 30}
    told = {"batch_ms": phases, "state_bytes": 9, "watermark_lag_ms": 4, "restarts": 1}
    lines = render_engine_metrics(told).splitlines()
    assert 'edgewise_engine_batch_seconds{phase="run"} 0.0025' in lines
    assert "edgewise_engine_trigger_seconds 0.03" in lines
    assert not any('phase="trigger"' in line for line in lines)
    assert "edgewise_engine_state_bytes 9" in lines
    assert "edgewise_engine_watermark_lag_seconds 0.004" in lines
    assert "edgewise_engine_restarts_total 1" in lines
    assert not any("backlog" in line for line in lines)


def test_what_is_not_known_is_left_out():
    lines = render_engine_metrics({"watermark": None, "watermark_lag_ms": None}).splitlines()
    assert not any("watermark" in line for line in lines)


NUMBERS = st.integers(0, 10**15) | st.floats(0, 1e12)
KEYS = [key for _, key, _ in GAUGES] + list(TOTALS)
SAMPLE = re.compile(r'(\w+)(\{\w+="(?:[^"\\\n]|\\["\\n])*"\})? \d+(\.\d+)?(e[+-]\d+)?')


@given(
    st.dictionaries(st.sampled_from(KEYS), NUMBERS),
    st.dictionaries(st.text(max_size=5), st.integers(0, 9)),
)
def test_every_line_is_one_that_prometheus_reads(told, named):
    """A name is explained once, before its samples, and says its unit."""
    told |= {"counts": {"late": named, "faults": named}, "batch_ms": named, "keys": named}
    known = []
    for line in render_engine_metrics(told).removesuffix("\n").split("\n"):
        if line.startswith("# "):
            _, word, name, text = line.split(" ", 3)
            known += [name] if word == "HELP" else []
            assert word == "HELP" or text == ("counter" if name.endswith("_total") else "gauge")
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == known[-1]
    assert len(set(known)) == len(known)
    assert not any(name.endswith("_ms") for name in known)


def test_a_steady_flow_has_a_steady_rate():
    rates = Rates()
    for tick in range(20):
        value = rates.update(tick * 500_000, tick * 1000, tick * 5)
    assert value == {
        "events_in_per_s": 2000.0,
        "rows_out_per_s": 10.0,
        "events_in": 19_000,
        "rows_out": 95,
    }


def test_idle_time_brings_the_rate_down_to_zero_within_the_window():
    rates = Rates()
    rates.update(0, 0, 0)
    rates.update(1_000_000, 5000, 1)
    for tick in range(2, 10):
        value = rates.update(tick * 1_000_000, 5000, 1)
    assert WINDOW_US < 9_000_000 - 1_000_000
    assert value["events_in_per_s"] == 0


@given(st.lists(st.integers(1, 10_000_000), max_size=3 * SAMPLES_MAX))
def test_memory_is_bounded_whatever_the_ticks(gaps):
    rates = Rates()
    now = 0
    for gap in gaps:
        now += gap
        rates.update(now, 0, 0)
    assert len(rates._samples) <= SAMPLES_MAX
