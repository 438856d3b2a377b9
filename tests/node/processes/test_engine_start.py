import pytest
from tests.node.app.test_declared_recovery import APP

from edgewise.engines.batch.inputs import InputLogs
from edgewise.errors import RecoveryError
from edgewise.event.arrow import record_batch
from edgewise.lang import compile_app
from edgewise.log.api import LogConfig
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.processes.engine_start import plan_start


@pytest.fixture
def aged(tmp_path):
    """A log of S that retention has shortened, from offset `first` to 600."""
    schema = compile_app(APP.format("gap", "")).app.stream("S").schema
    config = LogConfig(segment_bytes_max=4_000, retain_bytes=1)
    writer = SegmentWriter.open(tmp_path / "S", schema, config)
    for at in range(0, 600, 100):
        rows = [list(range(at, at + 100)), [1] * 100, [0] * 100]
        writer.append(record_batch(writer.schema, *rows, [["k"] * 100, [1] * 100]))
    writer.retain(0)
    writer.close()
    inputs = InputLogs({"S": str(tmp_path / "S")})
    assert 0 < inputs.earliest()["S"] < 600
    yield inputs
    inputs.close()


def started(kind, inputs, reached):
    return plan_start(compile_app(APP.format(kind, "")).app, inputs, reached)


@pytest.mark.parametrize("kind", ["precise", "rollback", "gap"])
def test_an_engine_goes_on_where_it_was_whatever_is_declared(aged, kind):
    first = started(kind, aged, {"S": 590})
    assert (first.starts, first.why) == ({"S": 590}, "")
    [line] = first.describe()
    assert line.startswith("S: load the checkpoint, replay 10 from 590, drop rows already out")
    assert started(kind, aged, {}).describe() == []


@pytest.mark.parametrize("kind", ["precise", "repeating", "divergent"])
def test_what_the_log_has_lost_is_said_to_who_declares_that_nothing_is(aged, kind):
    with pytest.raises(RecoveryError, match=f"recovery='{kind}' must replay from offset 1, and"):
        started(kind, aged, {"S": 1})
    with pytest.raises(RecoveryError, match="ahead of the log, which ends at"):
        started(kind, aged, {"S": 601})


def test_with_a_gap_it_begins_at_the_head_and_says_so(aged):
    for reached in (1, 601):
        first = started("gap", aged, {"S": reached})
        assert first.starts == {"S": 600}
        why, line = first.describe()
        assert why.startswith("the engine cannot continue from its checkpoint: ")
        assert line.startswith("S: start with an empty state, replay nothing")
    assert "skip 599" in str(started("gap", aged, {"S": 1}).plans["S"])


def test_a_convergent_query_begins_at_the_oldest_event_where_its_state_is_lost(aged):
    first = started("convergent", aged, {"S": 601})
    assert first.starts == {"S": aged.earliest()["S"]}
    assert "start with an empty state, replay" in first.describe()[1]
