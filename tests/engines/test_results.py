"""Rows of many partitions become the one order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.kernel.api import OutColumns
from edgewise.engines.results import FAULTS, Made, fit, merged, tables
from edgewise.errors import SetupError
from edgewise.event.event import Kind
from edgewise.event.schema import Schema

SCHEMAS = {
    "O": Schema.of("O", k="string", n="long"),
    "P": Schema.of("P", d="double"),
    FAULTS.name: FAULTS.schema,
}


def row(stream, place, data, kind=Kind.CURRENT):
    clock, phase, offset, seq = place
    return (stream, clock, phase, offset, seq, clock, 1, int(kind), data)


def made(*rows, keys=0, counts=None):
    by_stream = {}
    for one in rows:
        by_stream.setdefault(one[0], []).append(one)
    blocks = [OutColumns.of(same) for same in by_stream.values()]
    return Made(tables(blocks, SCHEMAS), keys, counts or {})


def rows_of(whole):
    return {stream: table.to_pylist() for stream, table in whole.ordered()}


PLACES = st.tuples(*(st.integers(0, 3) for _ in range(4)))


@given(st.lists(st.tuples(PLACES, st.integers(0, 2)), unique_by=lambda p: p[0]))
def test_partitions_merge_into_the_order_of_places(placed):
    parts = [
        made(*(row("O", p, (str(p), part)) for p, part in sorted(placed) if part == number))
        for number in range(3)
    ]
    found = rows_of(merged(parts)).get("O", [])
    assert [r["k"] for r in found] == [str(p) for p, _ in sorted(placed)]


def test_what_partitions_tell_adds_up():
    one = made(keys=2, counts={"late": {"S": 1}})
    other = made(keys=3, counts={"late": {"S": 2, "T": 1}, "faults": {"S": 1}})
    whole = merged([one, other])
    assert whole.keys == 5
    assert whole.counts == {"late": {"S": 3, "T": 1}, "faults": {"S": 1}}


def test_a_row_with_a_value_of_another_type_is_a_fault_and_the_others_are_rows():
    found = rows_of(made(row("O", (1, 1, 4, 0), ("a", "x")), row("O", (1, 1, 5, 0), ("b", 2))))
    assert [r["k"] for r in found["O"]] == ["b"]
    [fault] = found[FAULTS.name]
    assert (fault["stream"], fault["offset"], fault["event"]) == ("O", 4, '["a", "x"]')
    assert fault["error"].startswith("n is no long: ")


def test_a_table_without_a_column_of_the_log_is_refused_by_name():
    import pyarrow as pa

    from edgewise.event.arrow import to_arrow

    with pytest.raises(SetupError, match="'k'"):
        fit(pa.table({"_ts": [1]}), to_arrow(SCHEMAS["O"]))
