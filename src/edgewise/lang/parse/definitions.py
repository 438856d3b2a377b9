"""Parse `define stream | table | window | trigger | function | aggregation`."""

from __future__ import annotations

from edgewise.event.types import AttrType
from edgewise.lang.parse.queries import Queries
from edgewise.lang.syntax.app import (
    AggregationDefinition,
    Column,
    Definition,
    FunctionDefinition,
    StreamDefinition,
    TableDefinition,
    TriggerDefinition,
    WindowDefinition,
)
from edgewise.lang.syntax.query import Annotation, Name
from edgewise.lang.tokens import UNIT_ORDER, UNIT_WORDS, Kind

TYPES = tuple(t.value for t in AttrType)
WHAT = ("stream", "table", "window", "trigger", "function", "aggregation")


class Definitions(Queries):
    def parse_definition(self, annotations: tuple[Annotation, ...]) -> Definition:
        start = annotations[0].at[0] if annotations else self.token.start
        self.expect_word("define")
        match self.expect_word(*WHAT):
            case "stream":
                name, columns = self._parse_shape("stream")
                return StreamDefinition(name, columns, annotations, self.span_from(start))
            case "table":
                name, columns = self._parse_shape("table")
                return TableDefinition(name, columns, annotations, self.span_from(start))
            case "window":
                return self._parse_named_window(annotations, start)
            case "trigger":
                return self._parse_trigger(annotations, start)
            case "function":
                return self._parse_function(annotations, start)
            case _:
                return self._parse_aggregation(annotations, start)

    def _parse_shape(self, what: str) -> tuple[Name, tuple[Column, ...]]:
        name = self.parse_stream_name(f"the name of the {what}")
        self.note_role("shape")
        self.expect_op("(")
        columns = self.parse_list(self._parse_column)
        self.expect_op(")")
        return name, columns

    def _parse_column(self) -> Column:
        start = self.token.start
        name = self.expect_name("the name of an attribute").value
        return Column(name, self._parse_type(), self.span_from(start))

    def _parse_type(self) -> AttrType:
        if not self.at_word(*TYPES):
            self.fail("a type: " + ", ".join(TYPES))
        return AttrType(self.expect_word(*TYPES))

    def _parse_named_window(
        self, annotations: tuple[Annotation, ...], start: int
    ) -> WindowDefinition:
        name, columns = self._parse_shape("window")
        window = self.parse_call("a window such as length(10)")
        events = "all"
        if self.take_word("output"):
            events = self.parse_output_event_type()
        at = self.span_from(start)
        return WindowDefinition(name, columns, window, events, annotations, at)

    def _parse_trigger(self, annotations: tuple[Annotation, ...], start: int) -> TriggerDefinition:
        name = self.parse_stream_name("the name of the trigger")
        self.expect_word("at")
        if self.take_word("every"):
            every = self.parse_duration("a time")
            return TriggerDefinition(name, every, "", annotations, self.span_from(start))
        when = self.expect_string("'every', or 'start' or a cron expression in quotes")
        return TriggerDefinition(name, None, when, annotations, self.span_from(start))

    def _parse_function(
        self, annotations: tuple[Annotation, ...], start: int
    ) -> FunctionDefinition:
        name = self.parse_stream_name("the name of the function")
        self.expect_op("[")
        language = self.expect_name("the language of the body").value
        self.expect_op("]")
        self.expect_word("return")
        returns = self._parse_type()
        if self.token.kind is not Kind.SCRIPT:
            self.fail("a body between '{' and '}'")
        body = self.advance().value
        return FunctionDefinition(
            name, language, returns, body, annotations, self.span_from(start)
        )

    def _parse_aggregation(
        self, annotations: tuple[Annotation, ...], start: int
    ) -> AggregationDefinition:
        name = self.parse_stream_name("the name of the aggregation")
        self.expect_word("from")
        source = self.parse_source()
        selection = self.parse_selection()
        if selection is None:
            self.fail("'select'")
        self.expect_word("aggregate")
        by = None
        if self.take_word("by"):
            by = self.parse_attribute()
        self.expect_word("every")
        durations = [self._parse_unit()]
        is_range = self.take_op("...")
        if is_range:
            durations.append(self._parse_unit())
        else:
            while self.take_op(","):
                durations.append(self._parse_unit())
        at = self.span_from(start)
        return AggregationDefinition(
            name, source, selection, tuple(durations), is_range, by, annotations, at
        )

    def _parse_unit(self) -> str:
        unit = UNIT_WORDS.get(self.token.word, "")
        if unit in {"", "millisec", "week"}:
            hint = "an aggregation keeps no weeks; use day" if unit == "week" else ""
            self.fail("one of sec, min, hour, day, month, year", hint)
        self.keywords.add(self.index)
        self.advance()
        assert unit in UNIT_ORDER
        return unit
