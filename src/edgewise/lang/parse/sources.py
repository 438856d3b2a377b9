"""Parse the inputs of queries: a stream with its handlers, a join, an inner query."""

from __future__ import annotations

from edgewise.lang.parse.annotations import Annotations
from edgewise.lang.syntax.expr import Call, Expression
from edgewise.lang.syntax.query import (
    Filter,
    Handler,
    Join,
    Name,
    Query,
    Source,
    StreamFunction,
    Within,
)

JOIN_WORDS = ("join", "inner", "left", "right", "full", "outer", "unidirectional")


class Sources(Annotations):
    def parse_inner_query(self) -> Query:
        """`from ... return`, of which the last of these classes knows the rest."""
        raise NotImplementedError

    def parse_stream_name(self, what: str = "the name of a stream") -> Name:
        start = self.token.start
        prefix = self.advance().value if self.at_op("#", "!") else ""
        name = self.expect_name(what)
        return Name(name.value, prefix, self.span_from(start))

    def parse_source(self) -> Source:
        """A stream, or `(from ... return)`, with handlers and a window."""
        start = self.token.start
        stream: Name | Query = (
            self._parse_anonymous() if self.at_op("(") else self.parse_stream_name()
        )
        before = self._parse_handlers()
        window = self._parse_window()
        after = self._parse_handlers() if window else ()
        if self._at_window():
            self.report.fail(self.token.at, "a stream takes one window only")
        return Source(stream, before, window, after, "", self.span_from(start))

    def parse_basic_source(self) -> Source:
        """A stream with handlers and no window, as patterns take it."""
        start = self.token.start
        stream = self.parse_stream_name()
        handlers = self._parse_handlers()
        if self._at_window():
            hint = "put the window in a query before, and match on its output"
            self.report.fail(self.token.at, "a pattern element takes no window", hint)
        return Source(stream, handlers, None, (), "", self.span_from(start))

    def _parse_anonymous(self) -> Query:
        self.expect_op("(")
        with self.nest():
            found = self._parse_anonymous() if self.at_op("(") else self.parse_inner_query()
        self.expect_op(")")
        return found

    def _parse_handlers(self) -> tuple[Handler, ...]:
        found: list[Handler] = []
        while True:
            start = self.token.start
            if self.at_op("[") or (self.at_op("#") and self.peek().value == "["):
                self.take_op("#")
                self.expect_op("[")
                condition = self.parse_expression()
                self.expect_op("]")
                found.append(Filter(condition, self.span_from(start)))
            elif self.at_op("#") and not self._at_window():
                self.advance()
                call = self.parse_call("the name of a stream function")
                found.append(StreamFunction(call, self.span_from(start)))
            else:
                return tuple(found)

    def _at_window(self) -> bool:
        return self.at_op("#") and self.peek().word == "window" and self.peek(2).value == "."

    def _parse_window(self) -> Call | None:
        if not self._at_window():
            return None
        self.advance()
        self.take_word("window")
        self.expect_op(".")
        return self.parse_call("the name of a window")

    # Joins.

    def at_join(self) -> bool:
        return self.at_word("as", *JOIN_WORDS)

    def parse_join(self, left: Source) -> Join:
        start = left.at[0]
        left = self._parse_join_side(left)
        trigger = "left" if self.take_word("unidirectional") else ""
        kind = self._parse_join_kind()
        right = self._parse_join_side(self.parse_source())
        at = self.token.at
        if self.take_word("unidirectional"):
            if trigger:
                self.report.error(at, "only one side of a join can be unidirectional")
            trigger = "right"
        on = self.parse_expression() if self.take_word("on") else None
        within, per = self.parse_time_range()
        return Join(left, right, kind, trigger, on, within, per, self.span_from(start))

    def _parse_join_side(self, source: Source) -> Source:
        if source.after:
            hint = "put the filter before the window, or join on it"
            self.report.error(source.after[0].at, "a side of a join ends with its window", hint)
        if not self.take_word("as"):
            return source
        alias = self.expect_name("an alias").value
        at = self.span_from(source.at[0])
        return Source(source.stream, source.before, source.window, source.after, alias, at)

    def _parse_join_kind(self) -> str:
        kind = "inner"
        if self.at_word("left", "right", "full"):
            kind = self.expect_word("left", "right", "full")
            self.expect_word("outer")
        elif self.at_word("outer"):
            self.fail("'left', 'right' or 'full' before 'outer'", "write 'full outer join'")
        else:
            self.take_word("inner")
        self.expect_word("join")
        return kind

    def parse_time_range(self) -> tuple[Within | None, Expression | None]:
        """`within start[, end] per 'unit'` of an aggregation."""
        if not self.at_word("within"):
            return None, None
        begin = self.token.start
        self.take_word("within")
        start = self.parse_expression()
        end = self.parse_expression() if self.take_op(",") else None
        within = Within(start, end, self.span_from(begin))
        self.expect_word("per")
        return within, self.parse_expression()
