import pytest

from edgewise.errors import SetupError
from edgewise.event.event import Event, EventKind
from edgewise.event.schema import Schema
from edgewise.lang.fluent.rows import SHOWN_MAX, Rows

O = Schema.of("O", k="string", v="int")  # noqa: E741
P = Schema.of("P", d="double")
SCHEMAS = {"O": O, "P": P}
ROWS = Rows([Event("O", 5, ("a", 1)), Event("P", 6, (0.5,)), Event("O", 7, (None, 2))], SCHEMAS)


def test_rows_are_a_list_of_events():
    assert [row.ts for row in ROWS] == [5, 6, 7]
    assert ROWS.data() == [("a", 1), (0.5,), (None, 2)]
    assert ROWS.of("O").dicts() == [{"k": "a", "v": 1}, {"k": None, "v": 2}]


def test_a_table_is_of_one_stream():
    table = ROWS.to_arrow("O")
    assert table.column("v").to_pylist() == [1, 2]
    assert table.column("_ts").to_pylist() == [5, 7]
    with pytest.raises(SetupError, match="here are rows of O, P: name one"):
        ROWS.to_arrow()
    with pytest.raises(SetupError, match="no rows of 'X' can come from here; the app writes O, P"):
        ROWS.of("X")


def test_a_frame_has_a_column_per_attribute_and_the_time():
    frame = ROWS.of("O").to_pandas()
    assert list(frame.columns) == ["_ts", "k", "v"]
    assert frame["v"].tolist() == [1, 2]
    expired = Rows([Event("P", 5, (0.5,), EventKind.EXPIRED)], SCHEMAS)
    assert expired.to_pandas()["_kind"].tolist() == [1]


def test_no_rows_are_an_empty_table_of_their_stream():
    assert Rows([], {"P": P}).to_pandas().columns.tolist() == ["_ts", "d"]
    assert Rows([], {"P": P})._repr_html_() == "<p>no rows</p>"


def test_a_page_shows_the_first_rows_and_how_many_more():
    many = Rows([Event("O", n, ("<b>", n)) for n in range(SHOWN_MAX + 3)], SCHEMAS)
    page = many._repr_html_()
    assert "&lt;b&gt;" in page
    assert "and 3 more" in page
    assert page.count("<tr>") == SHOWN_MAX + 1
