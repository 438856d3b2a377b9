"""`define stream | table | window | trigger | function | aggregation`."""

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
    def definition(self, annotations: tuple[Annotation, ...]) -> Definition:
        start = annotations[0].at[0] if annotations else self.token.start
        self.expect_word("define")
        match self.expect_word(*WHAT):
            case "stream":
                name, columns = self._shape("stream")
                return StreamDefinition(name, columns, annotations, self.since(start))
            case "table":
                name, columns = self._shape("table")
                return TableDefinition(name, columns, annotations, self.since(start))
            case "window":
                return self._named_window(annotations, start)
            case "trigger":
                return self._trigger(annotations, start)
            case "function":
                return self._function(annotations, start)
            case _:
                return self._aggregation(annotations, start)

    def _shape(self, what: str) -> tuple[Name, tuple[Column, ...]]:
        name = self.stream_name(f"the name of the {what}")
        self.mark("shape")
        self.expect_op("(")
        columns = self.listed(self._column)
        self.expect_op(")")
        return name, columns

    def _column(self) -> Column:
        start = self.token.start
        name = self.expect_name("the name of an attribute").value
        return Column(name, self._type(), self.since(start))

    def _type(self) -> AttrType:
        if not self.at_word(*TYPES):
            self.fail("a type: " + ", ".join(TYPES))
        return AttrType(self.expect_word(*TYPES))

    def _named_window(self, annotations: tuple[Annotation, ...], start: int) -> WindowDefinition:
        name, columns = self._shape("window")
        window = self.call("a window such as length(10)")
        events = "all"
        if self.take_word("output"):
            events = self.output_event_type()
        at = self.since(start)
        return WindowDefinition(name, columns, window, events, annotations, at)

    def _trigger(self, annotations: tuple[Annotation, ...], start: int) -> TriggerDefinition:
        name = self.stream_name("the name of the trigger")
        self.expect_word("at")
        if self.take_word("every"):
            every = self.duration("a time")
            return TriggerDefinition(name, every, "", annotations, self.since(start))
        when = self.expect_string("'every', or 'start' or a cron expression in quotes")
        return TriggerDefinition(name, None, when, annotations, self.since(start))

    def _function(self, annotations: tuple[Annotation, ...], start: int) -> FunctionDefinition:
        name = self.stream_name("the name of the function")
        self.expect_op("[")
        language = self.expect_name("the language of the body").value
        self.expect_op("]")
        self.expect_word("return")
        returns = self._type()
        if self.token.kind is not Kind.SCRIPT:
            self.fail("a body between '{' and '}'")
        body = self.advance().value
        return FunctionDefinition(name, language, returns, body, annotations, self.since(start))

    def _aggregation(
        self, annotations: tuple[Annotation, ...], start: int
    ) -> AggregationDefinition:
        name = self.stream_name("the name of the aggregation")
        self.expect_word("from")
        source = self.source()
        selection = self.selection()
        if selection is None:
            self.fail("'select'")
        self.expect_word("aggregate")
        by = None
        if self.take_word("by"):
            by = self.attribute()
        self.expect_word("every")
        durations = [self._unit()]
        is_range = self.take_op("...")
        if is_range:
            durations.append(self._unit())
        else:
            while self.take_op(","):
                durations.append(self._unit())
        at = self.since(start)
        return AggregationDefinition(
            name, source, selection, tuple(durations), is_range, by, annotations, at
        )

    def _unit(self) -> str:
        unit = UNIT_WORDS.get(self.token.word, "")
        if unit in {"", "millisec", "week"}:
            hint = "an aggregation keeps no weeks; use day" if unit == "week" else ""
            self.fail("one of sec, min, hour, day, month, year", hint)
        self.keywords.add(self.index)
        self.advance()
        assert unit in UNIT_ORDER
        return unit
