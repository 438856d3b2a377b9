"""Write the output rows of straight-line feeders: `OutRow` as a tuple, `OutColumns` as a call.

The fields are those of `kernel.api.OutRow`, in its order, and are written here only: feeders say
what differs. A row that an event causes has the phase 1 and is current; what it takes from the
event are the locals of the feeder's loop (`clock`, `offset`, `ts`, `at`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from edgewise.kernel.api import OutColumns, OutRow

_OF_EVENT = {
    "clock": "clock", "phase": "1", "offset": "offset", "seq": "0", "ts": "ts", "at": "at",
    "kind": "0",
}  # fmt: skip
_ROW_FIELDS = tuple(f.name for f in fields(OutRow))
_COLUMN_FIELDS = tuple(f.name for f in fields(OutColumns))


def emit_row(stream: str, data: str, seq: str = "0") -> str:
    """A row of the event at hand, as the tuple that `take_tuples` gives."""
    values = {**_OF_EVENT, "stream": repr(stream), "seq": seq, "data": data}
    return f"({', '.join(values[name] for name in _ROW_FIELDS)})"


def emit_columns(stream: str, columns: str, **given: str) -> list[str]:
    """The lines of an `OutColumns` of `n` rows; fields not given are those of current rows."""
    values = {
        "phase": "(1,) * n", "seq": "(0,) * n", "kind": "(0,) * n",
        **given, "stream": repr(stream), "columns": columns,
    }  # fmt: skip
    return ["OutColumns(", *(f"    {name}={values[name]}," for name in _COLUMN_FIELDS), ")"]


@dataclass(frozen=True, slots=True)
class RowSink:
    """Where straight-line code puts its rows: the line for one, from its data and its number.

    `numbered`: rows of one event carry how many came before them.
    """

    line: Callable[[str, str], str]
    numbered: bool = False

    def write(self, data: str, seq: str = "0") -> str:
        return self.line(data, seq)


def chunk_sink() -> RowSink:
    """Rows of a chunk, in the list `out`."""
    return RowSink(lambda data, _seq: f"out.append((0, ts, {data}))")


def output_sink(stream: str) -> RowSink:
    """Rows for the world, in the list `rows`."""
    return RowSink(lambda data, seq: f"rows.append({emit_row(stream, data, seq)})", numbered=True)
