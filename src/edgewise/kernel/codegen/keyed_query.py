"""Write queries that hold matches by key, in straight lines: what chains and sequences share.

Their state lives outside the partition it stands for: one dictionary for all keys, so that no key
has a state, timers and operators of its own. Used by `chain_query` and `sequence_query`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.row_layout import RowLayout
from edgewise.kernel.codegen.row_text import RowSink, chunk_sink
from edgewise.kernel.codegen.stream_query import QueryWriter
from edgewise.plan.exprs import Field
from edgewise.plan.nodes import EventType, InsertInto, Query, StateInput


def is_plain(query: Query) -> bool:
    """Each match is one row for a stream, and nothing looks at two of them."""
    select, output = query.select, query.output
    return (
        not select.group_by
        and select.having is None
        and not select.order_by
        and select.limit is None
        and select.offset is None
        and query.rate is None
        and query.state is None
        and isinstance(output, InsertInto)
        and output.events is EventType.CURRENT
    )


def partition_fields(
    builder: FragmentBuilder, query: Query, streams: list[str]
) -> dict[str, str] | None:
    """The attribute that keys each stream, where the partition holds this query alone."""
    partition = builder.app.partition(query.partition)
    alone = sum(q.partition == query.partition for q in builder.queries) == 1
    if partition is None or not alone or partition.state is not None:
        return None
    values = {k.stream: k.value for k in partition.keys}
    fields = {s: v for s in streams if isinstance(v := values.get(s), Field)}
    if set(fields) != set(streams) or len({f.type for f in fields.values()}) > 1:
        return None
    return {stream: field.name for stream, field in fields.items()}


@dataclass(frozen=True, slots=True)
class EventTest:
    """A test of single events: the attributes it reads, and its text for one and for columns."""

    names: list[str]
    test: str
    mask: str


class KeyedQueryWriter(QueryWriter):
    """`_in_<n>(S, chunk)` per stream; state lives outside the partition it stands for."""

    fresh = opened = ""  # its state when new, and the locals that hold it

    def __init__(self, builder: FragmentBuilder, query: Query, streams: Iterable[str]) -> None:
        super().__init__(builder, query, RowLayout())
        self.tracks = builder.by_key is not None
        self.streams = tuple(dict.fromkeys(streams))
        self.locals = {stream: builder.event_locals(stream) for stream in self.streams}
        source = query.input
        assert isinstance(source, StateInput)
        self.within = source.within_ms
        # What is too old is so by this: rows of queries may be far behind the clock.
        by_clock = self.within is not None and builder.given(self.streams)
        self.now = "clock" if by_clock else "ts"
        self.cell = 0

    def write(self) -> None:
        w = self.writer
        self.output.write()
        self.cell = self.builder.root.cell(self.fresh)
        if self.tracks:
            self.builder.by_key = self.cell
            w.line("dirty = rt.dirty")
        self.before()
        for n, stream in enumerate(self.streams):
            names, used = self.builder.schema(stream).names, self.used(stream)
            w.line()
            with w.block(f"def {self.name}_in_{n}(S, chunk)"):
                w.line("out, clock = [], rt.now" if self.now == "clock" else "out = []")
                w.line(f"{self.opened} = rt.root[{self.cell}]")
                with w.block("for _, ts, row in chunk"):
                    values = self.locals[stream]
                    w.assign((values[a] for a in used), (f"row[{names.index(a)}]" for a in used))
                    self.event(stream, chunk_sink())
                with w.block("if out"):
                    w.line(f"{self.name}_out(S, out)")

    def touch(self, key: str) -> None:
        """The state of this key is no longer what was saved."""
        if self.tracks:
            self.writer.line(f"dirty.add({key})")

    def entry(self, stream: str) -> str:
        return f"{self.name}_in_{self.streams.index(stream)}"

    def before(self) -> None:
        """Functions that the code of an event calls."""

    def used(self, stream: str) -> list[str]:
        """The attributes of an event of this stream that the code reads, in order."""
        raise NotImplementedError

    def event(self, stream: str, sink: RowSink) -> None:
        """One event, as `ts` and the locals of its stream, in a loop; its rows go to the sink."""
        raise NotImplementedError

    def suits(self, _stream: str) -> EventTest | None:
        """Whether an event may be of use at all; None where any may."""
        return None

    def at_last(self) -> None:
        """After a run of which only events that suit were looked at."""
