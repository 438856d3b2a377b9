"""Parse expressions by precedence climbing.

Highest first: parentheses and `is null`, `not`, `* / %`, `+ -`, `> < >= <=`, `== !=`,
`in Table`, `and`, `or`. `not` binds tighter than comparison, as in the original language.
"""

from __future__ import annotations

from collections.abc import Callable

from edgewise.event.types import INT_MAX, LONG_MAX, AttrType
from edgewise.lang.parse.cursor import Cursor
from edgewise.lang.syntax.expr import (
    AttrRef,
    Binary,
    Call,
    Duration,
    Expression,
    InTable,
    IsNull,
    Literal,
    Logical,
    Not,
    StreamRef,
)
from edgewise.lang.tokens import UNIT_ORDER, UNIT_WORDS, UNITS_MS, Kind, Token
from edgewise.plan.text import EQUALITY, LEVELS

CHAIN_MAX = 60  # operators of one chain `a + b + c ...`; `and` and `or` are not bounded

NUMBERS = {
    Kind.INT: AttrType.INT,
    Kind.LONG: AttrType.LONG,
    Kind.FLOAT: AttrType.FLOAT,
    Kind.DOUBLE: AttrType.DOUBLE,
}
INFIX_WORDS = frozenset({"and", "or", "in", "is", "as", "of"})


