import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden import HERE

from edgewise.event.types import INT_MAX, INT_MIN, AttrType
from edgewise.lang import compile_app
from edgewise.plan.exprs import Arith, Const
from edgewise.plan.rules.constant_folding import fold
from edgewise.plan.text import show

DEFINE = "define stream S (k string, v int, b bool);"
ints = st.integers(INT_MIN, INT_MAX)


def run(condition):
    app = compile_app(f"{DEFINE} from S{condition} insert into O;").app
    return show(fold(app.queries[0].input.before[0].condition), "S")


def test_fixture(golden):
    golden(HERE / "rules" / "fold.txt", run)


@given(ints, ints, st.sampled_from("+-*/%"))
def test_whole_numbers_wrap_and_truncate(left, right, op):
    found = fold(Arith(AttrType.INT, op, Const(AttrType.INT, left), Const(AttrType.INT, right)))
    if op in "/%" and right == 0:
        assert isinstance(found, Arith)
        return
    exact = {"+": left + right, "-": left - right, "*": left * right}
    if op in exact:
        assert (found.value - exact[op]) % 2**32 == 0
    elif op == "/":
        assert found.value == int(left / right) or right == -1
    else:
        assert abs(found.value) < abs(right)
        assert (left - found.value) % right == 0
    assert INT_MIN <= found.value <= INT_MAX


@pytest.mark.parametrize(("text", "value"), [("1.1f + 1.1f", 2.200000047683716), ("1.5 * 2", 3.0)])
def test_fractions_keep_their_width(text, value):
    app = compile_app(f"{DEFINE} from S select {text} as x insert into O;").app
    assert fold(app.queries[0].select.items[0].expr).value == pytest.approx(value, abs=1e-15)
