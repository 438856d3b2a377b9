"""Which key a fragment gets, and what is said where it gets none."""

import pytest

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.lang import compile_app
from edgewise.plan.exprs import Agg, Const, Field
from edgewise.plan.nodes import (
    App,
    InsertInto,
    Query,
    Select,
    SelectItem,
    Stream,
    StreamInput,
    Window,
)
from edgewise.plan.rules.keys import split_into_fragments


def field(name, stream="S"):
    return Field(AttrType.STRING, stream, name)


def query(name, source, target, *, window="", group=(), count=False, items=("ip", "city")):
    made = Window(window, (Const(AttrType.LONG, 1000),)) if window else None
    chosen = [SelectItem(i, field(i, source)) for i in items]
    if count:
        chosen.append(SelectItem("n", Agg(AttrType.LONG, "count", ())))
    by = tuple(field(g, source) for g in group)
    return Query(
        name,
        StreamInput(source, source, window=made),
        Select(tuple(chosen), group_by=by),
        InsertInto(target),
    )


def app(*queries, inputs=("S",)):
    names = dict.fromkeys([*inputs, *(q.output.target for q in queries)])
    streams = tuple(Stream(Schema.of(n, ip="string", city="string")) for n in names)
    return App("app", streams, queries)


def test_a_time_window_grouped_by_an_attribute_is_keyed_by_it():
    [fragment] = split_into_fragments(
        app(query("q", "S", "O", window="time", group=("ip",), count=True))
    )
    assert fragment.keys == (("S", ("ip",)),)


@pytest.mark.parametrize("window", ["length", "timeBatch"])
def test_a_window_that_looks_at_all_events_together_is_one_task_and_says_why(window):
    [fragment] = split_into_fragments(
        app(query("q", "S", "O", window=window, group=("ip",), count=True))
    )
    assert not fragment.keyed
    assert window in fragment.why


def test_queries_without_state_need_no_key():
    [fragment] = split_into_fragments(app(query("q", "S", "O")))
    assert fragment.stateless


def test_an_aggregate_without_group_by_is_one_task():
    [fragment] = split_into_fragments(app(query("q", "S", "O", count=True)))
    assert "no group by" in fragment.why


def test_a_chain_is_keyed_by_what_all_its_queries_group_by():
    first = query("q1", "S", "M", window="time", group=("ip", "city"), count=True)
    second = query("q2", "M", "O", group=("ip",), count=True)
    [fragment] = split_into_fragments(app(first, second))
    assert fragment.queries == ("q1", "q2")
    assert fragment.keys == (("S", ("ip",)),)


def test_an_attribute_that_was_computed_on_the_way_is_no_key():
    first = query("q1", "S", "M", items=("city",), count=False)
    second = query("q2", "M", "O", group=("ip",), count=True)
    [fragment] = split_into_fragments(app(first, second))
    assert "share no grouping" in fragment.why


def test_queries_that_share_no_stream_are_fragments_of_their_own():
    a = query("a", "S", "O", group=("ip",), count=True)
    b = query("b", "T", "P", window="length", count=True)
    fragments = split_into_fragments(app(a, b, inputs=("S", "T")))
    assert [f.inputs for f in fragments] == [("S",), ("T",)]
    assert [f.keyed for f in fragments] == [True, False]


def test_several_inputs_are_keyed_where_each_has_the_attribute():
    a = query("a", "S", "M")
    b = query("b", "T", "M")
    c = query("c", "M", "O", group=("ip",), count=True)
    [fragment] = split_into_fragments(app(a, b, c, inputs=("S", "T")))
    assert fragment.keys == (("S", ("ip",)), ("T", ("ip",)))


LANGUAGE = "define stream A (k string, j string, v int); define stream B (k string, v int);"


def keys(text):
    [fragment] = split_into_fragments(compile_app(LANGUAGE + text).app)
    return fragment


SECOND = "#window.time(1 sec)"


@pytest.mark.parametrize(
    "text",
    [
        "from every a=A -> b=B[k == a.k] select a.v as x",
        "from every a=A -> b=B[k == a.k]<2:> -> c=A[k == b[last].k] select a.v as x",
        "from every a=A -> not B[k == a.k] for 1 sec select a.v as x",
        f"from A{SECOND} as a join B{SECOND} as b on a.k == b.k and a.v > b.v select a.v as x",
    ],
)
def test_patterns_and_joins_are_keyed_by_what_ties_them(text):
    assert dict(keys(text + " insert into O;").keys) == {"A": ("k",), "B": ("k",)}


