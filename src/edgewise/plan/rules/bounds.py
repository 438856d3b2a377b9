"""What limits the state of a query: shown by `explain`, warned about where nothing does."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.plan.durations import spell
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
from edgewise.plan.rules.keys import aggregates
from edgewise.plan.windows import WINDOWS


@dataclass(frozen=True, slots=True)
class Bound:
    """`text` says how much is kept; `why` what makes it grow without end, '' for nothing."""

    text: str
    why: str = ""


NOTHING = Bound("none")
ENDLESS = "'every' starts a match that nothing ends"


def bounds(app: App) -> dict[str, Bound]:
    """The state of every query by its name, of one key where its partition has many."""
    partitions = {p.name: p for p in app.partitions}
    return {q.name: _bound(q, partitions.get(q.partition)) for q in app.queries}


def _bound(query: Query, partition: Partition | None) -> Bound:
    found = _inside(query)
    if partition is None or found == NOTHING:
        return found
    if partition.state is not None:
        return Bound(f"{found.text}, per key{_limited(partition.state, 'keys')}", found.why)
    return Bound(f"{found.text}, per key", found.why or "keys of the partition are never freed")


def _limited(state: StateLimit, what: str) -> str:
    most = f", at most {state.limit} {what}" if state.limit is not None else ""
    return most + (
        f", freed when idle {spell(state.idle_ms)}" if state.idle_ms is not None else ""
    )


def _inside(query: Query) -> Bound:
    match query.input:
        case StreamInput():
            return _stream(query, query.input)
        case JoinInput():
            left, right = _side(query.input.left), _side(query.input.right)
            return Bound(f"{left.text}; {right.text}", left.why or right.why)
        case StateInput():
            found = _pattern(query.input)
            if query.state is None:
                return found
            text = found.text + _limited(query.state, "matches")
            return Bound(text, "" if found.why == ENDLESS else found.why)


def _stream(query: Query, source: StreamInput) -> Bound:
    if source.window is not None:
        return _window(source.window)
    if aggregates(query):
        grouped = ", ".join(f.name for f in query.select.group_by)
        return Bound(f"one row per {grouped}" if grouped else "one row")
    return NOTHING


def _window(window: Window) -> Bound:
    spec = WINDOWS[window.name.lower()]
    constants = [a.value for a in window.args if isinstance(a, Const)]
    whole = [c for c in constants if isinstance(c, int) and not isinstance(c, bool)]
    if spec.bounded == "time" and whole:
        return Bound(f"events of {spell(whole[0])}")
    if window.name == "timeLength" and len(whole) > 1:
        return Bound(f"{whole[1]} events of {spell(whole[0])}")
    if spec.bounded == "events":
        return Bound(f"{whole[0]} events" if whole else "one batch")
    return Bound(f"events of one {window.name} window")


def _side(side: JoinSide) -> Bound:
    if side.kind is not StoreKind.STREAM:
        return Bound(f"{side.kind.value} {side.input.stream}")
    if side.input.window is None:
        return Bound(f"nothing of {side.input.slot}")
    return _window(side.input.window)


def _pattern(pattern: StateInput) -> Bound:
    if pattern.within_ms is not None:
        return Bound(f"partial matches of {spell(pattern.within_ms)}")
    if pattern.kind is StateKind.SEQUENCE:
        return Bound("the matches that may still go on", _endless(pattern.state, every=False))
    waits = _only_waits(pattern.state)
    if waits is not None:
        return Bound(f"partial matches of {spell(waits)}")
    text = "partial matches" if _repeats(pattern.state) else "one partial match"
    return Bound(text, _endless(pattern.state, every=True))


def _only_waits(state: State) -> int | None:
    """How long a match lives that, after its first event, only waits for absences."""
    first, *rest = state.states if isinstance(state, ChainState) else (state,)
    if not isinstance(first, EveryState) or not isinstance(first.state, StreamState):
        return None
    waits = [s.waiting_ms for s in rest if isinstance(s, AbsentState) and s.waiting_ms]
    return sum(waits) if waits and len(waits) == len(rest) else None


def _endless(state: State, *, every: bool) -> str:
    """What keeps collecting for ever without `within`."""
    for node in _walk(state):
        if every and isinstance(node, EveryState):
            return ENDLESS
        if isinstance(node, CountState) and node.most is None:
            return "a count without an upper end collects events"
    return ""


def _repeats(state: State) -> bool:
    return any(isinstance(node, EveryState) for node in _walk(state))


def _walk(state: State) -> list[State]:
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
