"""A condition over columns says what it says of each event."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import STREAMS

from edgewise.kernel.codegen.column_masks import all_of, mask
from edgewise.lang import compile_app

CONDITIONS = ["v > 3", "5 >= v", "v == 4 or v != 7 and v < 9", "not (v > 2 and v <= 6)", "v > v"]
ARRAYS = {"k": "v_k", "v": "v_v"}


def condition(text):
    app = compile_app(f"{STREAMS} from A[{text}] select k insert into O;").app
    return app.queries[0].input.before[0].condition


@pytest.mark.parametrize("text", CONDITIONS)
@given(values=st.lists(st.integers(0, 9)))
def test_a_mask_equals_the_condition(text, values):
    found = eval(mask(condition(text), ARRAYS), {"v_v": np.array(values, dtype=np.int64)})
    python = text.replace("not (", "not(")
    assert found.tolist() == [eval(python, {"v": v}) for v in values]


@pytest.mark.parametrize(
    "text", ["k == 'x'", "v > 1.5", "v is null", "v + 1 > 2", "v > 1 or k == 'x'"]
)
def test_what_is_no_comparison_of_whole_numbers_has_none(text):
    assert mask(condition(text), ARRAYS) == ""


def test_all_must_have_one():
    one, other = condition("v > 1"), condition("k == 'x'")
    assert all_of((one, one), ARRAYS) == "((v_v > 1) & (v_v > 1))"
    assert all_of((one, other), ARRAYS) == all_of((), ARRAYS) == ""