class Expressions(Cursor):
    def parse_expression(self) -> Expression:
        with self.nest():
            return self._parse_disjunction()

    def _parse_disjunction(self) -> Expression:
        return self._parse_logical("or", self._parse_conjunction)

    def _parse_conjunction(self) -> Expression:
        return self._parse_logical("and", self._parse_membership)

    def _parse_logical(self, op: str, term: Callable[[], Expression]) -> Expression:
        start = self.token.start
        terms = [term()]
        while self.take_word(op):
            terms.append(term())
        return terms[0] if len(terms) == 1 else Logical(op, tuple(terms), self.span_from(start))

    def _parse_membership(self) -> Expression:
        start = self.token.start
        found = self._parse_binary(EQUALITY)
        while self.take_word("in"):
            table = self.expect_name("the name of a table").value
            found = InTable(found, table, self.span_from(start))
        return found

    def _parse_binary(self, level: int) -> Expression:
        start = self.token.start
        left = self._parse_unary()
        links = 0
        while self.token.kind is Kind.OP and LEVELS.get(self.token.value, -1) >= level:
            op = self.advance().value
            right = self._parse_binary(LEVELS[op] + 1)
            left = Binary(op, left, right, self.span_from(start))
            links += 1
            if links > CHAIN_MAX:
                hint = "add parentheses around parts of it, or compute a part in a query before"
                self.report.fail(left.at, f"more than {CHAIN_MAX} operators in one chain", hint)
        return left

    def _parse_unary(self) -> Expression:
        if not self._at_not():
            return self._parse_postfix()
        start = self.token.start
        self.take_word("not")
        with self.nest():
            return Not(self._parse_unary(), self.span_from(start))

    def _at_not(self) -> bool:
        """`not` is also legal as a name: it negates where an operand follows."""
        if not self.at_word("not"):
            return False
        following = self.peek()
        if following.kind is Kind.OP:
            return following.value in {"(", "#", "!", "-", "+"}
        return following.kind is not Kind.END and following.word not in INFIX_WORDS

    def _parse_postfix(self) -> Expression:
        start = self.token.start
        operand = self._parse_primary()
        if self.at_word("is") and self.peek().word == "null":
            self.take_word("is")
            self.take_word("null")
            if isinstance(operand, StreamRef | AttrRef | Call):
                return IsNull(operand, self.span_from(start))
            self.report.fail(
                self.span_from(start),
                "'is null' takes an attribute, an element or a function call",
            )
        if isinstance(operand, StreamRef):
            self.fail("'.' and an attribute, or 'is null'")
        return operand

    def _parse_primary(self) -> Expression | StreamRef:
        token = self.token
        if token.kind in NUMBERS or self.at_op("-", "+"):
            return self._parse_number()
        if token.kind is Kind.STRING:
            self.advance()
            return Literal(AttrType.STRING, token.value, token.at)
        if self.take_op("("):
            inner = self.parse_expression()
            self.expect_op(")")
            return inner
        if token.word in {"true", "false"} and not self._names_something():
            self.keywords.add(self.index)
            self.advance()
            return Literal(AttrType.BOOL, token.word == "true", token.at)
        if self.at_name() or self.at_op("#", "!"):
            return self._parse_reference()
        return self.fail("an expression")

    def _names_something(self) -> bool:
        following = self.peek()
        return following.kind is Kind.OP and following.value in {".", "(", ":"}

    def _parse_number(self) -> Expression:
        start = self.token.start
        sign = ""
        if self.at_op("-", "+"):
            self.note_role("sign")
            sign = self.advance().value
        if self.token.kind not in NUMBERS:
            self.fail("a number", "only a literal takes a sign; write (0 - x) for the rest")
        token = self.token
        if token.kind is Kind.INT and self.peek().word in UNIT_WORDS and not sign:
            return self.parse_duration("a time")
        self.advance()
        return number(self, token, sign, start)

    def parse_duration(self, what: str) -> Duration:
        """`1 min 30 sec`: units once each, largest first."""
        start, total, rank = self.token.start, 0, -1
        while self.token.kind is Kind.INT and self.peek().word in UNIT_WORDS:
            amount = self.expect_count("a number of time units")
            unit = UNIT_WORDS[self.token.word]
            if UNIT_ORDER.index(unit) <= rank:
                self.fail("a smaller unit of time", "write units once each, largest first")
            rank = UNIT_ORDER.index(unit)
            self.keywords.add(self.index)
            self.advance()
            total += amount * UNITS_MS[unit]
        if rank < 0:
            self.fail(f"{what} such as '10 sec'", self._unit_hint())
        return Duration(total, self.span_from(start))

    def _unit_hint(self) -> str:
        if self.token.kind is Kind.INT:
            return "units are year, month, week, day, hour, min, sec and millisec"
        return ""

    def _parse_reference(self) -> Expression | StreamRef:
        """A function call, an attribute, `stream.attribute`, or a stream for `is null`."""
        start = self.token.start
        prefix = self.advance().value if self.at_op("#", "!") else ""
        name = self.expect_name("a name").value
        if not prefix and self.at_op("(", ":"):
            return self._parse_call(name, start)
        index = self._parse_index()
        if self.take_op("."):
            at = self.span_from(start)
            attribute = self.expect_name("the name of an attribute").value
            return AttrRef(attribute, StreamRef(name, prefix, index, at), self.span_from(start))
        if prefix or index is not None:
            return StreamRef(name, prefix, index, self.span_from(start))
        return AttrRef(name, None, self.span_from(start))

    def parse_attribute(self) -> AttrRef:
        """An attribute where nothing else is legal: group by, order by, set."""
        at = self.token.at
        found = self._parse_reference()
        if not isinstance(found, AttrRef):
            self.report.fail(at, "expected an attribute")
        return found

    def parse_call(self, what: str) -> Call:
        """A function call where nothing else is legal: windows and stream functions."""
        start = self.token.start
        name = self.expect_name(what).value
        if not self.at_op("(", ":"):
            self.fail("'(' and arguments")
        return self._parse_call(name, start)

    def _parse_call(self, name: str, start: int) -> Call:
        namespace = ""
        if self.take_op(":"):
            namespace, name = name, self.expect_name("the name of a function").value
        self.expect_op("(")
        args: tuple[Expression, ...] = ()
        star = False
        if self.at_op("*") and self.peek().value == ")":
            self.advance()
            star = True
        elif not self.at_op(")"):
            args = self.parse_list(self.parse_expression)
        self.expect_op(")")
        return Call(name, args, namespace, star, self.span_from(start))

    def _parse_index(self) -> int | None:
        if not self.at_op("["):
            return None
        following = self.peek()
        if following.kind is not Kind.INT and following.word != "last":
            return None
        self.advance()
        if self.take_word("last"):
            self.note_role("tight")
            index = -1 - (self.expect_count("an index") if self.take_op("-") else 0)
        else:
            index = self.expect_count("an index")
        self.expect_op("]")
        return index


def number(cursor: Cursor, token: Token, sign: str, start: int) -> Literal:
    """A signed literal, refused where its type cannot hold it."""
    at = (start, token.end)
    kind = NUMBERS[token.kind]
    if kind in {AttrType.FLOAT, AttrType.DOUBLE}:
        return Literal(kind, float(sign + token.value.rstrip("fFdD")), at)
    digits = token.value.rstrip("lL").lstrip("0") or "0"
    limit = (INT_MAX if kind is AttrType.INT else LONG_MAX) + (sign == "-")
    if len(digits) > 19 or int(digits) > limit:
        hint = "write it with L for a long" if kind is AttrType.INT else ""
        cursor.report.fail(at, f"too large for {kind.value}", hint)
    return Literal(kind, int(sign + digits), at)
