"""Walk the tokens: peek, take, expect, and fail with what would have been legal.

Nesting is bounded by `NESTING_MAX`, so no input can exhaust the interpreter's stack, here or in
whoever walks the tree later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from edgewise.lang.report import Refused, Report, suggest_nearest
from edgewise.lang.source import At
from edgewise.lang.tokens import Kind, Token

T = TypeVar("T")

CLAUSES = (
    "clauses come in this order: from, select, group by, having, order by, limit, offset, output, "
    "insert into"
)
# What people who know other languages write here, and how it is written in SiddhiQL.
SLIPS = {
    "=": "write == to compare",
    "where": "write the condition in brackets behind the stream: from S[a > 3]",
    "<>": "write != for unequal",
    **dict.fromkeys(("select", "insert", "group", "having", "order", "limit"), CLAUSES),
}
NESTING_MAX = 60  # an author's deepest is about ten; generated code may nest 200, Python 1000


class Cursor:
    def __init__(self, tokens: list[Token], report: Report) -> None:
        self.tokens = tokens
        self.report = report
        self.index = 0
        self.token = tokens[0]
        self.depth = 0
        self.keywords: set[int] = set()  # indexes of tokens that were read as keywords
        self.roles: dict[int, str] = {}  # of signs that the formatter cannot tell apart alone
        self._tried: set[str] = set()  # words that would have been legal here

    def advance(self) -> Token:
        token = self.token
        if token.kind is not Kind.END:
            self.index += 1
            self.token = self.tokens[self.index]
        self._tried.clear()
        return token

    def note_role(self, role: str) -> None:
        """Tell the formatter what the sign at hand is."""
        self.roles[self.index] = role

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def span_from(self, start: int) -> At:
        """From an offset to the end of the last token taken."""
        end = self.tokens[self.index - 1].end if self.index else start
        return start, max(start, end)

    def at_end(self) -> bool:
        return self.token.kind is Kind.END

    # Words: keywords by place.

    def at_word(self, *words: str) -> bool:
        self._tried.update(words)
        return self.token.word in words

    def take_word(self, *words: str) -> bool:
        if self.at_word(*words):
            self.keywords.add(self.index)
            self.advance()
            return True
        return False

    def expect_word(self, *words: str) -> str:
        word = self.token.word
        if not self.take_word(*words):
            self.fail(" or ".join(f"'{w}'" for w in words))
        return word

    # Signs.

    def at_op(self, *ops: str) -> bool:
        return self.token.kind is Kind.OP and self.token.value in ops

    def take_op(self, *ops: str) -> bool:
        if self.at_op(*ops):
            self.advance()
            return True
        return False

    def expect_op(self, op: str) -> None:
        if not self.take_op(op):
            self.fail(f"'{op}'")

    # Names and plain values.

    def at_name(self) -> bool:
        return self.token.kind in {Kind.WORD, Kind.QUOTED}

    def expect_name(self, what: str) -> Token:
        if not self.at_name():
            self.fail(what)
        return self.advance()

    def expect_string(self, what: str) -> str:
        if self.token.kind is not Kind.STRING:
            self.fail(what)
        return self.advance().value

    def expect_count(self, what: str) -> int:
        """A plain int such as an index or a number of events."""
        if self.token.kind is not Kind.INT:
            self.fail(what)
        if len(self.token.value) > 9:
            self.report.fail(self.token.at, f"{what} is too large")
        return int(self.advance().value)

    def parse_list(self, read: Callable[[], T]) -> tuple[T, ...]:
        """One or more, with commas between."""
        found = [read()]
        while self.take_op(","):
            found.append(read())
        return tuple(found)

    # Failing and going on.

    def fail(self, expected: str, hint: str = "") -> NoReturn:
        found = self.token
        if found.kind is Kind.BROKEN:  # the lexer has told already
            raise Refused
        before = self.tokens[self.index - 1] if self.index else found
        text = "<>" if (before.value, found.value) == ("<", ">") else self._text(found)
        hint = hint or SLIPS.get(text.lower(), "")
        if not hint and found.kind is Kind.WORD and len(found.word) > 1:
            hint = suggest_nearest(found.value, self._tried - {found.word})
        named = found.kind.value if found.kind is Kind.END else f"'{self._text(found)}'"
        self.report.fail(self._point(found), f"expected {expected}, found {named}", hint)

    def _text(self, token: Token, limit: int = 40) -> str:
        text = self.report.source.text[token.start : token.end]
        return text if len(text) <= limit else text[:limit] + "..."

    def _point(self, token: Token) -> At:
        """At the end of the app, point after its last token rather than past its last line."""
        if token.kind is Kind.END and self.index:
            end = self.tokens[self.index - 1].end
            return end, end
        return token.at

    @contextmanager
    def nest(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > NESTING_MAX:
            self.depth = 0
            self.report.fail(
                self.token.at,
                f"nested more than {NESTING_MAX} deep",
                "split it: a query may select into a stream that the next one reads",
            )
        try:
            yield
        finally:
            self.depth = max(0, self.depth - 1)

    @contextmanager
    def recover(self, *stops: str) -> Iterator[None]:
        """After a failure inside, skip to the next ';' (or one of the words) and go on."""
        try:
            yield
        except Refused:
            self.depth = 0
            while not (self.at_op(";") or self.at_end() or self.token.word in stops):
                self.advance()
