"""Lower expressions: resolve names to slots, derive the types of operators and functions.

Numbers are promoted, strings and bools only meet their own kind; all else is refused here so that
no engine ever sees it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

from edgewise.event.types import NUMERIC, AttrType, promote
from edgewise.lang.lower.element_aggregates import find_elements, lower_element_aggregate
from edgewise.lang.lower.scope import Scope, Slot
from edgewise.lang.lower.symbols import AGGREGATION, TABLE, WINDOW, Symbols
from edgewise.lang.report import Refused, Report, suggest_nearest
from edgewise.lang.source import At
from edgewise.lang.syntax import expr as written
from edgewise.lang.syntax.query import Name
from edgewise.plan import exprs
from edgewise.plan.functions import Function, FunctionTable

ARITHMETIC = frozenset("+-*/%")
EQUALITY = frozenset({"==", "!="})
FRACTIONS = frozenset({AttrType.FLOAT, AttrType.DOUBLE})


@dataclass(frozen=True, slots=True)
class Context:
    """What an expression may use. `no_aggregates` says where not, '' where they are legal."""

    report: Report
    scope: Scope
    functions: FunctionTable
    symbols: Symbols
    no_aggregates: str = ""

    def without_aggregates(self, where: str) -> Context:
        return replace(self, no_aggregates=where)

    def lower(self, node: written.Expression) -> exprs.Expr:
        match node:
            case written.Literal():
                return exprs.Const(node.type, _exact(node))
            case written.Duration():
                return exprs.Const(AttrType.LONG, node.ms)
            case written.AttrRef():
                return self.scope.attribute(node)
            case written.Not():
                return exprs.Not(self.boolean(node.operand, "'not'"))
            case written.Logical():
                return self._logical(node)
            case written.Binary():
                return self._binary(node)
            case written.IsNull():
                return self._is_null(node)
            case written.InTable():
                return self._in_table(node)
            case written.Call():
                return self._call(node)

    def each(self, texts: Iterable[written.Expression]) -> tuple[exprs.Expr, ...]:
        """All of them; refused after the last one, so that each tells its problem."""
        found: list[exprs.Expr] = []
        refused = False
        for node in texts:
            try:
                found.append(self.lower(node))
            except Refused:
                refused = True
        if refused:
            raise Refused
        return tuple(found)

    def boolean(self, node: written.Expression, what: str) -> exprs.Expr:
        found = self.lower(node)
        if found.type is not AttrType.BOOL:
            message = f"{what} needs a bool, this is {found.type.value}"
            self.report.fail(node.at, message, "compare it with something")
        return found

    def constant(self, node: written.Expression, what: str) -> exprs.Const:
        found = self.lower(node)
        if not isinstance(found, exprs.Const):
            self.report.fail(node.at, f"{what} must be a constant")
        return found

    def _logical(self, node: written.Logical) -> exprs.Expr:
        terms: list[exprs.Expr] = []
        for term in node.terms:
            with self.report.attempt():
                terms.append(self.boolean(term, f"'{node.op}'"))
        if len(terms) < len(node.terms):
            raise Refused
        return exprs.build_balanced(exprs.And if node.op == "and" else exprs.Or, terms)

    def _binary(self, node: written.Binary) -> exprs.Expr:
        if isinstance(node.left, written.Not):
            left = self._negated(node.left)
            right = self.lower(node.right)
        else:
            left, right = self.each((node.left, node.right))
        if node.op in ARITHMETIC:
            for side, text in ((left, node.left), (right, node.right)):
                if side.type not in NUMERIC:
                    hint = "use str:concat to join text" if node.op == "+" else ""
                    message = f"'{node.op}' needs numbers, this is {side.type.value}"
                    self.report.fail(text.at, message, hint)
            return exprs.Arith(promote(left.type, right.type), node.op, left, right)
        self._check_comparison(node, left, right)
        return exprs.Compare(node.op, left, right)

    def _negated(self, node: written.Not) -> exprs.Expr:
        """`not a == b` means `(not a) == b`: say so where a is no bool."""
        operand = self.lower(node.operand)
        if operand.type is not AttrType.BOOL:
            message = f"'not' needs a bool, this is {operand.type.value}"
            hint = "'not' binds tighter than comparison: write not (...)"
            self.report.fail(node.at, message, hint)
        return exprs.Not(operand)

    def _check_comparison(self, node: written.Binary, left: exprs.Expr, right: exprs.Expr) -> None:
        numbers = left.type in NUMERIC and right.type in NUMERIC
        if node.op in EQUALITY:
            if numbers and FRACTIONS & {left.type, right.type}:
                hint = "compare with a margin: fractions are rarely equal to the last bit"
                self.report.warn(node.at, f"'{node.op}' between floating-point numbers", hint)
            alike = left.type is right.type and left.type is not AttrType.OBJECT
            if numbers or alike:
                return
            message = f"cannot compare {left.type.value} with {right.type.value}"
            self.report.fail(node.at, message, self._comparison_hint(left, right))
        if not numbers:
            message = f"'{node.op}' needs numbers, not {left.type.value} and {right.type.value}"
            self.report.fail(node.at, message, self._comparison_hint(left, right))

    def _comparison_hint(self, left: exprs.Expr, right: exprs.Expr) -> str:
        for side in (left, right):
            if side.type is AttrType.OBJECT:
                if isinstance(side, exprs.Field) and self._counted(side.slot):
                    name = f"{side.slot}[last].{side.name}"
                    return f"'{side.slot}' holds several events; pick one: {name}"
                return "cast the object first: cast(x, 'string')"
        return "strings only meet strings, bools bools, numbers numbers; convert one of them"

    def _counted(self, name: str) -> bool:
        return any(slot.counted for slot in self.scope.slots if slot.name == name)

    def _is_null(self, node: written.IsNull) -> exprs.Expr:
        operand = node.operand
        if isinstance(operand, written.AttrRef) and operand.stream is None:
            named = any(s.schema.index(operand.name) >= 0 for s in self.scope.slots)
            if self.scope.find_slot(operand.name) is not None and not named:
                operand = written.StreamRef(operand.name, at=operand.at)
        if isinstance(operand, written.StreamRef):
            slot = self.scope.slot(operand)
            self.scope.check_index(slot, operand.index, operand.at)
            return exprs.SlotIsNull(slot.name, operand.index)
        return exprs.IsNull(self.lower(operand))

    def _in_table(self, node: written.InTable) -> exprs.Expr:
        """The condition sees the table's columns by its name, and all that is outside."""
        name = Name(node.table, at=node.at)
        _, schema = self.symbols.find(name, TABLE, WINDOW, AGGREGATION)
        slots = (*self.scope.slots, Slot(node.table, schema, (node.table,)))
        own = self.scope.own
        if not own and len(self.scope.slots) == 1:
            own = self.scope.slots[0].name
        inside = replace(self, scope=replace(self.scope, slots=slots, own=own))
        return exprs.InTable(inside.boolean(node.condition, "'in'"), node.table)

    # Functions.

    def _call(self, node: written.Call) -> exprs.Expr:
        full = f"{node.namespace}:{node.name}" if node.namespace else node.name
        function = self.functions.get(full)
        if function is None:
            self.report.check_whole()
            self.report.check_room()
            hint = suggest_nearest(full, self.functions)
            self.report.fail(node.at, f"there is no function '{full}'", hint)
        if function.name == "eventTimestamp":
            return self._event_timestamp(node)
        if function.aggregate and (one := find_elements(self.scope, node)) is not None:
            if one.type not in _legal_types(function, 0):
                message = f"'{function.name}' does not take {one.type.value}"
                self.report.fail(node.args[0].at, message)
            return lower_element_aggregate(function, one)
        if function.aggregate and self.no_aggregates:
            message = f"'{full}' is an aggregate and not legal {self.no_aggregates}"
            self.report.fail(node.at, message, "compute it in the select list of a query before")
        if node.star and function.name == "count":
            return exprs.Agg(AttrType.LONG, "count", ())
        args = self._arguments(node, function)
        if function.fold is not None:
            return function.fold(self.functions.environment, args)
        kind = function.type_of(args)
        if function.aggregate:
            return exprs.Agg(kind, function.name, args, function.body)
        return exprs.Call(
            kind,
            function.name,
            args,
            function.python,
            function.spark,
            function.clocked,
            function.takes_null,
            function.drops_null,
            function.typed,
            function.deterministic,
        )

    def _event_timestamp(self, node: written.Call) -> exprs.Expr:
        if not node.args:
            return exprs.SlotTime()
        ref = node.args[0]
        slot = self.scope.find_slot(ref.name) if isinstance(ref, written.AttrRef) else None
        if len(node.args) > 1 or slot is None:
            hint = "write eventTimestamp() or eventTimestamp(e1)"
            self.report.fail(ref.at, "eventTimestamp takes the name of an input", hint)
        return exprs.SlotTime(slot.name)

    def _arguments(self, node: written.Call, function: Function) -> tuple[exprs.Expr, ...]:
        if node.star:
            node = replace(node, args=self._every_attribute(node.at), star=False)
        _check_arity(self.report, node.at, function, len(node.args))
        inner = self.without_aggregates("inside another") if function.aggregate else self
        args = inner.each(node.args)
        if function.shapes and not function.fits(tuple(a.type for a in args)):
            given = ", ".join(a.type.value for a in args) or "nothing"
            hint = f"write {' or '.join(_shape_texts(function))}"
            self.report.fail(node.at, f"'{function.name}' does not take ({given})", hint)
        for index, (arg, text) in enumerate(zip(args, node.args, strict=True)):
            legal = _legal_types(function, index)
            if arg.type not in legal:
                wanted = " or ".join(t.value for t in AttrType if t in legal)
                message = f"'{function.name}' takes {wanted} here, this is {arg.type.value}"
                self.report.fail(text.at, message)
        self._check_agreement(node, function, args)
        problem = function.rule(args) if function.rule else ""
        if problem:
            self.report.fail(node.args[-1].at if node.args else node.at, problem)
        return args

    def _every_attribute(self, at: At) -> tuple[written.Expression, ...]:
        """What `f(*)` stands for."""
        return tuple(
            written.AttrRef(name, written.StreamRef(slot.labels[0], at=at), at)
            for slot in self.scope.slots
            for name in slot.schema.names
        )

    def _check_agreement(
        self, node: written.Call, function: Function, args: tuple[exprs.Expr, ...]
    ) -> None:
        if function.agree is None:
            return
        indexes = function.agree or range(len(args))
        first = args[indexes[0]].type
        for index in indexes:
            if args[index].type is not first:
                self.report.fail(
                    node.args[index].at,
                    f"'{function.name}' takes one type: {first.value} before, "
                    f"{args[index].type.value} here",
                    f"convert it with convert(..., '{first.value}')",
                )


def _legal_types(function: Function, index: int) -> frozenset[AttrType]:
    if function.shapes:
        return frozenset(AttrType)
    return function.takes[min(index, len(function.takes) - 1)]


def _shape_texts(function: Function) -> list[str]:
    return [f"{function.name}({', '.join(map(_type_text, s))})" for s in function.shapes]


def _type_text(types: frozenset[AttrType]) -> str:
    return "|".join(sorted(t.value for t in types))


def _check_arity(report: Report, at: At, function: Function, given: int) -> None:
    least, most = function.least, function.most
    if given >= least and (most is None or given <= most):
        return
    if most is None:
        wanted = f"at least {least}"
    else:
        wanted = str(least) if least == most else f"{least} to {most}"
    plural = "argument" if wanted.endswith("1") else "arguments"
    report.fail(at, f"'{function.name}' takes {wanted} {plural}, not {given}")


def _exact(node: written.Literal) -> str | float | bool:
    """A float constant is the nearest 32-bit number, as the original engine has it."""
    if node.type is not AttrType.FLOAT:
        return node.value
    try:
        return float(struct.unpack("f", struct.pack("f", node.value))[0])
    except OverflowError:
        return float("inf") if float(node.value) > 0 else float("-inf")
