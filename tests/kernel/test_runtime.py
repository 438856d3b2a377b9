from edgewise.kernel.runtime import Runtime


def runtime(**more):
    rt = Runtime(keyed=False, **more)
    fired = []
    rt.nodes = [lambda _state, due, payload, n=n: fired.append((n, due, payload)) for n in (0, 1)]
    return rt, fired


def test_timers_fire_by_due_time_then_by_the_event_that_armed_them():
    rt, fired = runtime()
    state = rt.state(())
    rt.arm(state, 0, 50, offset=9, payload="late")
    rt.arm(state, 0, 50, offset=2, payload="early")
    rt.arm(state, 1, 40, payload="first")
    rt.arm(state, 0, 60, payload="not yet")
    rt.fire(50, 0)
    assert [payload for _, _, payload in fired] == ["first", "early", "late"]
    assert rt.now == 50


def test_a_timer_for_a_moment_that_has_passed_fires_when_time_moves():
    rt, fired = runtime()
    rt.now = 100
    rt.arm(rt.state(()), 0, 10)
    rt.fire(100, 0)
    assert fired == []
    rt.fire(101, 0)
    assert fired == [(0, 101, None)]


def test_a_disarmed_timer_is_silent():
    rt, fired = runtime()
    state = rt.state(())
    rt.disarm(state, rt.arm(state, 0, 10))
    rt.fire(10, 0)
    assert fired == []


def test_rows_of_one_cause_are_counted():
    rt, _ = runtime()
    rt.begin(5, 1, 0, 0)
    rt.emit("O", [(0, 5, ("a",)), (0, 5, ("b",))])
    rt.begin(5, 1, 0, 0)
    rt.emit("O", [(0, 5, ("c",))])
    rt.begin(6, 1, 1, 0)
    rt.emit("O", [(0, 6, ("d",))])
    assert [row[4] for row in rt.rows] == [0, 1, 2, 0]


def test_a_timer_that_fails_is_counted_where_something_may_fail():
    rt, _ = runtime()
    rt.guarded = True
    rt.nodes = [lambda _state, _due, _payload: 1 // 0]
    rt.arm(rt.state(()), 0, 10)
    rt.fire(10, 0)
    assert rt.faults == {"(timer)": 1}
    assert rt.reasons["(timer)"].startswith("ZeroDivisionError")
