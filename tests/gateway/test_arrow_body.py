import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.schema import Schema
from edgewise.gateway.admit import admit
from edgewise.gateway.arrow_body import CONTENT_TYPE, read_arrow
from edgewise.gateway.refusal import Refusal

SCHEMA = Schema.of("S", k="string", v="int", d="double", o="object")
GOOD = pa.table({"k": ["a", None], "v": [1, 2], "d": [0.5, None], "o": ['{"a":1}', None]})


def check_body(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table, max_chunksize=1)
    return sink.getvalue().to_pybytes()


def rows_alone():
    """Messages of a stream, without the first."""
    messages = list(pa.ipc.MessageReader.open_stream(check_body(GOOD)))
    return b"".join(m.serialize().to_pybytes() for m in messages[1:])


def test_columns_are_taken_by_name_and_widened_or_narrowed_safely():
    got = admit(check_body(GOOD.select(["v", "o", "d", "k"])), CONTENT_TYPE, SCHEMA, 5_000_000)
    assert got.schema.field("v").type == pa.int32()
    assert got.to_pydict() == {
        "_ts": [5000, 5000],
        "_at": [5_000_000, 5_000_001],
        "_kind": [0, 0],
        **GOOD.to_pydict(),
    }


def test_event_times_may_come_along():
    timed = GOOD.append_column("_ts", pa.array([7, None], pa.int64()))
    assert admit(check_body(timed), CONTENT_TYPE, SCHEMA, 9000).column("_ts").to_pylist() == [7, 9]


@pytest.mark.parametrize(
    ("table", "field", "words"),
    [
        (GOOD.drop_columns(["v"]), "v", "missing"),
        (GOOD.append_column("x", pa.array([1, 2])), "x", "no such attribute"),
        (GOOD.set_column(1, "v", pa.array([1, 2**40])), "v", "expected int32"),
        (GOOD.set_column(1, "v", pa.array(["a", "b"])), "v", "expected int32"),
        (GOOD.set_column(2, "d", pa.array([1.0, float("nan")])), "d", "nan is not a number"),
        (GOOD.set_column(3, "o", pa.array(["{", None])), "o", "JSON text"),
        (GOOD.append_column("_ts", pa.array(["x", "y"])), "_ts", "int64 milliseconds"),
        (GOOD.append_column("_ts", pa.array([1, 2**60])), "_ts", "out of range"),
        (GOOD.slice(0, 0), "body", "no events"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(table, field, words):
    got = admit(check_body(table), CONTENT_TYPE, SCHEMA, 0)
    assert isinstance(got, Refusal)
    assert (got.status, got.problems[0].field) == (400, field)
    assert words in got.problems[0].reason


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_buffers_are_refused_before_they_unpack(codec):
    bomb = pa.table({"k": ["x" * 100_000] * 20})
    got = read_arrow(check_body(bomb, compression=codec), SCHEMA)
    assert "compressed" in got[0].reason


def test_text_may_come_as_a_dictionary():
    coded = GOOD.set_column(0, "k", GOOD.column("k").dictionary_encode())
    got = admit(check_body(coded), CONTENT_TYPE, SCHEMA, 5000)
    assert got.column("k").to_pylist() == ["a", None]


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_dictionary_is_refused_before_it_unpacks(codec):
    few = pa.array([0], pa.int8())
    bomb = pa.table({"k": pa.DictionaryArray.from_arrays(few, pa.array(["x" * 1_000_000]))})
    got = read_arrow(check_body(bomb, compression=codec), SCHEMA)
    assert "compressed" in got[0].reason


def test_a_stream_without_its_schema_is_refused():
    got = read_arrow(rows_alone(), SCHEMA)
    assert "begin with a schema" in got[0].reason


@given(st.data())
def test_flipped_and_cut_bytes_never_raise(data):
    body = bytearray(check_body(GOOD))
    for _ in range(data.draw(st.integers(1, 5))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    got = admit(bytes(body[:cut]), CONTENT_TYPE, SCHEMA, 0)
    assert not isinstance(got, Refusal) or 400 <= got.status < 500
