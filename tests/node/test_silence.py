from hypothesis import given
from hypothesis import strategies as st

from edgewise.node.silence import Silence


@given(st.lists(st.floats(0.5, 30), max_size=50))
def test_the_answers_add_up_to_what_has_passed(pauses):
    silence, now_s, total_ms = Silence(3, 100.0), 100.0, 0
    for head, pause_s in enumerate(pauses, start=3):
        now_s += pause_s
        total_ms += silence.lasts_ms(head, now_s)
        silence.marked(head + 1)
    assert 0 <= (now_s - 100.0) * 1000 - total_ms <= 1.001


def test_an_event_ends_it():
    silence = Silence(3, 100.0)
    assert silence.lasts_ms(4, 109.0) == 0
    assert silence.lasts_ms(4, 110.5) == 1500
