"""Give rows back to a notebook: a list that is also a table, for pandas and Arrow.

`Rows` is a plain list of events, so that a program may go through it as it likes. Tables are of
one stream, because two streams have different columns. Arrow and pandas are loaded when asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from edgewise.errors import SetupError
from edgewise.event.event import Event, EventKind
from edgewise.event.schema import Schema

SHOWN_MAX = 20  # rows of a table on a page; the rest is counted


class Rows(list[Event]):
    """Rows that an app gave: each has `stream`, `ts`, `data` and `kind`.

    >>> app = edgewise.App("define stream S (v int); from S select v * 2 as w insert into O;")
    >>> rows = app.run([(1,), (4,)])
    >>> rows.data()
    [(2,), (8,)]
    >>> rows.of("O").dicts()
    [{'w': 2}, {'w': 8}]
    >>> rows.to_pandas()["w"].sum()
    np.int64(10)
    """

    def __init__(self, rows: Iterable[Event], schemas: Mapping[str, Schema]) -> None:
        super().__init__(rows)
        self.schemas = dict(schemas)

    def of(self, stream: str) -> Rows:
        """The rows of one stream."""
        return Rows((row for row in self if row.stream == stream), {stream: self._schema(stream)})

    def data(self) -> list[tuple[Any, ...]]:
        """The values of each row, as a tuple."""
        return [row.data for row in self]

    def dicts(self) -> list[dict[str, Any]]:
        """Each row by the names of its attributes."""
        names = {name: schema.names for name, schema in self.schemas.items()}
        return [dict(zip(names[row.stream], row.data, strict=True)) for row in self]

    def to_arrow(self, stream: str = "") -> Any:
        """An Arrow table: event time, capture time and kind of each row, then its attributes.

        `stream` may be left out where there are rows of one stream only.
        """
        import pyarrow as pa

        from edgewise.event.arrow import record_batch, to_arrow, to_stored

        schema = self._schema(stream or self._only_stream())
        rows = [row for row in self if row.stream == schema.name]
        columns = [
            to_stored([row.data[index] for row in rows], attribute.type)
            for index, attribute in enumerate(schema.attributes)
        ]
        batch = record_batch(
            to_arrow(schema),
            [row.ts for row in rows],
            [row.at for row in rows],
            [int(row.kind) for row in rows],
            columns,
        )
        return pa.Table.from_batches([batch])

    def to_pandas(self, stream: str = "") -> Any:
        """A pandas frame: the attributes, and the event time `_ts` in milliseconds."""
        table = self.to_arrow(stream)
        if all(row.kind is EventKind.CURRENT for row in self):
            table = table.drop_columns(["_kind"])
        try:
            return table.drop_columns(["_at"]).to_pandas()
        except ModuleNotFoundError as error:
            raise SetupError(f"to_pandas() needs pandas: pip install pandas ({error})") from None

    def _repr_html_(self) -> str:
        streams = dict.fromkeys(row.stream for row in self)
        return "".join(self._table(name) for name in streams) or "<p>no rows</p>"

    def _table(self, stream: str) -> str:
        rows = [row for row in self if row.stream == stream]
        head = "".join(f"<th>{escape(n)}</th>" for n in ("ts", *self._schema(stream).names))
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(str(v))}</td>' for v in (row.ts, *row.data))}</tr>"
            for row in rows[:SHOWN_MAX]
        )
        more = f"<p>and {len(rows) - SHOWN_MAX} more</p>" if len(rows) > SHOWN_MAX else ""
        return f"<table><caption>{escape(stream)}</caption><tr>{head}</tr>{body}</table>{more}"

    def _only_stream(self) -> str:
        found = sorted({row.stream for row in self}) or sorted(self.schemas)
        if len(found) != 1:
            known = ", ".join(found) or "none"
            raise SetupError(f"a table is of one stream; here are rows of {known}: name one")
        return found[0]

    def _schema(self, stream: str) -> Schema:
        if stream not in self.schemas:
            known = ", ".join(self.schemas)
            raise SetupError(f"no rows of '{stream}' can come from here; the app writes {known}")
        return self.schemas[stream]
