"""How an app is split where one process runs all of it."""

import pytest

from edgewise.engines.embedded.fragments import split_for_one_process
from edgewise.lang import compile_app

HEAD = "define stream S (k string, v int); define stream T (k string, v int); "
TIME = "@info(name='w') from S#window.time(1 sec) select k, avg(v) as a group by k insert into A; "
PATTERN = (
    "@info(name='p') from every e1=S -> e2=S[k == e1.k] within 1 sec "
    "select e1.k as k insert into B; "
)


def split(text):
    return [(f.queries, f.keyed) for f in split_for_one_process(compile_app(HEAD + text).app)]


def test_queries_that_share_only_an_input_run_apart():
    assert split(TIME + PATTERN) == [(("w",), False), (("p",), True)]


@pytest.mark.parametrize(
    "second",
    [
        "@info(name='p') from A select k insert into C;",
        "@info(name='p') from T select k, 1.0 as a insert into A;",
        "@info(name='p') from S join A on S.k == A.k select S.k as k insert into C;",
    ],
    ids=["reads its rows", "writes to its target", "joins its rows"],
)
def test_queries_that_share_more_stay_together(second):
    assert [queries for queries, _ in split(TIME + second)] == [("w", "p")]


def test_queries_on_events_that_may_fail_stay_together():
    text = TIME + PATTERN
    app = compile_app("@OnError(action='log') " + HEAD + text).app
    assert [f.queries for f in split_for_one_process(app)] == [("w", "p")]


@pytest.mark.parametrize("output", ["insert all events into A;", "insert expired events into A;"])
def test_a_window_whose_events_are_seen_to_leave_keeps_its_key(output):
    text = f"from S#window.time(1 sec) select k, avg(v) as a group by k {output}"
    assert [keyed for _, keyed in split(text)] == [True]
