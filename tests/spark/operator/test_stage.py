"""A stage knows its columns; names of users never become names of columns."""

import pyarrow as pa

from edgewise.lang.compiler import compile_app
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.spark.operator.stage import OperatorStage

APP = """
define stream S (a string, A int, `ew_ts` long, o object);
@OnError(action='STREAM') define stream T (a string);
from S select a, A insert into O;
"""


def build_stage(text=APP, order=0):
    app = compile_app(text).app
    return OperatorStage(app, split_into_fragments(app)[0], order)


def test_columns_are_numbered_so_that_no_attribute_collides():
    names = build_stage(order=1).input_schema.names
    assert names[-4:] == ["s0_0", "s0_1", "s0_2", "s0_3"]
    assert len({n.lower() for n in names}) == len(names)


def test_types_come_from_the_definition_and_objects_are_json():
    schema = build_stage().input_schema
    kinds = [schema.field(f"s0_{j}").type for j in range(4)]
    assert kinds == [pa.string(), pa.int32(), pa.int64(), pa.string()]


def test_only_numbers_and_bools_need_a_bit_for_null():
    assert list(build_stage().nullable()) == [(0, "s0_1"), (1, "s0_2")]


def test_ties_are_broken_by_order_columns_then_by_values():
    assert [n for n, _ in build_stage(order=1).sort_keys()][:3] == ["ew_ts", "ew_stream", "ew_o0"]
    assert "s0_3" in [n for n, _ in build_stage().sort_keys()]


def test_faults_and_late_rows_are_outputs_of_every_stage():
    assert [s.name for s in build_stage().outputs] == ["O", "$faults", "$late", "$stats"]
