"""Write the loop of a feeder: what all shapes of `feeders` share.

A run comes as columns; a loop over them has the event at hand in locals. `write_calls` is the
loop that every query can be fed by.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.kernel.codegen.code_writer import CodeWriter, tuple_text
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.stream_query import QueryWriter, StreamQueryWriter


@dataclass(frozen=True, slots=True)
class Feeder:
    """A stream, and the query that reads it and gives its rows to the world alone.

    `others` are the functions of queries that read the stream after it.
    """

    builder: FragmentBuilder
    stream: str
    reader: QueryWriter | None
    others: tuple[str, ...] = ()

    @property
    def writer(self) -> CodeWriter:
        return self.builder.writer

    @property
    def name(self) -> str:
        return f"{self.builder.stream_name(self.stream)}_feed"

    @property
    def names(self) -> tuple[str, ...]:
        return self.builder.schema(self.stream).names

    @property
    def columns(self) -> dict[str, str]:
        return self.builder.event_locals(self.stream)

    @property
    def straight(self) -> bool:
        """Nothing can fail, and all events have one state."""
        return not self.builder.fragment.keyed and not self.builder.guarded(self.stream)

    def stream_query(self) -> StreamQueryWriter:
        assert isinstance(self.reader, StreamQueryWriter)
        return self.reader

    def row(self) -> str:
        return tuple_text(self.columns.values())

    def loop(self, used: list[str] | None = None) -> tuple[str, str]:
        """The variables of a loop over these attributes, or all, and their columns."""
        wanted = self.names if used is None else used
        left = ["ts", "offset", "clock", "at", *(self.columns[n] for n in wanted)]
        right = ["run.ts", "run.offset", "run.clock", "run.at"]
        if used is None:
            right.append("*run.columns")
        else:
            right += [f"columns[{self.names.index(n)}]" for n in wanted]
        return ", ".join(left), ", ".join(right)

    def fire_timers(self) -> None:
        if self.builder.timers:
            with self.writer.block("if heap and heap[0][0] <= clock"):
                self.writer.line("rt.fire(clock, at)")

    def move_clock(self, event: int) -> None:
        """The app's time becomes that of the first (0) or last (-1) event of the run."""
        with self.writer.block("if len(run.clock)"):
            self.writer.line(f"rt.now = max(rt.now, run.clock[{event}])")


def write_calls(feeder: Feeder) -> None:
    """Each event goes to the functions of all queries that read the stream."""
    w, builder = feeder.writer, feeder.builder
    w.line("heap = rt.heap")
    if not builder.fragment.keyed:
        w.line("S = None")
    left, right = feeder.loop()
    with w.block(f"for {left} in zip({right})"):
        with w.block("if heap and heap[0][0] <= clock"):
            w.line("rt.fire(clock, at)")
        w.line("rt.begin(clock, 1, offset, at)")
        if builder.fragment.keyed:
            key = tuple_text(feeder.columns[n] for n in builder.fragment.key_of(feeder.stream))
            w.line(f"S = rt.state({key})")
        else:
            with w.block("if S is None"):
                w.line("S = rt.state(())")
            w.line("rt.root = S")
        w.line(f"{builder.stream_name(feeder.stream)}(S, [(0, ts, {feeder.row()})])")
