import pyarrow as pa
import pytest

from edgewise.errors import LogError
from edgewise.event.arrow import to_arrow
from edgewise.event.schema import Schema
from edgewise.log.api import CLOCK_NONE
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.rows import compute_clock, describe_difference, encode_batches, fit_to_schema

STORED = to_arrow(Schema.of("S", k="string", v="int"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Schema.of("T", k="string", v="int"), ""),
        (Schema.of("S", k="string"), "attribute 'v' int32 is missing"),
        (Schema.of("S", k="string", w="int"), "attribute 2 is 'w', not 'v'"),
        (Schema.of("S", k="string", v="double"), "attribute 'v' is double, not int32"),
        (Schema.of("S", k="object", v="int"), "attribute 'k' is object, not string"),
        (Schema.of("S", k="string", v="int", x="bool"), "attribute 'x' is unknown to the log"),
    ],
)
def test_the_attribute_that_differs_is_named(given, says):
    assert describe_difference(STORED, to_arrow(given)) == says


def test_rows_that_differ_only_in_what_may_be_null_fit():
    rows = make_rows([1, 2])
    loose = pa.schema([f.with_nullable(True).remove_metadata() for f in rows.schema])
    fit = fit_to_schema(pa.RecordBatch.from_arrays(rows.columns, schema=loose), to_arrow(SCHEMA))
    assert fit.schema.equals(rows.schema, check_metadata=True)


def test_a_row_without_time_is_refused():
    rows = make_rows([1])
    loose = pa.schema([f.with_nullable(True) for f in rows.schema])
    columns = [pa.nulls(1, pa.int64()), *rows.columns[1:]]
    with pytest.raises(LogError, match="'_ts' is null"):
        fit_to_schema(pa.RecordBatch.from_arrays(columns, schema=loose), to_arrow(SCHEMA))


def test_parts_carry_their_range_of_time():
    parts = encode_batches(make_rows([5, 1, 9, 2, 2]), to_arrow(SCHEMA), 3)
    assert [(p.rows, p.ts_min, p.ts_max) for p in parts] == [(3, 1, 9), (2, 2, 2)]
    (empty,) = encode_batches(make_rows([]), to_arrow(SCHEMA), 3)
    assert (empty.rows, empty.ts_max) == (0, CLOCK_NONE)


def test_the_clock_inside_a_batch():
    rows = make_rows([5, 1, 9])
    assert [compute_clock(rows, n, 4) for n in range(4)] == [4, 5, 5, 9]
