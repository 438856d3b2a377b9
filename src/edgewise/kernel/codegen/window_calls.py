"""Write the call that creates the operator of a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgewise.errors import AppError, BadEvent, Span
from edgewise.kernel.codegen import aggregates
from edgewise.kernel.codegen.code_writer import CodeWriter
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder, refuse
from edgewise.kernel.codegen.function_binding import aggregate_name
from edgewise.kernel.codegen.row_layout import RowLayout, key_of
from edgewise.kernel.functions import calls, java
from edgewise.kernel.operators.sliding_windows import Test, TextTest
from edgewise.kernel.runtime import Runtime
from edgewise.plan.exprs import Agg, Const, Expr, Field, SlotTime
from edgewise.plan.nodes import Window


def make_window(
    builder: FragmentBuilder, window: Window, slot: str, names: RowLayout, cell: int, span: Span
) -> str:
    maker = MAKERS.get(window.name.lower())
    if maker is None:
        raise refuse(span, f"the window '{window.name}' is not known here")
    kind, args = maker(builder, window, slot, names)
    return f"{kind}({', '.join([f'rt, {builder.next_node}, {cell}', *args])})"


WindowCall = tuple[str, list[str]]
TEST_SPACE: dict[str, Any] = {
    "agg": aggregates, "fn": calls, "java": java, "f32": java.f32,
}  # fmt: skip


def _arg(names: RowLayout, arg: Expr) -> str:
    """A constant as itself, an attribute as its position in the row."""
    match arg:
        case Const():
            return repr(arg.value)
        case Field():
            return str(names.positions[arg.slot, arg.name, None])
        case _:
            raise LookupError(f"a window takes constants and attributes, not {arg!r}")


def _plain(
    kind: str, *, before: str = "", after: str = ""
) -> Callable[[FragmentBuilder, Window, str, RowLayout], WindowCall]:
    """Its arguments as they are, between settings of its own."""

    def make(
        _builder: FragmentBuilder, window: Window, _slot: str, names: RowLayout
    ) -> WindowCall:
        args = [_arg(names, a) for a in window.args]
        return kind, [*filter(None, [before]), *args, *filter(None, [after])]

    return make


def _time_batch(
    _builder: FragmentBuilder, window: Window, _slot: str, names: RowLayout
) -> WindowCall:
    span, *rest = [_arg(names, a) for a in window.args]
    if rest and rest[0] in {"True", "False"}:
        return "bat.TimeBatch", [span, "None", *rest]
    return "bat.TimeBatch", [span, *rest]


def _external_batch(
    _builder: FragmentBuilder, window: Window, _slot: str, names: RowLayout
) -> WindowCall:
    """A start is a time, or an attribute of the first event; with a key one argument later."""
    args = [_arg(names, a) for a in window.args]
    keyed = window.name.lower().startswith("unique:")
    at = 3 if keyed else 2
    if len(args) > at:
        kind = "attribute" if isinstance(window.args[at], Field) else "time"
        args[at] = f"({kind!r}, {args[at]})"
    return f"{'uni.Unique' if keyed else 'etb.'}ExternalTimeBatch", args


def _session(
    _builder: FragmentBuilder, window: Window, _slot: str, names: RowLayout
) -> WindowCall:
    args = [_arg(names, a) for a in window.args]
    if len(window.args) == 2 and isinstance(window.args[1], Const):
        args.insert(1, "None")
    return "ses.SessionWindow", args


def _sort(_builder: FragmentBuilder, window: Window, _slot: str, names: RowLayout) -> WindowCall:
    n, *rest = window.args
    terms: list[list[str]] = []
    for arg in rest:
        if isinstance(arg, Const):
            terms[-1][1] = str(str(arg.value).lower() == "desc")
        else:
            terms.append([_arg(names, arg), "False"])
    return "win.Sort", [_arg(names, n), *(f"({position}, {down})" for position, down in terms)]


def _lossy(_builder: FragmentBuilder, window: Window, _slot: str, names: RowLayout) -> WindowCall:
    args = [_arg(names, a) for a in window.args]
    if len(window.args) < 2 or not isinstance(window.args[1], Const):
        support = window.args[0]
        assert isinstance(support, Const)
        args.insert(1, repr(support.value / 10))
    return "win.LossyFrequent", args


def _expression(kind: str) -> Callable[[FragmentBuilder, Window, str, RowLayout], WindowCall]:
    def make(builder: FragmentBuilder, window: Window, slot: str, names: RowLayout) -> WindowCall:
        rest = [_include(names, a) for a in window.args[1:]]
        if window.condition is not None:
            return kind, [_expression_test(builder, window.condition, slot, names), *rest]
        position = int(_arg(names, window.args[0]))

        def read_text(rt: Runtime) -> TextTest:
            return TextTest(_compile_text(rt, window, slot, names), position)

        name = builder.writer.bind(("read text", builder.next_node), "read_text", read_text)
        return kind, [f"{name}(rt)", *rest]

    return make


def _include(names: RowLayout, arg: Expr) -> str:
    """A constant, or an attribute that says it for each event."""
    return repr(arg.value) if isinstance(arg, Const) else f"('attribute', {_arg(names, arg)})"


def _compile_text(
    rt: Runtime, window: Window, slot: str, names: RowLayout
) -> Callable[[str], Test]:
    def compile_text(text: str) -> Test:
        assert window.reader is not None
        w = CodeWriter()
        try:
            name = write_test(w, "condition", window.reader(text), slot, names)
        except AppError as why:
            raise BadEvent(f"the condition '{text}' cannot be read: {why}") from why
        space = {**TEST_SPACE, **w.bound, "rt": rt}
        exec(compile(w.text(), "<condition>", "exec"), space)  # noqa: S102  our own text
        return space[name]  # type: ignore[no-any-return]

    return compile_text


def _expression_test(
    builder: FragmentBuilder, condition: Expr, slot: str, names: RowLayout
) -> str:
    return write_test(builder.writer, f"expression{builder.next_node}", condition, slot, names)


def write_test(w: CodeWriter, name: str, condition: Expr, slot: str, names: RowLayout) -> str:
    """A function over what the window holds, its first and the newest, which is the last.

    Aggregates are folded over all of it.
    """

    def attribute(expr: Field) -> int:
        return names.positions[slot, expr.name, None]

    def each(expr: Expr) -> ExprText:
        assert isinstance(expr, Field)
        return ExprText(f"r[{attribute(expr)}]")

    def resolve(expr: Expr) -> ExprText:
        match expr:
            case Agg():
                values = [ExprWriter(w, each).value(a) for a in expr.args] or ["True"]
                return ExprText(fold_text(w, expr, values))
            case SlotTime():
                position = "first[0]" if expr.slot == "first" else "ts"
                return ExprText(position, nullable=False)
            case Field():
                held = "first[1]" if expr.slot == "first" else "row"
                return ExprText(f"{held}[{attribute(expr)}]")
            case _:
                raise LookupError(f"no value for {key_of(expr)}")

    text = ExprWriter(w, resolve).condition(condition)
    with w.block(f"def {name}(held, first, ts, row)"):
        w.line(f"return {text}")
    return name


def fold_text(w: CodeWriter, expr: Agg, values: list[str]) -> str:
    """An aggregate over all rows that a window holds, `held`."""
    if expr.body is None:
        body = f"agg.DEFINITIONS[{expr.name.lower()!r}]"
    else:
        body = aggregate_name(w, expr, retaining=False)
    value = values[0] if len(values) == 1 else f"agg.joined({', '.join(values)})"
    return f"agg.fold({body}, [{value} for t, r in held])"


IN_TURN = frozenset({"length", "time", "timelength", "externaltime"})  # first in, first out
# What each event lets out of these is a chunk of its own, whatever chunk it came in.
APART = frozenset(
    {"lengthbatch", "batch", "expressionbatch", "unique:lengthbatch", "unique:firstlengthbatch"}
)
# These let current rows out last: [X] R [C].
BATCHES = frozenset({"lengthbatch", "timebatch", "externaltimebatch", "batch"})

# In a join that wants no X these never forget what they let out.
KEEPERS = frozenset({"lengthbatch", "timebatch"})

MAKERS: dict[str, Callable[[FragmentBuilder, Window, str, RowLayout], WindowCall]] = {
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
    "unique:ever": _plain("uni.UniqueEver"),
    "unique:first": _plain("uni.UniqueFirst"),
    "unique:length": _plain("uni.UniqueLength"),
    "unique:time": _plain("uni.UniqueTime"),
    "unique:lengthbatch": _plain("uni.UniqueLengthBatch"),
    "unique:firstlengthbatch": _plain("uni.UniqueLengthBatch", after="first=True"),
    "unique:timebatch": _plain("uni.UniqueTimeBatch"),
    "unique:firsttimebatch": _plain("uni.UniqueTimeBatch", after="first=True"),
    "unique:timelengthbatch": _plain("uni.UniqueTimeLengthBatch"),
    "unique:externaltimebatch": _external_batch,
    **{
        f"extrema:{by}by{kind.lower()}": _plain(f"ext.Extreme{kind}", before=str(by == "max"))
        for by in ("max", "min")
        for kind in ("Length", "LengthBatch", "Time", "TimeBatch")
    },
    "batch": _plain("bat.ChunkBatch"),
    "cron": _plain("bat.CronBatch"),
    "hopping": _plain("bat.Hopping"),
    "expressionbatch": _expression("bat.ExpressionBatch"),
}
