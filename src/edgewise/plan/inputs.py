"""Define what a query reads: one stream, two joined, or a pattern of states.

Names of streams carry their prefix: `S`, `#S` (inner to a partition), `!S` (faults of S).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from edgewise.event.schema import Attribute
from edgewise.plan.exprs import Expr
from edgewise.plan.procedures import Procedure


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expr


@dataclass(frozen=True, slots=True)
class StreamCall:
    """A stream function, such as `pol2Cart`, that appends attributes to each event.

    A `procedure` is one of the user's own, with state; then there are no arguments. An `operator`
    is a stream processor: it keeps state, and may give several rows, none, or some later.
    """

    name: str
    args: tuple[Expr, ...]
    adds: tuple[Attribute, ...] = ()
    procedure: Procedure | None = field(default=None, repr=False)
    operator: bool = False


Handler: TypeAlias = Filter | StreamCall


@dataclass(frozen=True, slots=True)
class Window:
    """`name` as in the language (`time`, `lengthBatch`); args are typed, times are LONG ms.

    An `expression` window has the text of its expression as a string argument, and `condition`
    holds it lowered: over the slots `first`, `last` and the window's own, with aggregates. Where
    the text is an attribute of each event, `reader` lowers what an event brings; AppError where
    that is no condition.
    """

    name: str
    args: tuple[Expr, ...]
    condition: Expr | None = None
    reader: Callable[[str], Expr] | None = None


@dataclass(frozen=True, slots=True)
class StreamInput:
    """`stream[before]#window[after]`: filters before limit what enters, after what leaves.

    `stream` may name a stream or a named window.
    """

    stream: str
    slot: str
    before: tuple[Handler, ...] = ()
    window: Window | None = None
    after: tuple[Handler, ...] = ()


class StoreKind(enum.Enum):
    """What a side of a join is. Tables and aggregations are only looked into, never trigger."""

    STREAM = "stream"
    WINDOW = "window"
    TABLE = "table"
    AGGREGATION = "aggregation"


class JoinKind(enum.Enum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class JoinSide:
    """`triggers`: its events probe the other side."""

    input: StreamInput
    kind: StoreKind = StoreKind.STREAM
    triggers: bool = True


@dataclass(frozen=True, slots=True)
class JoinInput:
    """`within` and `per` only with an aggregation; `on` None joins everything."""

    left: JoinSide
    right: JoinSide
    kind: JoinKind = JoinKind.INNER
    on: Expr | None = None
    within: tuple[Expr, ...] = ()
    per: Expr | None = None


# Patterns and sequences: a tree of states.


@dataclass(frozen=True, slots=True)
class StreamState:
    """One event of a stream. `slot` is its reference, or `@0`, `@1` by place where unnamed."""

    slot: str
    stream: str
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class CountState:
    """`least` to `most` events; most None has no end."""

    state: StreamState
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class AbsentState:
    """No such event, for `waiting_ms`; None (only beside `and`): until the other side is met."""

    slot: str
    stream: str
    handlers: tuple[Handler, ...] = ()
    waiting_ms: int | None = None


@dataclass(frozen=True, slots=True)
class LogicalState:
    """`op` is and, or."""

    op: str
    left: StreamState | AbsentState
    right: StreamState | AbsentState


@dataclass(frozen=True, slots=True)
class EveryState:
    """Starts anew for each match of what is inside."""

    state: State


@dataclass(frozen=True, slots=True)
class ChainState:
    """One after the other; two or more, none of them a chain."""

    states: tuple[State, ...]


State: TypeAlias = StreamState | CountState | AbsentState | LogicalState | EveryState | ChainState


class StateKind(enum.Enum):
    PATTERN = "pattern"
    SEQUENCE = "sequence"


@dataclass(frozen=True, slots=True)
class StateInput:
    """`within_ms` bounds the time from the first event of a match to its last."""

    kind: StateKind
    state: State
    within_ms: int | None = None


QueryInput: TypeAlias = StreamInput | JoinInput | StateInput


def state_leaves(state: State) -> tuple[StreamState | AbsentState, ...]:
    """The single elements in the order they are written: the order of the slots."""
    match state:
        case StreamState() | AbsentState():
            return (state,)
        case CountState() | EveryState():
            return state_leaves(state.state)
        case LogicalState():
            return (state.left, state.right)
        case ChainState():
            return tuple(leaf for each in state.states for leaf in state_leaves(each))


def handlers_of(query_input: QueryInput) -> tuple[Handler, ...]:
    """Every filter and stream function, in the order they are written."""
    match query_input:
        case StreamInput():
            return (*query_input.before, *query_input.after)
        case JoinInput():
            sides = (query_input.left.input, query_input.right.input)
            return tuple(h for side in sides for h in (*side.before, *side.after))
        case StateInput():
            return tuple(h for leaf in state_leaves(query_input.state) for h in leaf.handlers)


def windows_of(query_input: QueryInput) -> tuple[Window, ...]:
    match query_input:
        case StreamInput():
            return () if query_input.window is None else (query_input.window,)
        case JoinInput():
            return (*windows_of(query_input.left.input), *windows_of(query_input.right.input))
        case StateInput():
            return ()


def slots_of(query_input: QueryInput) -> dict[str, str]:
    """The stream (or store) behind each slot."""
    match query_input:
        case StreamInput():
            return {query_input.slot: query_input.stream}
        case JoinInput():
            sides = (query_input.left.input, query_input.right.input)
            return {side.slot: side.stream for side in sides}
        case StateInput():
            return {leaf.slot: leaf.stream for leaf in state_leaves(query_input.state)}


def streams_of(query_input: QueryInput) -> tuple[str, ...]:
    """Every stream, window, table or aggregation that is read, once, in order."""
    return tuple(dict.fromkeys(slots_of(query_input).values()))
