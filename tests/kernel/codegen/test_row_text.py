"""The text of a row holds the fields of `OutRow`, each in its position."""

from edgewise.kernel.api import OutColumns, OutRow
from edgewise.kernel.codegen.row_text import chunk_sink, emit_columns, emit_row, output_sink

EVENT = {"clock": 10, "offset": 3, "ts": 9, "at": 77}
ROW = OutRow("O", clock=10, phase=1, offset=3, seq=2, ts=9, at=77, kind=0, data=("x",))


def test_a_row_has_the_fields_of_out_row():
    values = eval(emit_row("O", "('x',)", "2"), dict(EVENT))
    assert OutRow(*values) == ROW


def test_columns_have_the_fields_of_out_columns():
    given = {name: f"({name},)" for name in EVENT}
    text = "\n".join(emit_columns("O", "[('x',)]", seq="(2,)", **given))
    found = eval(text, {"OutColumns": OutColumns, "n": 1, **EVENT})
    assert [OutRow(*row) for row in found.rows()] == [ROW]


def test_a_stream_with_braces_in_its_name_is_a_text():
    rows, out = [], []
    exec(output_sink("{data}").write("(1,)", "2"), {"rows": rows, **EVENT})
    exec(chunk_sink().write("(1,)"), {"out": out, **EVENT})
    assert rows == [("{data}", 10, 1, 3, 2, 9, 77, 0, (1,))]
    assert out == [(0, 9, (1,))]
