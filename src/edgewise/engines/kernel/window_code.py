"""From a window in the plan to the text that makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgewise.engines.kernel import aggregates, calls, java
from edgewise.engines.kernel.exprs import Code, Exprs
from edgewise.engines.kernel.names import Names, key_of
from edgewise.engines.kernel.page import Page, refuse
from edgewise.engines.kernel.windows import Test, TextTest
from edgewise.engines.kernel.writer import Writer
from edgewise.errors import AppError, BadEvent, Span
from edgewise.plan.exprs import Agg, Const, Expr, Field, SlotTime
from edgewise.plan.nodes import Window


def make_window(page: Page, window: Window, slot: str, names: Names, cell: int, span: Span) -> str:
    maker = MAKERS.get(window.name.lower())
    if maker is None:
        raise refuse(span, f"the window '{window.name}' is not known here")
    kind, args = maker(page, window, slot, names)
    return f"{kind}({', '.join([f'rt, {page.next_node}, {cell}', *args])})"


Made = tuple[str, list[str]]
TEST_SPACE: dict[str, Any] = {
    "agg": aggregates, "fn": calls, "java": java, "f32": java.f32,
}  # fmt: skip


def _arg(names: Names, arg: Expr) -> str:
    """A constant as itself, an attribute as its place in the row."""
    match arg:
        case Const():
            return repr(arg.value)
        case Field():
            return str(names.places[arg.slot, arg.name, None])
        case _:
            raise LookupError(f"a window takes constants and attributes, not {arg!r}")


def _plain(kind: str) -> Callable[[Page, Window, str, Names], Made]:
    def make(_page: Page, window: Window, _slot: str, names: Names) -> Made:
        return kind, [_arg(names, a) for a in window.args]

    return make


def _time_batch(_page: Page, window: Window, _slot: str, names: Names) -> Made:
    span, *rest = [_arg(names, a) for a in window.args]
    if rest and rest[0] in {"True", "False"}:
        return "bat.TimeBatch", [span, "None", *rest]
    return "bat.TimeBatch", [span, *rest]


def _external_batch(_page: Page, window: Window, _slot: str, names: Names) -> Made:
    args = [_arg(names, a) for a in window.args]
    if len(args) > 2:
        start = window.args[2]
        kind = "attribute" if isinstance(start, Field) else "time"
        args[2] = f"({kind!r}, {args[2]})"
    return "bat.ExternalTimeBatch", args


def _session(_page: Page, window: Window, _slot: str, names: Names) -> Made:
    args = [_arg(names, a) for a in window.args]
    if len(window.args) == 2 and isinstance(window.args[1], Const):
        args.insert(1, "None")
    return "ses.Session", args


def _sort(_page: Page, window: Window, _slot: str, names: Names) -> Made:
    n, *rest = window.args
    terms: list[list[str]] = []
    for arg in rest:
        if isinstance(arg, Const):
            terms[-1][1] = str(str(arg.value).lower() == "desc")
        else:
            terms.append([_arg(names, arg), "False"])
    return "win.Sort", [_arg(names, n), *(f"({place}, {down})" for place, down in terms)]


def _lossy(_page: Page, window: Window, _slot: str, names: Names) -> Made:
    args = [_arg(names, a) for a in window.args]
    if len(window.args) < 2 or not isinstance(window.args[1], Const):
        support = window.args[0]
        assert isinstance(support, Const)
        args.insert(1, repr(support.value / 10))
    return "win.LossyFrequent", args


def _expression(kind: str) -> Callable[[Page, Window, str, Names], Made]:
    def make(page: Page, window: Window, slot: str, names: Names) -> Made:
        rest = [_include(names, a) for a in window.args[1:]]
        if window.condition is not None:
            return kind, [_expression_test(page, window.condition, slot, names), *rest]
        place = _arg(names, window.args[0])
        name = f"read{len(page.readers_of_text)}"
        page.readers_of_text[name] = TextTest(_compile_text(window, slot, names), int(place))
        return kind, [name, *rest]

    return make


def _include(names: Names, arg: Expr) -> str:
    """A constant, or an attribute that says it for each event."""
    return repr(arg.value) if isinstance(arg, Const) else f"('attribute', {_arg(names, arg)})"


def _compile_text(window: Window, slot: str, names: Names) -> Callable[[str], Test]:
    def compile_text(text: str) -> Test:
        assert window.reader is not None
        w = Writer()
        try:
            name = write_test(w, "condition", window.reader(text), slot, names)
        except AppError as why:
            raise BadEvent(f"the condition '{text}' cannot be read: {why}") from why
        space = dict(TEST_SPACE)
        exec(compile(w.text(), "<condition>", "exec"), space)  # noqa: S102  our own text
        return space[name]  # type: ignore[no-any-return]

    return compile_text


def _expression_test(page: Page, condition: Expr, slot: str, names: Names) -> str:
    return write_test(page.writer, f"expression{page.next_node}", condition, slot, names)


def write_test(w: Writer, name: str, condition: Expr, slot: str, names: Names) -> str:
    """A function over what the window holds, its first and the newest, which is the last.

    Aggregates are folded over all of it.
    """

    def attribute(expr: Field) -> int:
        return names.places[slot, expr.name, None]

    def each(expr: Expr) -> Code:
        assert isinstance(expr, Field)
        return Code(f"r[{attribute(expr)}]")

    def resolve(expr: Expr) -> Code:
        match expr:
            case Agg():
                values = [Exprs(w, each).value(a) for a in expr.args] or ["True"]
                return Code(f"agg.fold({expr.name.lower()!r}, [{values[0]} for t, r in held])")
            case SlotTime():
                place = "first[0]" if expr.slot == "first" else "ts"
                return Code(place, nullable=False)
            case Field():
                held = "first[1]" if expr.slot == "first" else "row"
                return Code(f"{held}[{attribute(expr)}]")
            case _:
                raise LookupError(f"no value for {key_of(expr)}")

    text = Exprs(w, resolve).condition(condition)
    with w.block(f"def {name}(held, first, ts, row)"):
        w.line(f"return {text}")
    return name


IN_TURN = frozenset({"length", "time", "timelength", "externaltime"})  # first in, first out
# What each event lets out of these is a chunk of its own, whatever chunk it came in.
APART = frozenset({"lengthbatch", "batch", "expressionbatch"})
# These let current rows out last: [X] R [C].
BATCHES = frozenset({"lengthbatch", "timebatch", "externaltimebatch", "batch"})

# In a join that wants no X these never forget what they let out.
KEEPERS = frozenset({"lengthbatch", "timebatch"})

MAKERS: dict[str, Callable[[Page, Window, str, Names], Made]] = {
    "nothing": _plain("win.Nothing"),
    "length": _plain("win.Length"),
    "time": _plain("win.Time"),
    "timelength": _plain("win.Time"),
    "externaltime": _plain("win.ExternalTime"),
    "delay": _plain("win.Delay"),
    "sort": _sort,
    "session": _session,
    "frequent": _plain("win.Frequent"),
    "lossyfrequent": _lossy,
    "expression": _expression("win.Expression"),
    "lengthbatch": _plain("bat.LengthBatch"),
    "timebatch": _time_batch,
    "externaltimebatch": _external_batch,
    "batch": _plain("bat.ChunkBatch"),
    "cron": _plain("bat.CronBatch"),
    "hopping": _plain("bat.Hopping"),
    "expressionbatch": _expression("bat.ExpressionBatch"),
}
