"""Write plan expressions and inputs as SiddhiQL, for `explain` and for messages."""

from __future__ import annotations

from edgewise.event.types import AttrType
from edgewise.plan.durations import format_duration
from edgewise.plan.exprs import (
    Agg,
    And,
    Arith,
    Call,
    Compare,
    Const,
    Expr,
    Field,
    InTable,
    IsNull,
    Not,
    Or,
    OutField,
    SlotIsNull,
    SlotTime,
)
from edgewise.plan.nodes import (
    AbsentState,
    ChainState,
    CountState,
    EveryState,
    Filter,
    Handler,
    JoinInput,
    LogicalState,
    QueryInput,
    State,
    StateInput,
    StateKind,
    StreamInput,
    StreamState,
    Window,
)

OR, AND, IN, EQUALITY, ORDER, SUM, PRODUCT, NOT, ATOM = range(9)
LEVELS = {
    **dict.fromkeys(("==", "!="), EQUALITY),
    **dict.fromkeys(("<", "<=", ">", ">="), ORDER),
    **dict.fromkeys(("+", "-"), SUM),
    **dict.fromkeys(("*", "/", "%"), PRODUCT),
}
SUFFIXES = {AttrType.LONG: "L", AttrType.FLOAT: "f", AttrType.DOUBLE: ""}


def show(expr: Expr, own: str = "") -> str:
    """The expression as text; attributes of the slot `own` stand without its name."""
    return _show(expr, own)[0]


def _show(expr: Expr, own: str) -> tuple[str, int]:
    match expr:
        case Const():
            return _show_constant(expr), ATOM
        case Field():
            return _show_field(expr, own), ATOM
        case OutField():
            return expr.name, ATOM
        case Arith() | Compare():
            level = LEVELS[expr.op]
            left, right = (
                _show_operand(expr.left, level, own),
                _show_operand(expr.right, level + 1, own),
            )
            return f"{left} {expr.op} {right}", level
        case And() | Or() | Not() | InTable():
            return _show_logic(expr, own)
        case IsNull():
            return f"{_show_operand(expr.operand, ATOM, own)} is null", NOT
        case SlotIsNull():
            return f"{expr.slot}{_show_index(expr.index)} is null", NOT
        case SlotTime():
            return f"eventTimestamp({expr.slot})", ATOM
        case Call() | Agg():
            return f"{expr.name}({', '.join(show(a, own) for a in expr.args)})", ATOM


def _show_logic(expr: And | Or | Not | InTable, own: str) -> tuple[str, int]:
    match expr:
        case And():
            return (
                f"{_show_operand(expr.left, AND, own)} and {_show_operand(expr.right, AND, own)}",
                AND,
            )
        case Or():
            return (
                f"{_show_operand(expr.left, OR, own)} or {_show_operand(expr.right, OR, own)}",
                OR,
            )
        case Not():
            return f"not {_show_operand(expr.operand, NOT, own)}", NOT
        case InTable():
            return f"{_show_operand(expr.condition, EQUALITY, own)} in {expr.table}", IN


def _show_operand(expr: Expr, level: int, own: str) -> str:
    text, found = _show(expr, own)
    return text if found >= level else f"({text})"


def _show_constant(const: Const) -> str:
    if const.type is AttrType.STRING:
        return f"'{const.value}'"
    if const.type is AttrType.BOOL:
        return "true" if const.value else "false"
    return f"{const.value}{SUFFIXES.get(const.type, '')}"


def _show_field(field: Field, own: str) -> str:
    if field.slot == own and field.index is None:
        return field.name
    return f"{field.slot}{_show_index(field.index)}.{field.name}"


def _show_index(index: int | None) -> str:
    if index is None:
        return ""
    if index >= 0:
        return f"[{index}]"
    return "[last]" if index == -1 else f"[last{index + 1}]"


def show_input(query_input: QueryInput) -> str:
    match query_input:
        case StreamInput():
            return _show_stream(query_input)
        case JoinInput():
            kind = query_input.kind.value
            word = "join" if kind == "inner" else f"{kind} outer join"
            sides = [_show_side(s.input) for s in (query_input.left, query_input.right)]
            on = f" on {show(query_input.on)}" if query_input.on is not None else ""
            return f"{sides[0]} {word} {sides[1]}{on}"
        case StateInput():
            separator = " -> " if query_input.kind is StateKind.PATTERN else ", "
            within = query_input.within_ms
            end = f" within {format_duration(within)}" if within is not None else ""
            return _show_state(query_input.state, separator) + end


def _show_stream(source: StreamInput) -> str:
    before = _show_handlers(source.before, source.slot)
    window = _show_window(source.window, source.slot) if source.window else ""
    return f"{source.stream}{before}{window}{_show_handlers(source.after, source.slot)}"


def _show_side(source: StreamInput) -> str:
    alias = f" as {source.slot}" if source.slot != source.stream else ""
    return _show_stream(source) + alias


def _show_handlers(handlers: tuple[Handler, ...], slot: str) -> str:
    return "".join(
        f"[{show(h.condition, slot)}]"
        if isinstance(h, Filter)
        else f"#{h.name}({', '.join(show(a, slot) for a in h.args)})"
        for h in handlers
    )


def _show_window(window: Window, slot: str) -> str:
    args = [
        format_duration(a.value)
        if isinstance(a, Const) and a.type is AttrType.LONG
        else show(a, slot)
        for a in window.args
    ]
    return f"#window.{window.name}({', '.join(args)})"


def _show_state(state: State, separator: str) -> str:
    match state:
        case StreamState():
            ref = "" if state.slot.startswith("@") else f"{state.slot}="
            return f"{ref}{state.stream}{_show_handlers(state.handlers, state.slot)}"
        case CountState():
            most = "" if state.most is None else state.most
            count = f"{state.least}" if state.least == state.most else f"{state.least}:{most}"
            return f"{_show_state(state.state, separator)}<{count}>"
        case AbsentState():
            waiting = (
                f" for {format_duration(state.waiting_ms)}" if state.waiting_ms is not None else ""
            )
            return f"not {state.stream}{_show_handlers(state.handlers, state.slot)}{waiting}"
        case LogicalState():
            left = _show_state(state.left, separator)
            return f"{left} {state.op} {_show_state(state.right, separator)}"
        case EveryState():
            inner = _show_state(state.state, separator)
            return f"every ({inner})" if isinstance(state.state, ChainState) else f"every {inner}"
        case ChainState():
            return separator.join(_show_state(s, separator) for s in state.states)
