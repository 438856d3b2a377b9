from edgewise.event.event import Event, EventKind


def test_an_event_is_current_unless_said_otherwise():
    assert Event("S", 1, ("a",)).kind is EventKind.CURRENT


def test_the_numbers_of_kinds_are_what_logs_on_disk_hold():
    held = [("CURRENT", 0), ("EXPIRED", 1), ("TICK", 2), ("MORE", 3)]
    assert [(k.name, k.value) for k in EventKind] == held
