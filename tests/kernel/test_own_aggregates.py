"""A user's own aggregate is as good as one of the language: the same rows in every kind of query.

Each random app is run twice, with the aggregates of the language and with their definitions
declared as a user would declare them, which are called instead of written out.
"""

import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.random_apps import FAMILIES, HEAD, START, case, events
from tests.kernel.test_snapshot_anywhere import EVENTS, HELD, ending, runs, whole
from tests.support.kernel_runs import play

from edgewise import eep
from edgewise.eep.language import DEFINITIONS
from edgewise.engines.embedded import InMemoryEngine
from edgewise.event.types import AttrType
from edgewise.lang import compile_app, compile_query
from edgewise.plan.functions import FUNCTIONS, NUMBER, Function
from edgewise.plan.functions import aggregate as row

# Not min and max: in the original a value that a better one pushed out does not come back where
# rows leave out of order, and a user's own does.
OWN = ("sum", "avg", "count", "stdDev", "distinctCount")
TABLE = FUNCTIONS.with_(
    *(
        Function(
            f"my:{name}",
            FUNCTIONS[name].takes,
            FUNCTIONS[name].returns,
            optional=FUNCTIONS[name].optional,
            aggregate=True,
            body=DEFINITIONS[name.lower()],
        )
        for name in OWN
    ),
    row("my:max", NUMBER, returns=AttrType.DOUBLE, body=eep.Max()),
)
CALL = re.compile(rf"\b({'|'.join(OWN)})\(")
# A condition that an event brings knows the language only; a join lets rows go that never came.
KINDS = [family for family in HELD if family != "joins"]


def app_and_events(family, seed):
    dice = random.Random(f"{family} {seed}")
    if family in FAMILIES:
        return case(family, dice, EVENTS)
    return HEAD + HELD[family](dice), events(dice, EVENTS)


def rows_of(app, sent):
    kernel = whole(app)
    kernel.start(START)
    for run in runs(sent):
        kernel.feed(run)
    return kernel.take() + ending(kernel, sent), kernel.stats.reasons


@pytest.mark.parametrize("family", KINDS)
@settings(max_examples=12)
@given(st.integers(0, 10**6))
def test_declared_definitions_give_the_rows_of_the_language(family, seed):
    text, sent = app_and_events(family, seed)
    own = compile_app(CALL.sub(r"my:\1(", text), functions=TABLE).app
    assert rows_of(own, sent) == rows_of(compile_app(text).app, sent)


@pytest.mark.parametrize("family", [f for f in KINDS if f not in {"expressions", "triggers"}])
@settings(max_examples=6)
@given(st.integers(0, 10**6), st.lists(st.integers(0, EVENTS), min_size=1, max_size=3))
def test_their_state_is_saved_and_restored_anywhere(family, seed, cuts):
    text, sent = app_and_events(family, seed)
    app = compile_app(CALL.sub(r"my:\1(", text), functions=TABLE).app
    parts, rows, kernel = list(runs(sent)), [], whole(app)
    kernel.start(START)
    for low, high in itertools.pairwise([0, *sorted(cuts), len(parts)]):
        for run in parts[low:high]:
            kernel.feed(run)
        rows += kernel.take()
        saved = [(k, s) for k, s in kernel.changed() if s is not None]
        kernel = whole(app)
        kernel.restore(saved)
    assert rows + ending(kernel, sent) == rows_of(app, sent)[0]


AB = "define stream A (k string, v int); define stream B (k string, v int); "


def own_rows(query, sent):
    engine = InMemoryEngine(compile_app(AB + query, functions=TABLE).app)
    for stream, ts, *data in sent:
        engine.send(stream, ts, data)
    return [event.data for event in engine.take() if event.stream == "O"]


def test_what_cannot_take_values_back_slides_through_groups_and_having():
    query = (
        "from A#window.length(2) select k, my:max(v) as m group by k having m > 1 insert into O;"
    )
    sent = [
        ("A", 1000 + i, k, v)
        for i, (k, v) in enumerate(zip("xxyxx", (5, 3, 1, 2, 4), strict=True))
    ]
    assert own_rows(query, sent) == [("x", 5), ("x", 5), ("x", 2), ("x", 4)]


def test_a_value_that_a_better_one_pushed_out_comes_back():
    query = "from A#window.sort(2, v) select my:max(v) as m insert all events into O;"
    assert own_rows(query, [("A", 1000 + v, "x", v) for v in (5, 9, 2)]) == [(5,), (9,), (5,)]


def test_a_join_adds_up_the_rows_that_came():
    query = (
        "from A#window.length(1) as a join B#window.length(1) as b on a.k == b.k "
        "select my:sum(b.v) as s, my:max(b.v) as m insert into O;"
    )
    sent = [("A", 1000, "x", 1), ("B", 1001, "x", 5), ("B", 1002, "x", 7), ("A", 1003, "x", 2)]
    assert own_rows(query, sent) == [(5, 5), (7, 7), (7, 7)]


def test_an_expression_window_and_an_on_demand_query_call_them():
    query = "from A#window.expression('my:sum(v) < 9') select my:sum(v) as s insert into O;"
    assert own_rows(query, [("A", 1000 + v, "x", v) for v in (4, 5, 3)])[-1] == (8,)
    text = AB + "define table R (k string, v int); from A insert into R;"
    engine = InMemoryEngine(compile_app(text, functions=TABLE).app)
    for v in (4, 8):
        engine.send("A", 1000 + v, ("x", v))
    asked = compile_query("from R on v > 3 select my:max(v) as m", engine.app, functions=TABLE)
    assert engine.query(asked) == [(8,)]


def test_a_value_that_it_cannot_take_is_a_fault_and_the_next_one_is_taken():
    class Picky(eep.Sum):
        def accumulate(self, state, value):
            if value < 0:
                raise ValueError("below zero")
            return super().accumulate(state, value)

    table = FUNCTIONS.with_(row("picky", NUMBER, returns=AttrType.DOUBLE, body=Picky()))
    text = AB + "from A select picky(v) as s insert into O;"
    engine = InMemoryEngine(compile_app(text, functions=table).app)
    for v in (1, -1, 2):
        engine.send("A", 1000, ("x", v))
    assert [event.data for event in engine.take()] == [(1,), (3,)]
    assert "below zero" in str(engine.kernel.stats.reasons)


def test_an_aggregate_of_stock_in_an_expression_window_is_its_own():
    """A deviation was once taken for a maximum there."""
    query = "from A#window.expression('stdDev(v) < 3') select count() as n insert into O;"
    sent = [("A", 1000 + i, "x", v) for i, v in enumerate((4, 4, 5, 9))]
    assert [r[2] for r in play(query, sent)][-1] == 4
