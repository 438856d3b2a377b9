"""Parse patterns (`->`) and sequences (`,`).

Both are read the same way; the first separator says which of the two it is. The few things only
one of them allows are refused with the way to write it in the other.
"""

from __future__ import annotations

from edgewise.lang.parse.sources import Sources
from edgewise.lang.source import At
from edgewise.lang.syntax.expr import Duration
from edgewise.lang.syntax.query import (
    Absent,
    Both,
    Chain,
    Count,
    Element,
    Every,
    Query,
    Source,
    State,
    StateInput,
)
from edgewise.lang.tokens import Kind

SEPARATORS = {"->": "pattern", ",": "sequence"}
STATES_MAX = 500  # of one chain; every element sees all others, so cost grows with the square
SHORT_COUNTS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class States(Sources):
    _separator: str = ""
    _short_count: At | None = None

    def at_state_start(self) -> bool:
        """What can only begin a pattern or sequence: `every`, `not`, `name =`, a parenthesis."""
        following = self.peek()
        if self.at_op("("):
            return not self._at_inner_query()
        if self.at_word("every"):
            return following.kind in {Kind.WORD, Kind.QUOTED} or following.value in {"(", "#", "!"}
        if self.at_word("not"):
            return following.kind in {Kind.WORD, Kind.QUOTED} or following.value in {"#", "!"}
        return self.at_name() and following.value == "="

    def _at_inner_query(self) -> bool:
        ahead = 1
        while self.peek(ahead).value == "(" and self.peek(ahead).kind is Kind.OP:
            ahead += 1
        return self.peek(ahead).word == "from"

    def at_state_end(self) -> bool:
        """What after a plain source makes it the first element of a pattern or sequence."""
        return self.at_op("->", ",", "<", "*", "+", "?") or self.at_word("and", "or")

    def parse_state_input(self, first: Source | None = None) -> StateInput:
        start = self.token.start if first is None else first.at[0]
        outer = self._reset_separator()
        state = self._parse_chain(first)
        kind = SEPARATORS.get(self._separator, "pattern")
        if kind == "pattern" and self._short_count:
            hint = "write <0:> for *, <1:> for +, <0:1> for ?"
            self.report.error(self._short_count, "only a sequence takes *, + and ?", hint)
        within: Duration | None = None
        if self.take_word("within"):
            within = self.parse_duration("a time")
        self._separator = outer
        return StateInput(kind, state, within, self.span_from(start))

    def _reset_separator(self) -> str:
        outer, self._separator, self._short_count = self._separator, "", None
        return outer

    def _parse_chain(self, first: Source | None = None) -> State:
        start = self.token.start if first is None else first.at[0]
        states = [self._parse_link(first)]
        while self.at_op("->", ","):
            if len(states) >= STATES_MAX:
                hint = "split it: a query may select into a stream that the next one reads"
                self.report.fail(self.token.at, f"more than {STATES_MAX} elements", hint)
            at, separator = self.token.at, self.advance().value
            if self._separator and separator != self._separator:
                hint = "'->' makes a pattern and ',' a sequence; split it into two queries"
                self.report.fail(at, "a pattern and a sequence cannot be mixed", hint)
            self._separator = separator
            states.append(self._parse_link())
        return _flat(states, self.span_from(start))

    def _parse_link(self, first: Source | None = None) -> State:
        start = self.token.start if first is None else first.at[0]
        if first is None and self.at_word("every") and self.at_state_start():
            self.take_word("every")
            state = self._parse_group() if self._at_group() else self._parse_element_or_pair()
            return Every(state, self.span_from(start))
        if first is None and self._at_group():
            return self._parse_group()
        return self._parse_element_or_pair(first)

    def _at_group(self) -> bool:
        return self.at_op("(")

    def _parse_group(self) -> State:
        """`( chain )`; a parenthesised logical pair is a chain of one."""
        self.expect_op("(")
        with self.nest():
            state = self._parse_chain()
        self.expect_op(")")
        if isinstance(state, Element | Absent) and self.at_word("and", "or"):
            return self._parse_pair(state)
        return state

    def _parse_element_or_pair(self, first: Source | None = None) -> State:
        """One element, a counted one, or two with `and` or `or` between."""
        left = self._parse_element(first)
        if self.at_word("and", "or") and isinstance(left, Element | Absent):
            return self._parse_pair(left)
        return left

    def _parse_pair(self, left: Element | Absent) -> Both:
        op = self.expect_word("and", "or")
        at = self.token.at
        parenthesised = self.take_op("(")
        right = self._parse_element()
        if parenthesised:
            self.expect_op(")")
        if isinstance(right, Count):
            self.report.fail(at, f"a counted element cannot stand beside '{op}'")
        if self.at_word("and", "or"):
            hint = "'and' and 'or' join two elements; write further ones as a chain"
            self.report.fail(self.token.at, "more than two elements joined", hint)
        return Both(op, left, right, self.span_from(left.at[0]))

    def _parse_element(self, first: Source | None = None) -> Element | Count | Absent:
        start = self.token.start if first is None else first.at[0]
        if first is None and self.at_word("not") and self.peek().value != "=":
            self.take_word("not")
            source = self.parse_basic_source()
            waiting = self.parse_duration("a time") if self.take_word("for") else None
            return Absent(source, waiting, self.span_from(start))
        ref = ""
        if first is None and self.at_name() and self.peek().value == "=":
            ref = self.advance().value
            self.expect_op("=")
        source = self.parse_basic_source() if first is None else self._check_element(first)
        element = Element(source, ref, self.span_from(start))
        return self._parse_count(element)

    def _check_element(self, source: Source) -> Source:
        if source.window:
            hint = "put the window in a query before, and match on its output"
            self.report.fail(source.window.at, "a pattern element takes no window", hint)
        if isinstance(source.stream, Query):
            hint = "insert its rows into a stream, and match on that"
            self.report.fail(source.stream.at, "a pattern element is a stream, no query", hint)
        return source

    def _parse_count(self, element: Element) -> Element | Count:
        start = element.at[0]
        if self.at_op(*SHORT_COUNTS):
            self._short_count = self.token.at
            self.note_role("tight")
            least, most = SHORT_COUNTS[self.advance().value]
            return Count(element, least, most, self.span_from(start))
        if not self.at_op("<"):
            return element
        self.note_role("tight")
        self.advance()
        at = self.token.at
        low = self.expect_count("a count") if self.token.kind is Kind.INT else None
        high = low
        if self.take_op(":"):
            high = self.expect_count("a count") if self.token.kind is Kind.INT else None
        if low is None and high is None:
            self.fail("a count such as <2>, <1:3>, <2:> or <:5>")
        self.note_role("close")
        self.expect_op(">")
        least = low or 0
        if high is not None and high < least:
            self.report.error(at, f"at least {least} and at most {high} can never match")
        return Count(element, least, high, self.span_from(start))


def _flat(states: list[State], at: At) -> State:
    """A chain inside a chain, not under `every`, is the same chain."""
    flat: list[State] = []
    for state in states:
        flat.extend(state.states if isinstance(state, Chain) else (state,))
    return flat[0] if len(flat) == 1 else Chain(tuple(flat), at)
