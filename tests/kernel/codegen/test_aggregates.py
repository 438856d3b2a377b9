"""The code of every aggregate against its definition, and over windows against recomputation."""

import math
import statistics
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_plans import V, app_of, kernel_of, query, runs, window
from tests.support.kernel_runs import play

from edgewise import eep
from edgewise.eep import laws
from edgewise.eep.language import DEFINITIONS
from edgewise.event.types import AttrType
from edgewise.kernel.code_globals import CODE_GLOBALS
from edgewise.kernel.codegen.aggregates import aggregate, leave
from edgewise.kernel.codegen.code_writer import CodeWriter
from edgewise.plan.exprs import Agg, Compare, Const
from edgewise.plan.nodes import EventType

EVEN = Compare(">", V, Const(AttrType.INT, 2))
CASES = {
    "stdDev": (V, AttrType.DOUBLE, lambda vs: statistics.pstdev(vs) if vs else None),
    "distinctCount": (V, AttrType.LONG, lambda vs: len(set(vs))),
    "and": (EVEN, AttrType.BOOL, lambda vs: all(v > 2 for v in vs)),
    "or": (EVEN, AttrType.BOOL, lambda vs: any(v > 2 for v in vs)),
}


@pytest.mark.parametrize("name", CASES)
@given(st.lists(st.integers(-5, 9), max_size=20))
def test_an_aggregator_equals_recomputation(name, values):
    arg, kind, brute = CASES[name]
    agg = Agg(kind, name, (arg,))
    app = app_of(query({"x": agg}, win=window("length", 3), events=EventType.CURRENT))
    kernel = kernel_of(app)
    for run in runs([(1000 + i, ("a", v, None)) for i, v in enumerate(values)]):
        kernel.feed(run)
    for i, row in enumerate(kernel.take()):
        expected = brute(values[max(0, i - 2) : i + 1])
        found = row.data[0]
        assert found == expected or math.isclose(found, expected, abs_tol=1e-6)


@given(st.lists(st.integers(-5, 9), max_size=20))
def test_forever_survives_expiry(values):
    items = {n: Agg(AttrType.INT, n, (V,)) for n in ("minForever", "maxForever")}
    app = app_of(query(items, win=window("time", 10), events=EventType.CURRENT))
    kernel = kernel_of(app)
    for run in runs([(1000 + 3 * i, ("a", v, None)) for i, v in enumerate(values)]):
        kernel.feed(run)
    kernel.advance(2000, 0)
    rows = kernel.take()
    if values:
        assert rows[-1].data == (min(values), max(values))


def test_an_aggregator_that_is_not_known_is_named():
    with pytest.raises(LookupError, match="'moon'"):
        aggregate(CodeWriter(), Agg(AttrType.INT, "moon", ()), (), 1)


def test_what_was_pushed_out_does_not_come_back_where_rows_leave_out_of_order():
    """As in the original: 5 was pushed out by 9, and 9 is what a sorted window lets go."""
    events = [("A", 1000 + v, "x", v) for v in (5, 9, 2)]
    query = "from A#window.sort(2, v) select max(v) as m insert all events into O;"
    assert [row[2] for row in play(query, events)] == [5, 9, 2]


def test_a_value_leaves_from_anywhere_in_the_queue():
    queue = deque([9, 7, 7, 3])
    leave(queue, 7)
    assert list(queue) == [9, 7, 3]
    leave(queue, 4)
    assert list(queue) == [9, 7, 3]


def test_forever_ends_with_the_batch():
    query = "from A#window.lengthBatch(2) select minForever(v) as m insert into O;"
    events = [("A", 1000 + i, "x", v) for i, v in enumerate((1, 2, 5, 6))]
    assert [row[2] for row in play(query, events)] == [1, 5]


# The law: generated code is the definition.

