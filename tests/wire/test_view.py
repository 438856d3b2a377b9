import pytest
from tests.support import golden_frames as golden

from edgewise.errors import ProtocolError
from edgewise.wire import frames
from edgewise.wire.frames import How
from edgewise.wire.view import Removed, Staled, Stopped, Update, View


def play():
    view = View()
    return view, [view.take(f) for f in golden.FROM_SERVER]


def test_the_golden_session_rebuilds_values_and_positions():
    view, events = play()
    updates = [e for e in events if isinstance(e, Update)]
    assert [u.value for u in updates if u.path == "alerts/a"] == [
        {"ip": "a", "n": 11, "gone": None},
        {"ip": "a", "n": 12, "gone": None},
        {"ip": "a", "n": 13},
    ]
    last = [u.meta for u in updates if u.path == "alerts/a"][-1]
    assert (last.how, last.epoch, last.start, last.to, last.count) == (How.UPDATE, 3, 22, 23, 1)
    assert last.at_us == golden.AT + 1480
    assert view.value("book") == {"x": {"q": 9}, "z": {"q": 3}}
    assert [e[0] for e in view.value("trades")] == [1, 2, 3]
    assert view.updates == 8


def test_stale_paused_and_removed_are_events():
    _, events = play()
    assert [e for e in events if isinstance(e, Staled)] == [
        Staled("alerts/a", golden.AT),
        Staled("alerts/a", 0),
    ]
    assert [e for e in events if isinstance(e, Stopped)] == [Stopped("trades", 9, 4001, 3, 4)]
    assert Removed("alerts/a", frames.RemoveReason.EXPIRED) in events


def test_a_new_session_keeps_what_is_known_by_path():
    view, _ = play()
    view.begin()
    assert ("trades", 3, 4) in view.positions()
    view.take(frames.TopicFrame(1, "trades", frames.TopicKind.SERIES, frames.TopicOptions(keep=3)))
    update = view.take(frames.Delta(1, 1, 1, 5, [[[4, 0, {"p": 5}]]]))
    assert update.meta.to == 5
    assert [e[0] for e in update.value] == [2, 3, 4]
    assert view.updates == 1


def test_an_undeclared_alias_is_the_servers_fault():
    with pytest.raises(ProtocolError, match="alias 5"):
        View().take(frames.Next(5, 1, 1, 0, {}))


def test_forgotten_paths_are_not_offered_on_reconnect():
    view, _ = play()
    view.forget("trades")
    assert "trades" not in [p for p, _, _ in view.positions()]
