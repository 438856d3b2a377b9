from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.schema import Schema
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.upkeep.idle_clock import IdleClock, append_tick


@given(st.lists(st.floats(0.5, 30), max_size=50))
def test_the_answers_add_up_to_what_has_passed(pauses):
    clock, now_s, total_ms = IdleClock(3, 100.0), 100.0, 0
    for head, pause_s in enumerate(pauses, start=3):
        now_s += pause_s
        total_ms += clock.measure_ms(head, now_s)
        clock.skip_tick(head + 1)
    assert 0 <= (now_s - 100.0) * 1000 - total_ms <= 1.001


def test_an_event_starts_the_idle_time_again():
    clock = IdleClock(3, 100.0)
    assert clock.measure_ms(4, 109.0) == 0
    assert clock.measure_ms(4, 110.5) == 1500


def test_a_tick_moves_the_clock_of_a_log_and_holds_no_event(tmp_path):
    writer = SegmentWriter.open(tmp_path / "S", Schema.of("S", k="string", v="int"))
    append_tick(writer, 5_000)
    reader = SegmentReader.open(tmp_path / "S")
    [batch] = reader.read(0, 1)
    [row] = batch.rows.to_pylist()
    assert reader.clock(1) == 5_000
    assert (row["_kind"], row["k"], row["v"]) == (2, None, None)
    reader.close()
    writer.close()
