"""How each query survives: what it may promise, and whether its sinks promise more.

The plan knows how a query answers when it is fed again, `ha` knows what each kind of recovery
needs; here they meet. Engines do precise recovery, whatever is declared, as long as the log has
what they need for it; where it has not, the declaration says what to do (`start_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgewise.engines.inputs import Inputs
from edgewise.errors import Problem, RecoveryError
from edgewise.event.position import Position
from edgewise.ha.recovery import (
    STATEMENTS,
    Found,
    Recovery,
    RecoveryPlan,
    plan_recovery,
    why_not,
)
from edgewise.plan.nodes import App, InsertInto, Query
from edgewise.plan.rules.repeat import Repeats, repeats

DEFAULT = Recovery.GAP


def notes(app: App) -> dict[str, tuple[str, ...]]:
    """For `explain`: by name of query, its class and what its sinks declare."""
    found, sinks = repeats(app), declared(app)
    return {q.name: _notes(_kinds(sinks, q), found[q.name]) for q in app.queries}


def problems(app: App) -> tuple[Problem, ...]:
    """For `check`: sinks that declare what their queries cannot keep."""
    found, sinks = repeats(app), declared(app)
    return tuple(
        Problem(query.span, f"{reason} ({found[query.name].why})")
        for query in app.queries
        for kind in _kinds(sinks, query)
        if (reason := why_not(kind, found[query.name].level))
    )


Declared = dict[str, tuple[Recovery, ...]]  # by name of stream


def declared(app: App) -> Declared:
    """What the sinks of each stream declare; words that are no kind are not for here."""
    known = {kind.value: kind for kind in Recovery}
    found: Declared = {}
    for stream in app.streams:
        words = [sink.get("recovery", DEFAULT.value) for sink in stream.annotated("sink")]
        found[stream.name] = tuple(known[word] for word in words if word in known)
    return found


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


def _kinds(sinks: Declared, query: Query) -> tuple[Recovery, ...]:
    return sinks.get(query.output.target, ()) if isinstance(query.output, InsertInto) else ()


def _notes(kinds: tuple[Recovery, ...], found: Repeats) -> tuple[str, ...]:
    why = f": {found.why}" if found.why else ""
    lines = [f"fed again it is {found.level.name.lower()}{why}"]
    lines += [f"recovery {k.value}: {STATEMENTS[k].rows}" for k in kinds]
    return tuple(lines)
