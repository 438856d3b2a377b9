from edgewise.ha.fsm import Role
from edgewise.ha.status import RoleStatus, assume_active, describe_role, format_metrics

STATUS = RoleStatus(Role.ACTIVE, 7, 1_500, "host:12")


def test_health_names_role_and_epoch_and_no_host():
    assert describe_role(STATUS) == {"role": "active", "epoch": 7, "since_ms": 1_500}


def test_metrics_have_a_line_for_each_role_and_one_of_them_is_set():
    lines = format_metrics(STATUS).splitlines()
    roles = [line for line in lines if line.startswith("edgewise_ha_role{")]
    assert len(roles) == len(Role)
    assert [line for line in roles if line.endswith(" 1")] == ['edgewise_ha_role{role="active"} 1']
    assert "edgewise_ha_epoch 7" in lines
    assert "edgewise_ha_role_since_seconds 1.5" in lines
    assert 'edgewise_ha_lease{holder="host:12"} 1' in lines


def test_a_node_without_an_election_is_active_under_no_epoch():
    assert describe_role(assume_active()) == {"role": "active", "epoch": 0, "since_ms": 0}
