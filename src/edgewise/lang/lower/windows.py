"""Check window calls against the table of windows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from edgewise.event.schema import Schema
from edgewise.lang.lower.expressions import Context
from edgewise.lang.lower.scope import Scope, Slot
from edgewise.lang.lower.symbols import Symbols
from edgewise.lang.parse.app import parse_expression
from edgewise.lang.report import Refused, Report, suggest_nearest
from edgewise.lang.source import At, SourceText
from edgewise.lang.syntax import expr as written
from edgewise.plan.exprs import Const, Expr, Field
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.nodes import Window
from edgewise.plan.windows import WINDOWS, Form, Param, WindowSpec

TOO_MANY = "too many arguments"
# What other stream processors call them.
OTHER_NAMES = {
    "tumbling": "write timeBatch(1 min) or lengthBatch(100)",
    "sliding": "write time(1 min) or length(100)",
    "hopping": "write time(1 min) with 'output snapshot every 10 sec'",
    "count": "write length(100) or lengthBatch(100)",
    "rolling": "write time(1 min) or length(100)",
    "timesliding": "write time(1 min)",
    "timetumbling": "write timeBatch(1 min)",
}


def lower_window(context: Context, node: written.Call) -> Window:
    report = context.report
    full = f"{node.namespace}:{node.name}" if node.namespace else node.name
    spec = WINDOWS.get(full.lower())
    if spec is None:
        hint = OTHER_NAMES.get(full.lower()) or suggest_nearest(
            full, (s.name for s in WINDOWS.values())
        )
        report.fail(node.at, f"there is no window '{full}'", hint)
    args = context.each(node.args)
    misfits = [_find_misfit(params, spec.repeats, args) for params in spec.overloads]
    found = [m for m in misfits if m is not None]
    if len(found) == len(misfits):
        # The argument list that fits furthest says why, one of the right length before others.
        index, problem = max(found, key=lambda m: (m[0], not m[1].startswith(TOO_MANY)))
        where = node.args[index].at if index < len(node.args) else node.at
        hint = _suggest_unquoted(args, index) or _describe_usage(spec)
        report.fail(where, f"#window.{spec.name}: {problem}", hint)
    rule = spec.rule(args) if spec.rule else ""
    if rule:
        report.fail(node.args[-1].at if node.args else node.at, f"#window.{spec.name}: {rule}")
    if spec.name not in {"expression", "expressionBatch"}:
        return Window(spec.name, args)
    if isinstance(args[0], Const):
        condition = _lower_condition(context, str(args[0].value), node.args[0].at)
        return Window(spec.name, args, condition)
    own = context.scope.slots[0]
    return Window(spec.name, args, None, ConditionReader(own.name, own.schema))


@dataclass(frozen=True, slots=True)
class ConditionReader:
    """Reads the conditions that events bring along; knows the built-in functions."""

    slot: str
    schema: Schema

    def __call__(self, text: str) -> Expr:
        report = Report(SourceText(text, "<condition>"))
        scope = Scope(report, (Slot(self.slot, self.schema, (self.slot,)),))
        context = Context(report, scope, FUNCTIONS, Symbols(report))
        try:
            return _lower_condition(context, text, (0, len(text)))
        except Refused:
            report.raise_errors()
            raise


def _lower_condition(context: Context, text: str, at: At) -> Expr:
    """The expression inside the quotes: over the window's first and last event and aggregates."""
    inside = Report(SourceText(text))
    tree = parse_expression(inside)
    if tree is None:
        problem = inside.errors()[0]
        context.report.fail(at, f"in the quotes: {problem.message}", problem.hint)
    own = context.scope.slots[0]
    ends = tuple(Slot(name, own.schema, (name,)) for name in ("first", "last"))
    scope = Scope(inside, (own, *ends), own=own.name)
    try:
        return replace(context, report=inside, scope=scope, no_aggregates="").boolean(
            tree, "the window"
        )
    except Refused:
        problem = inside.errors()[0]
        context.report.fail(at, f"in the quotes: {problem.message}", problem.hint)


def _find_misfit(
    params: tuple[Param, ...], repeats: tuple[Param, ...], args: tuple[Expr, ...]
) -> tuple[int, str] | None:
    """The place of the first argument that does not fit and why; None where all fit."""
    for index, arg in enumerate(args):
        if index >= len(params) and not repeats:
            return index, f"{TOO_MANY}, {len(args)} for {len(params)}"
        param = params[index] if index < len(params) else repeats[0]
        form = {
            Form.CONSTANT: isinstance(arg, Const),
            Form.ATTRIBUTE: isinstance(arg, Field),
            Form.EITHER: isinstance(arg, Const | Field),
        }
        if not form[param.form]:
            return index, f"{param.name} must be {param.form.value}"
        if arg.type not in param.types:
            wanted = " or ".join(sorted(t.value for t in param.types))
            return index, f"{param.name} must be {wanted}, this is {arg.type.value}"
    if len(args) < len(params):
        return len(args), f"{params[len(args)].name} is missing"
    return None


def _suggest_unquoted(args: tuple[Expr, ...], index: int) -> str:
    """A time in quotes: `time('1 min')`."""
    arg = args[index] if index < len(args) else None
    text = arg.value if isinstance(arg, Const) else None
    if not isinstance(text, str) or not re.fullmatch(r"\s*\d+\s*[a-zA-Z]+\s*", text):
        return ""
    return f"write a time without quotes: {text.strip()}"


def _describe_usage(spec: WindowSpec) -> str:
    shapes = [", ".join(p.name for p in params) for params in spec.overloads]
    more = f"[, {spec.repeats[0].name}...]" if spec.repeats else ""
    return "write " + " or ".join(f"{spec.name}({shape}{more})" for shape in shapes)
