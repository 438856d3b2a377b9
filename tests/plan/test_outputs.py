from edgewise.plan.outputs import EventType, InsertInto, Return


def test_only_current_rows_go_out_unless_asked():
    assert InsertInto("S").events is EventType.CURRENT
    assert Return().target == ""
