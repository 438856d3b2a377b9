"""Parse queries (input, selection, rate, output, in this order), partitions, on-demand queries."""

from __future__ import annotations

from edgewise.lang.parse.states import States
from edgewise.lang.syntax.expr import AttrRef, Expression
from edgewise.lang.syntax.query import (
    Annotation,
    Assignment,
    Name,
    OnDemand,
    OrderItem,
    Output,
    Partition,
    PartitionKey,
    Query,
    QueryInput,
    RangeKey,
    Rate,
    Selection,
    SelectItem,
)
from edgewise.lang.tokens import Kind

OUTPUTS = ("insert", "delete", "update", "return")
EVENT_TYPES = ("all", "expired", "current", "timeout")


class Queries(States):
    def parse_query(self, annotations: tuple[Annotation, ...]) -> Query:
        start = annotations[0].at[0] if annotations else self.token.start
        self.expect_word("from")
        query_input = self._parse_input()
        selection = self.parse_selection()
        rate = self._parse_rate()
        output = self._parse_output()
        return Query(annotations, query_input, selection, rate, output, self.span_from(start))

    def parse_inner_query(self) -> Query:
        query = self.parse_query(())
        if query.output.kind != "return":
            self.report.error(query.output.at, "a query in parentheses ends with 'return'")
        return query

    def _parse_input(self) -> QueryInput:
        if self.at_state_start():
            return self.parse_state_input()
        first = self.parse_source()
        if self.at_state_end():
            return self.parse_state_input(first)
        if self.at_join():
            return self.parse_join(first)
        return first

    # select ... group by ... having ... order by ... limit ... offset

    def parse_selection(self) -> Selection | None:
        start = self.token.start
        if not self.take_word("select"):
            return None
        items = () if self.take_op("*") else self.parse_list(self._parse_item)
        group_by: tuple[AttrRef, ...] = ()
        if self.take_word("group"):
            self.expect_word("by")
            group_by = self.parse_list(self.parse_attribute)
        having = self.parse_expression() if self.take_word("having") else None
        order_by: tuple[OrderItem, ...] = ()
        if self.take_word("order"):
            self.expect_word("by")
            order_by = self.parse_list(self._parse_order)
        limit = self.parse_expression() if self.take_word("limit") else None
        offset = self.parse_expression() if self.take_word("offset") else None
        at = self.span_from(start)
        return Selection(items, group_by, having, order_by, limit, offset, at)

    def _parse_item(self) -> SelectItem:
        start = self.token.start
        expression = self.parse_expression()
        alias = ""
        if self.take_word("as"):
            alias = self.expect_name("a name for the attribute").value
        elif not isinstance(expression, AttrRef):
            at = self.span_from(start)
            self.report.error(
                at, "this expression needs a name", "add 'as name': it becomes an attribute"
            )
        return SelectItem(expression, alias, self.span_from(start))

    def _parse_order(self) -> OrderItem:
        start = self.token.start
        ref = self.parse_attribute()
        descending = False
        if self.at_word("asc", "desc"):
            descending = self.expect_word("asc", "desc") == "desc"
        return OrderItem(ref, descending, self.span_from(start))

    # output [all|last|first|snapshot] every ...

    def _parse_rate(self) -> Rate | None:
        start = self.token.start
        if not self.take_word("output"):
            return None
        kind = "all"
        if self.at_word("all", "last", "first", "snapshot"):
            kind = self.expect_word("all", "last", "first", "snapshot")
        self.expect_word("every")
        if self.token.kind is Kind.INT and self.peek().word == "events":
            events = self.expect_count("a number of events")
            self.take_word("events")
            at = self.span_from(start)
            if kind == "snapshot":
                self.report.error(at, "a snapshot is taken every time span, not every n events")
            if events < 1:
                self.report.error(at, "a rate needs at least one event")
            return Rate(kind, None, events, at)
        every = self.parse_duration("a time or a number of events")
        return Rate(kind, every, None, self.span_from(start))

    # insert, delete, update, update or insert, return

    def _parse_output(self) -> Output:
        start = self.token.start
        kind = self.expect_word(*OUTPUTS)
        if kind == "return":
            return Output(
                "return", None, self._parse_event_type(), (), None, self.span_from(start)
            )
        if kind == "insert":
            events = self._parse_event_type()
            self.expect_word("into")
            target = self.parse_stream_name()
            return Output("insert", target, events, (), None, self.span_from(start))
        return self._parse_change(kind, start, with_events=True)

    def _parse_change(self, kind: str, start: int, *, with_events: bool) -> Output:
        if kind == "update" and self.take_word("or"):
            self.expect_word("insert")
            self.expect_word("into")
            kind = "upsert"
        target = self.parse_stream_name("the name of a table")
        events = "current"
        if with_events and self.take_word("for"):
            events = self._parse_event_type()
        assignments = self._parse_assignments() if kind != "delete" else ()
        on: Expression | None = None
        if self.take_word("on"):
            on = self.parse_expression()
        elif kind != "delete":
            self.fail("'on' and a condition")
        return Output(kind, target, events, assignments, on, self.span_from(start))

    def _parse_event_type(self) -> str:
        if not self.at_word(*EVENT_TYPES, "events"):
            return "current"
        kind = "current"
        if not self.at_word("events"):
            kind = self.expect_word(*EVENT_TYPES)
        self.expect_word("events")
        return kind

    def parse_output_event_type(self) -> str:
        """Where the type must follow: after `output` of a named window."""
        if not self.at_word("all", "expired", "current", "events"):
            self.fail("'all events', 'expired events' or 'current events'")
        return self._parse_event_type()

    def _parse_assignments(self) -> tuple[Assignment, ...]:
        return self.parse_list(self._parse_assignment) if self.take_word("set") else ()

    def _parse_assignment(self) -> Assignment:
        start = self.token.start
        target = self.parse_attribute()
        self.note_role("assign")
        self.expect_op("=")
        return Assignment(target, self.parse_expression(), self.span_from(start))

    # partition with (...) begin ... end

    def parse_partition(self, annotations: tuple[Annotation, ...]) -> Partition:
        start = annotations[0].at[0] if annotations else self.token.start
        self.expect_word("partition")
        self.expect_word("with")
        self.expect_op("(")
        keys = self.parse_list(self._parse_partition_key)
        self.expect_op(")")
        self.expect_word("begin")
        queries: list[Query] = []
        while not self.at_word("end") and not self.at_end():
            with self.recover("end"):
                queries.append(self.parse_query(self.parse_annotations()))
                if not self.at_word("end") and not self.at_op(";"):
                    self.fail("';' or 'end'")
            self.take_op(";")
        self.expect_word("end")
        at = self.span_from(start)
        if not queries and not self.report.failed:
            self.report.error(at, "a partition holds at least one query")
        return Partition(annotations, keys, tuple(queries), at)

    def _parse_partition_key(self) -> PartitionKey:
        start = self.token.start
        value: Expression | None = self.parse_expression()
        ranges: list[RangeKey] = []
        if self.at_word("as"):
            assert value is not None
            ranges = self._parse_ranges(value)
            value = None
        self.expect_word("of")
        stream = self.parse_stream_name()
        return PartitionKey(stream, value, tuple(ranges), self.span_from(start))

    def _parse_ranges(self, first: Expression) -> list[RangeKey]:
        found: list[RangeKey] = []
        condition = first
        while True:
            self.expect_word("as")
            label = self.expect_string("a label in quotes")
            found.append(RangeKey(condition, label, self.span_from(condition.at[0])))
            if not self.take_word("or"):
                return found
            condition = self.parse_expression()

    # On demand: one query against tables, named windows and aggregations.

    def parse_on_demand(self) -> OnDemand:
        start = self.token.start
        if not self.take_word("from"):
            selection = self.parse_selection()
            return OnDemand(
                selection=selection,
                output=self._parse_on_demand_output(),
                at=self.span_from(start),
            )
        store: Name = self.parse_stream_name("the name of a table, window or aggregation")
        alias = self.expect_name("an alias").value if self.take_word("as") else ""
        on = self.parse_expression() if self.take_word("on") else None
        within, per = self.parse_time_range()
        selection = self.parse_selection()
        output = self._parse_on_demand_output() if self.at_word(*OUTPUTS[:3]) else None
        return OnDemand(store, alias, on, within, per, selection, output, self.span_from(start))

    def _parse_on_demand_output(self) -> Output:
        start = self.token.start
        kind = self.expect_word(*OUTPUTS[:3])
        if kind == "insert":
            self.expect_word("into")
            target = self.parse_stream_name("the name of a table")
            return Output("insert", target, at=self.span_from(start))
        return self._parse_change(kind, start, with_events=False)
