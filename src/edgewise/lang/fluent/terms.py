"""Expressions in Python: `(col.v + 1 > 5) & ~col.k.is_null()`, or SiddhiQL text in quotes."""

from __future__ import annotations

from typing import TypeAlias

from edgewise.event.types import INT_MAX, INT_MIN, AttrType
from edgewise.lang.parse.app import parse_expression
from edgewise.lang.report import Report
from edgewise.lang.source import SourceText
from edgewise.lang.syntax.expr import (
    AttrRef,
    Binary,
    Call,
    Duration,
    Expression,
    IsNull,
    Literal,
    Logical,
    Not,
    StreamRef,
)

Value: TypeAlias = "Term | str | int | float | bool"


class Term:
    """An expression; the usual operators make larger ones, `&`, `|` and `~` stand for logic."""

    def __init__(self, node: Expression) -> None:
        self.node = node

    def __add__(self, other: Value) -> Term:
        return self._binary("+", other)

    def __sub__(self, other: Value) -> Term:
        return self._binary("-", other)

    def __mul__(self, other: Value) -> Term:
        return self._binary("*", other)

    def __truediv__(self, other: Value) -> Term:
        return self._binary("/", other)

    def __mod__(self, other: Value) -> Term:
        return self._binary("%", other)

    def __lt__(self, other: Value) -> Term:
        return self._binary("<", other)

    def __le__(self, other: Value) -> Term:
        return self._binary("<=", other)

    def __gt__(self, other: Value) -> Term:
        return self._binary(">", other)

    def __ge__(self, other: Value) -> Term:
        return self._binary(">=", other)

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        assert isinstance(other, Term | str | int | float)
        return self._binary("==", other)

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        assert isinstance(other, Term | str | int | float)
        return self._binary("!=", other)

    __hash__ = None  # type: ignore[assignment] # `==` makes an expression, so a Term is no key

    def __and__(self, other: Term) -> Term:
        return Term(Logical("and", (self.node, other.node)))

    def __or__(self, other: Term) -> Term:
        return Term(Logical("or", (self.node, other.node)))

    def __invert__(self) -> Term:
        return Term(Not(self.node))

    def __bool__(self) -> bool:
        message = "an expression has no truth yet: write & for and, | for or, ~ for not"
        raise TypeError(message)

    def is_null(self) -> Term:
        return Term(IsNull(self.node))

    def _binary(self, op: str, other: Value) -> Term:
        return Term(Binary(op, self.node, value(other)))


class Columns:
    """`col.price` is the attribute price; `col["two words"]` for any other name."""

    def __init__(self, stream: StreamRef | None = None) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Term:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Term:
        return Term(AttrRef(name, self._stream))

    def of(self, stream: str, index: int | None = None) -> Columns:
        """The attributes of one input: `col.of("e1").k`; -1 is the last event of a count."""
        return Columns(StreamRef(stream, "", index))


col = Columns()


def value(given: Value) -> Expression:
    """A Python value as it stands: text is a string here, not an expression."""
    match given:
        case Term():
            return given.node
        case bool():
            return Literal(AttrType.BOOL, given)
        case int():
            kind = AttrType.INT if INT_MIN <= given <= INT_MAX else AttrType.LONG
            return Literal(kind, given)
        case float():
            return Literal(AttrType.DOUBLE, given)
        case str():
            return Literal(AttrType.STRING, given)


def lit(given: Value) -> Term:
    """A Python value as a constant: `lit(5) > col.v`."""
    return Term(value(given))


def expression(given: Term | str) -> Expression:
    """A condition: a Term, or SiddhiQL in quotes."""
    if isinstance(given, Term):
        return given.node
    report = Report(SourceText(given, "<expression>"))
    found = parse_expression(report)
    report.raise_errors()
    assert found is not None
    return found


def duration(given: str | int) -> Duration:
    """`"10 min"`, or milliseconds."""
    if isinstance(given, int):
        return Duration(given)
    found = expression(given)
    if not isinstance(found, Duration):
        message = f"{given!r} is not a time; write it as '10 min'"
        raise TypeError(message)
    return found


def call(name: str, *args: Value) -> Term:
    """Any function by name: `call("str:length", col.k)`."""
    namespace, _, plain = name.rpartition(":")
    return Term(Call(plain, tuple(value(a) for a in args), namespace))


def count(*args: Value) -> Term:
    """How many rows; with an attribute, how many where it is not null."""
    return call("count", *args)


def sum_(arg: Value) -> Term:
    """The sum; null over no rows."""
    return call("sum", arg)


def avg(arg: Value) -> Term:
    """The mean; null over no rows."""
    return call("avg", arg)


def min_(arg: Value) -> Term:
    """The smallest value."""
    return call("min", arg)


def max_(arg: Value) -> Term:
    """The largest value."""
    return call("max", arg)


def distinct_count(arg: Value) -> Term:
    """How many different values."""
    return call("distinctCount", arg)


def std_dev(arg: Value) -> Term:
    """The standard deviation of the population."""
    return call("stdDev", arg)
