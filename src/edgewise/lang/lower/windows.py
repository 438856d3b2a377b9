"""Window calls against the table of windows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgewise.event.schema import Schema
from edgewise.lang.lower.expressions import Context
from edgewise.lang.lower.scope import Scope, Slot
from edgewise.lang.lower.symbols import Symbols
from edgewise.lang.parse.app import parse_expression
from edgewise.lang.report import Refused, Report, nearest
from edgewise.lang.source import At, Source
from edgewise.lang.syntax import expr as written
from edgewise.plan.exprs import Const, Expr, Field
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.nodes import Window
from edgewise.plan.windows import WINDOWS, Form, Param, WindowSpec

TOO_MANY = "too many arguments"


def lower_window(context: Context, node: written.Call) -> Window:
    report = context.report
    full = f"{node.namespace}:{node.name}" if node.namespace else node.name
    spec = WINDOWS.get(full.lower())
    if spec is None:
        hint = nearest(full, (s.name for s in WINDOWS.values()))
        report.fail(node.at, f"there is no window '{full}'", hint)
    args = context.each(node.args)
    misfits = [_misfit(params, spec.repeats, args) for params in spec.overloads]
    found = [m for m in misfits if m is not None]
    if len(found) == len(misfits):
        # The argument list that fits furthest says why, one of the right length before others.
        place, problem = max(found, key=lambda m: (m[0], not m[1].startswith(TOO_MANY)))
        where = node.args[place].at if place < len(node.args) else node.at
        report.fail(where, f"#window.{spec.name}: {problem}", _usage(spec))
    rule = spec.rule(args) if spec.rule else ""
    if rule:
        report.fail(node.args[-1].at if node.args else node.at, f"#window.{spec.name}: {rule}")
    if spec.name not in {"expression", "expressionBatch"}:
        return Window(spec.name, args)
    if isinstance(args[0], Const):
        condition = _condition(context, str(args[0].value), node.args[0].at)
        return Window(spec.name, args, condition)
    own = context.scope.slots[0]
    return Window(spec.name, args, None, ConditionReader(own.name, own.schema))


@dataclass(frozen=True, slots=True)
class ConditionReader:
    """Reads the conditions that events bring along; knows the built-in functions."""

    slot: str
    schema: Schema

    def __call__(self, text: str) -> Expr:
        report = Report(Source(text, "<condition>"))
        scope = Scope(report, (Slot(self.slot, self.schema, (self.slot,)),))
        context = Context(report, scope, FUNCTIONS, Symbols(report))
        try:
            return _condition(context, text, (0, len(text)))
        except Refused:
            report.raise_errors()
            raise


def _condition(context: Context, text: str, at: At) -> Expr:
    """The expression inside the quotes: over the window's first and last event and aggregates."""
    inside = Report(Source(text))
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


def _misfit(
    params: tuple[Param, ...], repeats: tuple[Param, ...], args: tuple[Expr, ...]
) -> tuple[int, str] | None:
    """The place of the first argument that does not fit and why; None where all fit."""
    for place, arg in enumerate(args):
        if place >= len(params) and not repeats:
            return place, f"{TOO_MANY}, {len(args)} for {len(params)}"
        param = params[place] if place < len(params) else repeats[0]
        form = {
            Form.CONSTANT: isinstance(arg, Const),
            Form.ATTRIBUTE: isinstance(arg, Field),
            Form.EITHER: isinstance(arg, Const | Field),
        }
        if not form[param.form]:
            return place, f"{param.name} must be {param.form.value}"
        if arg.type not in param.types:
            wanted = " or ".join(sorted(t.value for t in param.types))
            return place, f"{param.name} must be {wanted}, this is {arg.type.value}"
    if len(args) < len(params):
        return len(args), f"{params[len(args)].name} is missing"
    return None


def _usage(spec: WindowSpec) -> str:
    shapes = [", ".join(p.name for p in params) for params in spec.overloads]
    more = f"[, {spec.repeats[0].name}...]" if spec.repeats else ""
    return "write " + " or ".join(f"{spec.name}({shape}{more})" for shape in shapes)
