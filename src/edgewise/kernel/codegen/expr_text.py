"""Write expressions as Python text, with SiddhiQL's null rules and Java's numbers.

A value whose text cannot be null is tested nowhere. What may be null is tested once: a local by
its name, anything else through an assignment expression. `condition` gives text where only truth
matters (null is false there), `value` gives text where the value itself counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgewise.errors import SetupError
from edgewise.event.types import AttrType
from edgewise.kernel.codegen.code_writer import CodeWriter
from edgewise.kernel.codegen.function_binding import call_text
from edgewise.kernel.functions import calls, java
from edgewise.plan.exprs import (
    And,
    Arith,
    Call,
    Compare,
    Const,
    Expr,
    InTable,
    IsNull,
    Not,
    Or,
)

_INTEGER = {AttrType.INT: 31, AttrType.LONG: 63}


@dataclass(frozen=True, slots=True)
class ExprText:
    """Python text of an expression; `nullable` when it may give None."""

    text: str
    nullable: bool = True

    @property
    def simple(self) -> bool:
        return self.text.isidentifier()


Resolve = Callable[[Expr], ExprText]
# Text of the test `condition in table`, given how the rest of the query resolves its fields.
Tables = Callable[[InTable, Resolve], str]


def no_tables(expr: InTable, _resolve: Resolve) -> str:
    raise LookupError(f"the table '{expr.table}' cannot be read here")


class ExprWriter:
    """Text for expressions whose fields, out fields and aggregates `resolve` gives."""

    def __init__(self, writer: CodeWriter, resolve: Resolve, tables: Tables = no_tables) -> None:
        self._writer = writer
        self._resolve = resolve
        self._tables = tables

    def condition(self, expr: Expr) -> str:
        return self._truth(expr)

    def value(self, expr: Expr) -> str:
        return self._code(expr).text

    def _code(self, expr: Expr) -> ExprText:
        match expr:
            case Const():
                return ExprText(literal(expr), expr.value is None)
            case Arith():
                return self._arith(expr)
            case Compare():
                return ExprText(self._compare(expr), nullable=False)
            case And() | Or() | Not():
                return ExprText(f"bool({self._truth(expr)})", nullable=False)
            case IsNull():
                return ExprText(self._is_null(expr), nullable=False)
            case Call():
                return self._bool(expr, self._call(expr))
            case InTable():
                return ExprText(self._tables(expr, self._resolve), nullable=False)
            case _:
                return self._resolve(expr)

    def _truth(self, expr: Expr) -> str:
        match expr:
            case And():
                return f"({self._truth(expr.left)} and {self._truth(expr.right)})"
            case Or():
                return f"({self._truth(expr.left)} or {self._truth(expr.right)})"
            case Not():
                return f"(not {self._truth(expr.operand)})"
            case _:
                return self._code(expr).text

    def _is_null(self, expr: IsNull) -> str:
        code = self._code(expr.operand)
        return f"({code.text} is None)" if code.nullable else "False"

    def _named(self, code: ExprText) -> tuple[str, str]:
        """The text for the first use, and for every later one."""
        if code.simple or not code.nullable:
            return code.text, code.text
        name = self._writer.temporary()
        return f"({name} := {code.text})", name

    def _arith(self, expr: Arith) -> ExprText:
        left, right = self._code(expr.left), self._code(expr.right)
        a_first, a = self._named(left)
        b_first, b = self._named(right)
        tests = [f"{a_first} is None"] if left.nullable else []
        tests += [f"{b_first} is None"] if right.nullable else []
        body, may_fail = _operate(expr, a, b)
        if not tests:
            return ExprText(f"({body})", may_fail)
        return ExprText(f"(None if {' or '.join(tests)} else {body})")

    def _compare(self, expr: Compare) -> str:
        left, right = self._code(expr.left), self._code(expr.right)
        equality = expr.op in {"==", "!="}
        plain = _as_java(expr, "a", "b") == ("a", "b")
        if equality and plain and not (left.nullable and right.nullable):
            return f"({left.text} {expr.op} {right.text})"  # None equals no value: no test needed
        a_first, a = self._named(left)
        b_first, b = self._named(right)
        test, joint = ("is", " or ") if expr.op == "!=" else ("is not", " and ")
        tests = [f"{a_first} {test} None"] if left.nullable else []
        tests += [f"{b_first} {test} None"] if right.nullable else []
        a, b = _as_java(expr, a, b)
        return f"({joint.join([*tests, f'{a} {expr.op} {b}'])})"

    def _bool(self, expr: Call, code: ExprText) -> ExprText:
        """A call that is a bool is never null: null is false, and what is no bool fails."""
        if expr.type is not AttrType.BOOL or not code.nullable:
            return code
        return ExprText(f"fn.truth({code.text})", nullable=False)

    def _call(self, expr: Call) -> ExprText:
        args = [self._code(a) for a in expr.args]
        name = expr.name.lower()
        if name == "ifthenelse":
            condition = self._truth(expr.args[0])
            text = f"({args[1].text} if {condition} else {args[2].text})"
            return ExprText(text, args[1].nullable or args[2].nullable)
        if name in {"coalesce", "default"} and len(args) == 2 and args[0].nullable:
            first, again = self._named(args[0])
            return ExprText(
                f"({again} if {first} is not None else {args[1].text})", args[1].nullable
            )
        if name == "eventtimestamp" and not args:
            return ExprText("ts", nullable=False)
        if name == "currenttimemillis":
            return ExprText("rt.now", nullable=False)
        if name == "uuid":
            return ExprText("rt.uuid()", nullable=False)
        if name == "math:rand":
            return ExprText("rt.random()", nullable=False)
        wanted = calls.INSTANCE_OF.get(name)
        if wanted is not None and expr.args[0].type not in {AttrType.OBJECT, wanted}:
            return ExprText("False", nullable=False)
        if name not in calls.FUNCTIONS and expr.body is not None:
            return ExprText(call_text(self._writer, expr, [a.text for a in args]))
        if name not in calls.FUNCTIONS:
            raise SetupError(
                f"the function '{expr.name}' has no Python body: as a Spark expression alone it "
                "runs on the spark engine, in queries that explain calls native"
            )
        return ExprText(f"fn.{calls.FUNCTIONS[name].__name__}({', '.join(a.text for a in args)})")


def literal(const: Const) -> str:
    if isinstance(const.value, float) and not repr(const.value)[-1].isdigit():
        return f"float({repr(const.value)!r})"  # inf and nan have no literal
    value = java.f32(const.value) if const.type is AttrType.FLOAT else const.value
    if const.type is AttrType.DOUBLE and value is not None:
        value = float(value)
    return f"({value!r})" if isinstance(value, int | float) and value < 0 else repr(value)


def _operate(expr: Arith, a: str, b: str) -> tuple[str, bool]:
    """The operation on values that are there, and whether it may give null."""
    op, kind = expr.op, expr.type
    if kind in _INTEGER:
        bits = _INTEGER[kind]
        bias, mask = hex(1 << bits), hex((1 << bits + 1) - 1)
        if op in {"+", "-", "*"}:
            return f"({a} {op} {b} + {bias} & {mask}) - {bias}", False
        if isinstance(expr.right, Const) and expr.right.value > 0:
            sign = "//" if op == "/" else "%"
            return f"({a} {sign} {b} if {a} >= 0 else -(-{a} {sign} {b}))", False
        return (f"java.idiv({a}, {b})" if op == "/" else f"java.irem({a}, {b})"), True
    if kind is AttrType.FLOAT:
        a, b = _single(expr.left, a), _single(expr.right, b)
    if op in {"+", "-", "*"}:
        text, may_fail = f"{a} {op} {b}", False
    elif isinstance(expr.right, Const) and expr.right.value and op == "/":
        text, may_fail = f"{a} / {b}", False
    else:
        text, may_fail = f"java.{'fdiv' if op == '/' else 'frem'}({a}, {b})", True
    if kind is not AttrType.FLOAT:
        return text, may_fail
    return (f"fn.single({text})" if may_fail else f"f32({text})"), may_fail


def _single(expr: Expr, text: str) -> str:
    return f"f32({text})" if expr.type in _INTEGER else text


def _as_java(expr: Compare, a: str, b: str) -> tuple[str, str]:
    """Operands as Java promotes them before comparing."""
    kinds = {expr.left.type, expr.right.type}
    if AttrType.FLOAT in kinds and kinds & set(_INTEGER):
        return _single(expr.left, a), _single(expr.right, b)
    if kinds == {AttrType.LONG, AttrType.DOUBLE}:
        wide = [
            f"float({t})" if e.type is AttrType.LONG and not isinstance(e, Const) else t
            for e, t in ((expr.left, a), (expr.right, b))
        ]
        return wide[0], wide[1]
    return a, b
