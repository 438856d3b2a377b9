"""Derive what an event costs in a pattern as its open matches become many, for `explain`.

    constant                 matches are found by an equality, or all move at once
    logarithmic              they are found by order: `v > e1.v`
    grows with ...           something must be asked of each of them: what, and how to avoid it

An event pays besides for the rows and steps that it makes. `check` warns where the cost grows and
nothing bounds how many matches are open. Which index serves which condition is decided in
`pattern_conditions`, which kernels follow too.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.plan.nodes import (
    AbsentState,
    App,
    ChainState,
    CountState,
    EveryState,
    LogicalState,
    Query,
    State,
    StateInput,
    StateKind,
    StreamState,
)
from edgewise.plan.rules.pattern_conditions import ElementCondition, split_conditions
from edgewise.plan.text import show


@dataclass(frozen=True, slots=True)
class PatternCost:
    """`why` says what makes it grow, '' for nothing; `fix` how to write it otherwise."""

    text: str
    why: str = ""
    fix: str = ""


CONSTANT = PatternCost("constant for an event, however many matches are open")
LOGARITHMIC = PatternCost("logarithmic in open matches: found by order")


def derive_pattern_costs(app: App) -> dict[str, PatternCost]:
    """The cost of every pattern and sequence, by the name of its query."""
    return {
        q.name: _derive_cost(q, q.input) for q in app.queries if isinstance(q.input, StateInput)
    }


def _derive_cost(query: Query, source: StateInput) -> PatternCost:
    if source.kind is StateKind.SEQUENCE:
        return CONSTANT  # the next event moves a match on or ends it: one waits for each element
    growing = _find_growth(source.state)
    if growing is not None:
        why, fix = growing
        scope = " of its key" if query.partition else ""
        return PatternCost(f"grows with open matches{scope}: {why}; {fix}", why, fix)
    conditions = split_conditions(source.state)
    ordered = next((slot for slot, c in conditions.items() if c.bounds), "")
    if not ordered:
        return CONSTANT
    if _is_held_by_key(query, source, conditions):
        asked = show(conditions[ordered].cross[-1], ordered)
        why = f"of those with an equal key, '{asked}' is asked of each"
        fix = "'within' or @state(limit=...) keeps them few"
        return PatternCost(f"grows with open matches of one key: {why}; {fix}", why, fix)
    return LOGARITHMIC


def _is_held_by_key(
    query: Query, source: StateInput, conditions: dict[str, ElementCondition]
) -> bool:
    """Single events, each tied to one before it: few are asked, one by one."""
    match source.state:
        case ChainState(states=(EveryState(state=StreamState()), *rest)) if query.state is None:
            tied = query.partition or all(
                isinstance(s, StreamState) and conditions[s.slot].keys for s in rest
            )
            return bool(tied) and all(isinstance(s, StreamState) for s in rest)
    return False


def _find_growth(state: State) -> tuple[str, str] | None:
    """The first thing that must be asked of each open match, and what to write instead."""
    for slot, condition in split_conditions(state).items():
        if condition.rest:
            asked = show(condition.rest[0], slot)
            if condition.keys:
                return (
                    f"of those with an equal key, '{asked}' is asked of each",
                    "compare with <, <=, > or >= what is known of an earlier event",
                )
            return (
                f"'{asked}' is asked of each",
                "add an equality with an earlier event, or compare with <, <=, > or >=",
            )
    return next((found for part in _walk(state) if (found := _find_in_part(part))), None)


def _find_in_part(part: State) -> tuple[str, str] | None:
    match part:
        case CountState(state=inner, most=None):
            return (
                f"each takes every event of '{inner.slot}'",
                f"give the count an upper end, as in <{part.least}:10>",
            )
        case LogicalState(left=left, right=right):
            timed = [s for s in (left, right) if isinstance(s, AbsentState)]
            if timed:
                return (
                    "'not' beside 'and' or 'or' is asked of each",
                    "put 'not ... for' before or behind it with '->'",
                )
    return None


def _walk(state: State) -> list[State]:
    match state:
        case ChainState():
            return [p for s in state.states for p in _walk(s)]
        case EveryState():
            return _walk(state.state)
        case _:
            return [state]
