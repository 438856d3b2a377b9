import pytest

from edgewise.lang.compiler import compile_app
from edgewise.node.app.sources_sinks import SourcesAndSinks

APP = """define stream S (k string, v int);
@sink(type='topic', path='o/{{k}}'{options})
define stream O (k string, n long);
from S{window} select k, {n} as n {group} insert {events} into O;
"""
COUNT = {"n": "count()", "group": "group by k"}
ROWS = {"n": "convert(v, 'long')", "group": ""}


def complete(select, window="#window.time(5 sec)", events="", options=""):
    text = APP.format(**select, window=window, events=events, options=options)
    app = compile_app(text).app
    ((_, sink),) = SourcesAndSinks.parse(app).topics
    return sink.expired, sink.policy.stale_ms


def test_expired_rows_of_an_aggregate_update_the_topic():
    assert complete(COUNT, events="all events") == ("update", 0)


def test_expired_rows_without_an_aggregate_take_the_topic_away():
    assert complete(ROWS, events="all events") == ("remove", 0)


def test_expired_rows_by_themselves_are_news():
    assert complete(ROWS, events="expired events") == ("update", 0)


@pytest.mark.parametrize(
    ("window", "stale_ms"),
    [
        ("#window.time(1 min)", 60_000),
        ("#window.timeLength(5 sec, 10)", 5_000),
        ("#window.externalTime(t, 7 sec)", 7_000),
        ("#window.length(10)", 0),
        ("#window.timeBatch(5 sec)", 0),
        ("", 0),
    ],
)
def test_an_aggregate_that_nothing_takes_back_goes_stale_after_its_window(window, stale_ms):
    text = APP.replace("v int", "v int, t long")
    app = compile_app(text.format(**COUNT, window=window, events="", options="")).app
    ((_, sink),) = SourcesAndSinks.parse(app).topics
    assert (sink.expired, sink.policy.stale_ms) == ("ignore", stale_ms)


def test_rows_that_are_no_aggregate_do_not_go_stale():
    assert complete(ROWS) == ("ignore", 0)


def test_what_the_sink_says_stays():
    options = ", expired='ignore', stale='2 sec'"
    assert complete(COUNT, events="all events", options=options) == ("ignore", 2_000)
    assert complete(COUNT, options=", stale='1 sec'") == ("ignore", 1_000)
