"""Rows of many key partitions are sorted into one order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.batch.outputs import (
    FAULTS,
    FragmentOutput,
    convert_to_tables,
    fit_to_log,
    merge_outputs,
)
from edgewise.errors import SetupError
from edgewise.event.event import EventKind
from edgewise.event.schema import Schema
from edgewise.kernel.api import OutColumns

SCHEMAS = {
    "O": Schema.of("O", k="string", n="long"),
    "P": Schema.of("P", d="double"),
    FAULTS.name: FAULTS.schema,
}


def row(stream, place, data, kind=EventKind.CURRENT):
    clock, phase, offset, seq = place
    return (stream, clock, phase, offset, seq, clock, 1, int(kind), data)


def emit(*rows, keys=0, counts=None):
    by_stream = {}
    for one in rows:
        by_stream.setdefault(one[0], []).append(one)
    blocks = [OutColumns.of(same) for same in by_stream.values()]
    return FragmentOutput(convert_to_tables(blocks, SCHEMAS), keys, counts or {})


def rows_of(whole):
    return {stream: table.to_pylist() for stream, table in whole.iterate_sorted()}


PLACES = st.tuples(*(st.integers(0, 3) for _ in range(4)))


@given(st.lists(st.tuples(PLACES, st.integers(0, 2)), unique_by=lambda p: p[0]))
def test_key_partitions_merge_into_the_order_of_the_app(rows):
    parts = [
        emit(*(row("O", p, (str(p), part)) for p, part in sorted(rows) if part == number))
        for number in range(3)
    ]
    found = rows_of(merge_outputs(parts)).get("O", [])
    assert [r["k"] for r in found] == [str(p) for p, _ in sorted(rows)]


def test_counts_of_key_partitions_add_up():
    one = emit(keys=2, counts={"late": {"S": 1}})
    other = emit(keys=3, counts={"late": {"S": 2, "T": 1}, "faults": {"S": 1}})
    whole = merge_outputs([one, other])
    assert whole.keys == 5
    assert whole.counts == {"late": {"S": 3, "T": 1}, "faults": {"S": 1}}


def test_a_row_with_a_value_of_another_type_is_a_fault_and_the_others_are_rows():
    found = rows_of(emit(row("O", (1, 1, 4, 0), ("a", "x")), row("O", (1, 1, 5, 0), ("b", 2))))
    assert [r["k"] for r in found["O"]] == ["b"]
    [fault] = found[FAULTS.name]
    assert (fault["stream"], fault["offset"], fault["event"]) == ("O", 4, '["a", "x"]')
    assert fault["error"].startswith("n is no long: ")


def test_a_table_without_a_column_of_the_log_is_refused_by_name():
    import pyarrow as pa

    from edgewise.event.arrow import to_arrow

    with pytest.raises(SetupError, match="'k'"):
        fit_to_log(pa.table({"_ts": [1]}), to_arrow(SCHEMAS["O"]))
