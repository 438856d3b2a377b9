import pytest

from edgewise.event.repeat_level import RepeatLevel
from edgewise.lang import compile_app
from edgewise.plan.rules.repeatability import classify_queries

STREAMS = """
define stream S (k string, v long);
define stream T (k string, v long);
define stream B (k string, v long);
define table Known (k string);
define function odd[python] return bool { return True };
"""


def classed(queries):
    app = compile_app(STREAMS + queries).app
    return classify_queries(app)[app.queries[-1].name]


@pytest.mark.parametrize(
    ("query", "level", "why"),
    [
        ("from S[v > 1] select k, v * 2 as w insert into O;", RepeatLevel.REPEATABLE, ""),
        ("from S select k, UUID() as id insert into O;", RepeatLevel.REPEATABLE, ""),
        (
            "from S#window.time(1 min) select k, sum(v) as t group by k insert into O;",
            RepeatLevel.CONVERGENT,
            "recent",
        ),
        (
            "from S#window.length(5) join T on S.k == T.k select S.k as k insert into O;",
            RepeatLevel.CONVERGENT,
            "recent",
        ),
        (
            "from every e1=S -> e2=T[k == e1.k] within 1 min select e1.k as k insert into O;",
            RepeatLevel.CONVERGENT,
            "recent",
        ),
        (
            "from e1=S -> e2=T[k == e1.k] select e1.k as k insert into O;",
            RepeatLevel.DETERMINISTIC,
            "without 'within'",
        ),
        (
            "from e1=S -> e2=T within 1 min select e1.k as k insert into O;",
            RepeatLevel.DETERMINISTIC,
            "without 'every'",
        ),
        (
            "from S select k, sum(v) as t group by k insert into O;",
            RepeatLevel.DETERMINISTIC,
            "without a window",
        ),
        (
            "from S#window.lengthBatch(5) select sum(v) as t insert into O;",
            RepeatLevel.DETERMINISTIC,
            "where it began",
        ),
        (
            "from S#window.time(1 min) select maxForever(v) as t insert into O;",
            RepeatLevel.DETERMINISTIC,
            "maxForever never forgets",
        ),
        (
            "from S join Known on S.k == Known.k select S.k as k insert into O;",
            RepeatLevel.DETERMINISTIC,
            "'Known' has a past",
        ),
        ("from S[odd(v)] select k insert into O;", RepeatLevel.ARBITRARY, "function odd"),
    ],
)
def test_a_query_is_as_good_as_its_worst_operator(query, level, why):
    found = classed(query)
    assert found.level is level, found
    assert why in found.why


def test_no_row_is_better_than_what_it_is_made_from():
    found = classed(
        "from S[odd(v)] select k, v insert into A;"
        "from A select k, v insert into B;"
        "from B select k, v insert into C;"
    )
    assert found.level is RepeatLevel.ARBITRARY
    assert "function odd" in found.why


def test_a_ring_of_streams_comes_to_rest():
    found = classed(
        "from S select k, v insert into A;"
        "from B[v < 9] select k, v insert into A;"
        "from A#window.time(1 sec) select k, sum(v) as v group by k insert into B;"
    )
    assert found.level is RepeatLevel.CONVERGENT