@pytest.mark.parametrize(
    "body",
    [
        "from a=A, b=B select a.v as x insert into O;",
        """from A#window.length(3) select sum(v) as s insert into #I;
        from #I join B#window.length(1) select #I.s as x insert into O;""",
    ],
)
def test_partitions_are_keyed_by_their_own_key(body):
    found = keys(f"partition with (k of A, k of B) begin {body} end;")
    assert dict(found.keys) == {"A": ("k",), "B": ("k",)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("from a=A -> b=B[k == a.k] select a.v as x", "without 'every'"),
        ("from every (a=A -> b=B[k == a.k]) select a.v as x", "more than one event"),
        ("from every a=A, b=B[k == a.k] select a.v as x", "a sequence is broken"),
        ("from every a=A -> b=B[v > a.v] select a.v as x", "no equality"),
        ("from A#window.length(2) join B on A.k == B.k select A.v as x", "#window.length"),
        ("from A select k, count() as n group by k output every 2 events", "a rate limit"),
        ("define table T (k string); from A join T on A.k == T.k select A.k", "belongs to all"),
    ],
)
def test_what_cannot_be_keyed_says_why(text, why):
    assert why in keys(text + " insert into O;").why


@pytest.mark.parametrize(
    ("key", "body", "why"),
    [
        ("v > 5 as 'x' of A", "from A insert into O;", "computed"),
        ("k of A", "from A join B#window.length(1) select A.v as x insert into O;", "every key"),
    ],
)
def test_partitions_that_cannot_be_keyed_say_why(key, body, why):
    assert why in keys(f"partition with ({key}) begin {body} end;").why


def test_two_equalities_make_a_key_of_two():
    text = "from every a=A -> b=A[k == a.k and j == a.j] select a.v as x insert into O;"
    assert keys(text).keys == (("A", ("k", "j")),)


def test_a_stream_that_feeds_itself_has_no_key_to_follow():
    text = "from B select k, v insert into M; from M select k, v group by k insert into M;"
    text += "from M#window.time(1 sec) select k, count() as n group by k insert into O;"
    assert "feed back" in keys(text).why or "share no" in keys(text).why


def test_ten_thousand_queries_are_split_in_no_time():
    text = "".join(f"from A[v > {n}] select k insert into O{n};" for n in range(2000))
    assert len(split_into_fragments(compile_app(LANGUAGE + text).app)) == 1


def test_a_table_is_state_whoever_writes_it():
    fragment = keys("define table T (k string, v int); from B insert into T;")
    assert "belongs to all keys" in fragment.why
    assert not fragment.stateless


STORES = """
define stream S (a string, n int);
define stream R (a string);
define table Seen (a string);
define aggregation Sums from S select a, sum(n) as t group by a aggregate every sec;
define trigger Tick at every 1 sec;
from S#window.time(1 sec) select a, count() as c group by a insert into O;
from R insert into Seen;
from Tick select triggered_time insert into P;
"""


def test_a_store_lives_in_one_fragment_with_those_who_use_it():
    found = {f.queries: f.stores for f in split_into_fragments(compile_app(STORES).app)}
    assert found == {("query1",): ("Sums",), ("query2",): ("Seen",), ("query3",): ("Tick",)}


def test_a_store_that_no_query_uses_has_a_fragment_of_its_own():
    text = STORES.split("from S#window", maxsplit=1)[0]
    fragments = split_into_fragments(compile_app(text).app)
    assert [(f.name, f.queries, f.inputs, f.stores) for f in fragments] == [
        ("Seen", (), (), ("Seen",)),
        ("Sums", (), ("S",), ("Sums",)),
        ("Tick", (), (), ("Tick",)),
    ]
    assert all(f.why and not f.stateless for f in fragments)


def test_faults_are_read_where_the_events_are_handled():
    app = compile_app(
        "@OnError(action='STREAM') define stream S (a int);"
        "from S select a + 1 as b insert into O; from !S select a, _error insert into E;"
    ).app
    [fragment] = split_into_fragments(app)
    assert fragment.queries == ("query1", "query2")
    assert [s.name for s in app.outputs] == ["!S", "O", "E"]
