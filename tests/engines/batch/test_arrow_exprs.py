"""What is translate_condition of whole tables is what a kernel asks of each event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.batch.arrow_exprs import translate_condition
from edgewise.event.arrow import ARROW_TYPES, to_column
from edgewise.event.types import AttrType
from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.lang import compile_app
from edgewise.plan.nodes import Filter, handlers_of
from edgewise.plan.rules.keys import split_into_fragments

SCHEMA = "define stream S (a int, b long, f float, d double, s string, c bool); "
KINDS = (
    AttrType.INT,
    AttrType.LONG,
    AttrType.FLOAT,
    AttrType.DOUBLE,
    AttrType.STRING,
    AttrType.BOOL,
)
TYPES = dict(zip("abfdsc", KINDS, strict=True))
FLOATS = st.sampled_from([0.0, -1.5, 2.0, 1e9, float("nan"), float("inf")])
EVENTS = st.fixed_dictionaries(
    {
        "a": st.sampled_from([None, 0, 1, -1, 2**31 - 1, -(2**31)]),
        "b": st.sampled_from([None, 0, 1, 5, 2**63 - 1, -(2**63)]),
        "f": st.one_of(st.none(), FLOATS),
        "d": st.one_of(st.none(), FLOATS),
        "s": st.sampled_from([None, "", "x", "y"]),
        "c": st.sampled_from([None, True, False]),
    }
)
ASKED = [
    "a > 0", "a + 1 < 0", "a * b >= 5", "a - a == 0", "b != 1", "not (b == 1)", "f < d", "d != d",
    "f == 2.0f", "a <= f", "s == 'x'", "s != 'x'", "s is null", "not (s is null)",
    "c == true", "a > 0 and d < 1.0", "a > 0 or (f > 0.0f and s == 'y')", "a < b", "b + 1 > 5",
    "not (a > 0 or c == true)",
]  # fmt: skip
WORDLESS = ["b > d", "str:length(s) > 1", "a / 2 > 1"]


def condition(text):
    app = compile_app(f"{SCHEMA}from S[{text}] select a insert into O;").app
    [only] = [h.condition for h in handlers_of(app.queries[0].input) if isinstance(h, Filter)]
    return app, only


@pytest.mark.parametrize("text", ASKED)
@given(st.lists(EVENTS, max_size=12))
def test_arrow_and_the_kernel_keep_the_same_events(text, events):
    import pyarrow as pa

    app, expr = condition(text)
    columns = [[e[name] for e in events] for name in TYPES]
    kernel = compile_kernel(app, split_into_fragments(app)[0])
    places = list(range(len(events)))
    kernel.feed(EventRun("S", places, columns, places, places, places))
    arrays = [to_column(c, kind) for c, kind in zip(columns, TYPES.values(), strict=True)]
    names = [f"s0_{name}" for name in TYPES]
    table = pa.Table.from_arrays([*arrays, pa.array(places, pa.int64())], [*names, "place"])
    assert [t.type for t in arrays] == [ARROW_TYPES[kind] for kind in TYPES.values()]
    found = table.filter(translate_condition(expr, "s0_")).column("place").to_pylist()
    assert found == [row.offset for row in kernel.take()]


@pytest.mark.parametrize("text", WORDLESS)
def test_expressions_that_arrow_lacks_are_not_translated(text):
    assert translate_condition(condition(text)[1], "s0_") is None
