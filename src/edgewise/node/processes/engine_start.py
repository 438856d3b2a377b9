"""Plan where an engine continues when it starts.

Engines recover precisely, whatever is declared, as long as the log has the events they need; where
it has not, the declared recovery decides. Used by `engine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgewise.engines.batch.inputs import InputLogs
from edgewise.errors import RecoveryError
from edgewise.event.position import Position
from edgewise.ha.recovery import Found, Recovery, RecoveryPlan, plan_recovery
from edgewise.node.app.declared_recovery import read_recovery
from edgewise.plan.nodes import App


@dataclass(frozen=True, slots=True)
class EngineStart:
    """A plan for each input; `why` says why the old state cannot be used, '' where it can."""

    plans: Mapping[str, RecoveryPlan]
    why: str = ""

    @property
    def starts(self) -> dict[str, int]:
        """Where an engine without its old state begins."""
        return {name: plan.replay_start for name, plan in self.plans.items()}

    def describe(self) -> list[str]:
        """Lines for the terminal."""
        return [*([self.why] if self.why else []), *(f"{n}: {p}" for n, p in self.plans.items())]


def plan_start(app: App, inputs: InputLogs, reached: Mapping[str, int]) -> EngineStart:
    """Where an engine that has processed up to the offsets `reached` continues.

    RecoveryError where the log has not what a declared recovery needs.
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
        return EngineStart({name: plan_recovery(Recovery.PRECISE, f) for name, f in known.items()})
    except RecoveryError as error:
        kinds = {kind for kinds in read_recovery(app).values() for kind in kinds}
        for kind in (Recovery.PRECISE, Recovery.REPEATING, Recovery.DIVERGENT):
            if kind in kinds:
                for f in known.values():
                    plan_recovery(kind, f)  # raises, with a message about the declared kind
        least = Recovery.CONVERGENT if Recovery.CONVERGENT in kinds else Recovery.GAP
        plans = {name: plan_recovery(least, f) for name, f in found.items()}
        return EngineStart(plans, f"the engine cannot continue from its checkpoint: {error}")
