"""Derive what bounds the state of each query, for `explain` and for warnings."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.plan.durations import format_duration
from edgewise.plan.exprs import Const
from edgewise.plan.nodes import (
    AbsentState,
    App,
    ChainState,
    CountState,
    EveryState,
    JoinInput,
    JoinSide,
    Partition,
    Query,
    State,
    StateInput,
    StateKind,
    StateLimit,
    StoreKind,
    StreamInput,
    StreamState,
    Window,
)
from edgewise.plan.rules.keys import has_aggregates
from edgewise.plan.windows import WINDOWS


@dataclass(frozen=True, slots=True)
class StateBound:
    """`text` says how much is kept; `why` what makes it grow without end, '' for nothing."""

    text: str
    why: str = ""


NOTHING = StateBound("none")
ENDLESS = "'every' starts a match that nothing ends"


def derive_state_bounds(app: App) -> dict[str, StateBound]:
    """The state of every query by its name, of one key where its partition has many."""
    partitions = {p.name: p for p in app.partitions}
    return {q.name: _derive_query_bound(q, partitions.get(q.partition)) for q in app.queries}


def _derive_query_bound(query: Query, partition: Partition | None) -> StateBound:
    found = _bound_of_input(query)
    if partition is None or found == NOTHING:
        return found
    if partition.state is not None:
        return StateBound(
            f"{found.text}, per key{_describe_limit(partition.state, 'keys')}", found.why
        )
    return StateBound(
        f"{found.text}, per key", found.why or "keys of the partition are never freed"
    )


def _describe_limit(state: StateLimit, what: str) -> str:
    most = f", at most {state.limit} {what}" if state.limit is not None else ""
    return most + (
        f", freed when idle {format_duration(state.idle_ms)}" if state.idle_ms is not None else ""
    )


def _bound_of_input(query: Query) -> StateBound:
    match query.input:
        case StreamInput():
            return _bound_of_stream(query, query.input)
        case JoinInput():
            left, right = (
                _bound_of_join_side(query.input.left),
                _bound_of_join_side(query.input.right),
            )
            return StateBound(f"{left.text}; {right.text}", left.why or right.why)
        case StateInput():
            found = _bound_of_pattern(query.input)
            if query.state is None:
                return found
            text = found.text + _describe_limit(query.state, "matches")
            return StateBound(text, "" if found.why == ENDLESS else found.why)


def _bound_of_stream(query: Query, source: StreamInput) -> StateBound:
    if source.window is not None:
        return _bound_of_window(source.window)
    if has_aggregates(query):
        grouped = ", ".join(f.name for f in query.select.group_by)
        return StateBound(f"one row per {grouped}" if grouped else "one row")
    return NOTHING


def _bound_of_window(window: Window) -> StateBound:
    spec = WINDOWS[window.name.lower()]
    constants = [a.value for a in window.args if isinstance(a, Const)]
    whole = [c for c in constants if isinstance(c, int) and not isinstance(c, bool)]
    if spec.bounded == "time" and whole:
        return StateBound(f"events of {format_duration(whole[0])}")
    if window.name == "timeLength" and len(whole) > 1:
        return StateBound(f"{whole[1]} events of {format_duration(whole[0])}")
    if spec.bounded == "events":
        return StateBound(f"{whole[0]} events" if whole else "one batch")
    return StateBound(f"events of one {window.name} window")


def _bound_of_join_side(side: JoinSide) -> StateBound:
    if side.kind is not StoreKind.STREAM:
        return StateBound(f"{side.kind.value} {side.input.stream}")
    if side.input.window is None:
        return StateBound(f"nothing of {side.input.slot}")
    return _bound_of_window(side.input.window)


def _bound_of_pattern(pattern: StateInput) -> StateBound:
    if pattern.within_ms is not None:
        return StateBound(f"partial matches of {format_duration(pattern.within_ms)}")
    if pattern.kind is StateKind.SEQUENCE:
        return StateBound(
            "the matches that may still go on", _explain_endless_growth(pattern.state, every=False)
        )
    waits = _absence_lifetime_ms(pattern.state)
    if waits is not None:
        return StateBound(f"partial matches of {format_duration(waits)}")
    text = "partial matches" if _restarts(pattern.state) else "one partial match"
    return StateBound(text, _explain_endless_growth(pattern.state, every=True))


def _absence_lifetime_ms(state: State) -> int | None:
    """How long a match lives that, after its first event, only waits for absences."""
    first, *rest = state.states if isinstance(state, ChainState) else (state,)
    if not isinstance(first, EveryState) or not isinstance(first.state, StreamState):
        return None
    waits = [s.waiting_ms for s in rest if isinstance(s, AbsentState) and s.waiting_ms]
    return sum(waits) if waits and len(waits) == len(rest) else None


def _explain_endless_growth(state: State, *, every: bool) -> str:
    """What keeps collecting for ever without `within`."""
    for node in _walk_states(state):
        if every and isinstance(node, EveryState):
            return ENDLESS
        if isinstance(node, CountState) and node.most is None:
            return "a count without an upper end collects events"
    return ""


def _restarts(state: State) -> bool:
    return any(isinstance(node, EveryState) for node in _walk_states(state))


def _walk_states(state: State) -> list[State]:
    found: list[State] = []
    pending: list[State] = [state]
    while pending:
        node = pending.pop()
        found.append(node)
        if isinstance(node, EveryState):
            pending.append(node.state)
        elif isinstance(node, ChainState):
            pending.extend(reversed(node.states))
    return found
