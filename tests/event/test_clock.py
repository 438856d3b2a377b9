from edgewise.event.clock import ManualClock


def test_a_manual_clock_moves_only_when_told():
    clock = ManualClock(5)
    assert clock.now_us() == 5
    clock.advance(10)
    assert clock.now_us() == 15
