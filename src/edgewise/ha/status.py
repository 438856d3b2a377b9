"""Format the role of a node for `/healthz` and `/metrics`. Pure.

A load balancer needs the role and the epoch, an operator also who has the lease. `/healthz`
answers everybody, so it names no host. `node/run.py` passes the status of its `StandbyLoop`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgewise.ha.fsm import Role
from edgewise.log.lease import EPOCH_NONE


@dataclass(frozen=True, slots=True)
class RoleStatus:
    """What the node does, under which epoch, since when (ms since 1970), and who has the lease."""

    role: Role
    epoch: int
    since_ms: int
    holder: str


def assume_active() -> RoleStatus:
    """Of a node that takes no part in an election."""
    return RoleStatus(Role.ACTIVE, EPOCH_NONE, 0, "")


def describe_role(status: RoleStatus) -> dict[str, Any]:
    """For the body of `/healthz`."""
    return {
        "role": status.role.name.lower(),
        "epoch": status.epoch,
        "since_ms": status.since_ms,
    }


def format_metrics(status: RoleStatus) -> str:
    """Lines for Prometheus; every role has its line, so that a change is seen as 0 and 1."""
    lines = [
        "# HELP edgewise_ha_role 1 for the role of this node.",
        "# TYPE edgewise_ha_role gauge",
    ]
    for role in Role:
        now = int(role is status.role)
        lines.append(f'edgewise_ha_role{{role="{role.name.lower()}"}} {now}')
    gauges = (
        ("epoch", "The epoch under which this node writes, 0 for none.", status.epoch),
        ("role_since_seconds", "When the role began, since 1970.", status.since_ms / 1000),
    )
    for name, meaning, value in gauges:
        lines += [f"# HELP edgewise_ha_{name} {meaning}", f"# TYPE edgewise_ha_{name} gauge"]
        lines.append(f"edgewise_ha_{name} {value}")
    lines += [
        "# HELP edgewise_ha_lease The holder of the lease, as this node knows it.",
        "# TYPE edgewise_ha_lease gauge",
        f'edgewise_ha_lease{{holder="{status.holder}"}} {int(bool(status.holder))}',
    ]
    return "".join(f"{line}\n" for line in lines)