INTS = st.integers(-20, 20) | st.integers(2**62, 2**63 - 1)
FLOATS = st.integers(-2000, 2000).map(lambda n: n / 8)
KINDS = {
    "count": (AttrType.LONG, FLOATS),
    "sum": (AttrType.DOUBLE, FLOATS),
    "sum of whole": (AttrType.LONG, INTS),
    "avg": (AttrType.DOUBLE, FLOATS),
    "min": (AttrType.DOUBLE, FLOATS),
    "max": (AttrType.LONG, INTS),
    "minForever": (AttrType.DOUBLE, FLOATS),
    "maxForever": (AttrType.LONG, INTS),
    "stdDev": (AttrType.DOUBLE, FLOATS),
    "distinctCount": (AttrType.LONG, st.sampled_from("abc")),
    "and": (AttrType.BOOL, st.booleans()),
    "or": (AttrType.BOOL, st.booleans()),
    "unionSet": (AttrType.OBJECT, st.frozensets(st.integers(0, 4))),
}


def steps_of(values):
    """Values come, nulls among them, the oldest leaves, all is forgotten."""
    add = st.tuples(st.just("add"), values | st.none())
    return st.lists(
        add | add | st.just(("remove", None)) | st.sampled_from([("reset", None)]), max_size=30
    )


class Generated:
    """The four pieces of text of an aggregate, run as the selector runs them."""

    def __init__(self, agg, **more):
        writer = CodeWriter()
        code = aggregate(writer, agg, ("x",), 0, **more)
        space = {**CODE_GLOBALS, **writer.bound}
        lines = [
            f"def start(): return [{', '.join(code.start)}]",
            f"def value(G): return {code.value}",
        ]
        for verb, text in (("add", code.add), ("remove", code.subtract)):
            lines += [f"def {verb}(G, x):", *(f"    {line}" for line in text)]
        exec(compile("\n".join(lines), "<aggregate>", "exec"), space)
        self._space = space
        self.reset()

    def add(self, value):
        self._space["add"](self._cells, value)

    def remove(self, value):
        self._space["remove"](self._cells, value)

    def reset(self):
        self._cells = self._space["start"]()

    def value(self):
        return self._space["value"](self._cells)


def test_the_law_is_asked_of_every_aggregate_of_the_language():
    assert {name.split(" of ")[0].lower() for name in KINDS} == {
        name for name in DEFINITIONS if " of " not in name
    }


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_the_code_of_an_aggregate_follows_its_definition(name, in_turn, data):
    kind, values = KINDS[name]
    name = name.split(" of ")[0]
    subject = Generated(Agg(kind, name, (V,)), in_turn=in_turn)
    laws.follows_definition(DEFINITIONS[name.lower()], subject, data.draw(steps_of(values)))


@pytest.mark.parametrize("body", [eep.Sum(), eep.Max(), eep.Variance(), eep.Percentile(0.5)])
@pytest.mark.parametrize("uneven", [False, True])
@given(steps=steps_of(FLOATS))
def test_the_code_of_a_users_own_aggregate_follows_it(body, uneven, steps):
    subject = Generated(Agg(AttrType.DOUBLE, "my:own", (V,), body), uneven=uneven)
    laws.follows_definition(body, subject, steps)


def test_an_aggregate_that_only_grows_keeps_no_values():
    agg = Agg(AttrType.DOUBLE, "my:max", (V,), eep.Max())
    assert aggregate(CodeWriter(), agg, ("x",), 1, only_added=True).start == ("f0_my_max.init()",)
    assert aggregate(CodeWriter(), agg, ("x",), 1).start == ("f0_my_max_retaining.init()",)


def test_a_float_result_has_32_bits_and_several_arguments_are_one_value():
    agg = Agg(AttrType.FLOAT, "my:own", (V, V), eep.Last())
    code = aggregate(CodeWriter(), agg, ("x", "y"), 1, only_added=True)
    assert code.value.startswith("fn.single(")
    assert code.add == (
        "if x is not None and y is not None:",
        "    G[1] = f0_my_own.accumulate(G[1], (x, y))",
    )
