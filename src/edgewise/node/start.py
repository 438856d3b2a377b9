"""Where an engine goes on when it starts.

Engines do precise recovery, whatever is declared, as long as the log has what they need for it;
where it has not, the declaration says what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgewise.engines.inputs import Inputs
from edgewise.errors import RecoveryError
from edgewise.event.position import Position
from edgewise.ha.recovery import Found, Recovery, RecoveryPlan, plan_recovery
from edgewise.node.recovery import declared
from edgewise.plan.nodes import App


@dataclass(frozen=True, slots=True)
class Start:
    """What an engine does first, by name of input; `why` the state it has is of no use, if so."""

    plans: Mapping[str, RecoveryPlan]
    why: str = ""

    @property
    def heads(self) -> dict[str, int]:
        return {name: plan.replay_end for name, plan in self.plans.items()}

    def lines(self) -> list[str]:
        """For the terminal."""
        return [*([self.why] if self.why else []), *(f"{n}: {p}" for n, p in self.plans.items())]


def start_of(app: App, inputs: Inputs, reached: Mapping[str, int]) -> Start:
    """Where an engine that has `reached` these offsets goes on.

    RecoveryError where the log cannot give what a sink declares.
    """
    found = {
        name: Found(
            inputs.reader(name).earliest(),
            inputs.reader(name).head(),
            Position(0, reached[name]) if name in reached else None,
        )
        for name in inputs.paths
    }
    known = {name: f for name, f in found.items() if f.checkpoint is not None}
    try:
        return Start({name: plan_recovery(Recovery.PRECISE, f) for name, f in known.items()})
    except RecoveryError as error:
        kinds = {kind for kinds in declared(app).values() for kind in kinds}
        for kind in (Recovery.PRECISE, Recovery.ROLLBACK):
            if kind in kinds:
                for f in known.values():
                    plan_recovery(kind, f)  # says it in the words of what was declared
        plans = {name: plan_recovery(Recovery.GAP, f) for name, f in found.items()}
        return Start(plans, f"what was processed last cannot be gone on with: {error}")
