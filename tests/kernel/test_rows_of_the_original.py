"""Rows that once differed from the original's, each with the rows that it gives."""

import math

import pytest
from tests.support.kernel_runs import data, engine, feed, play, rows

HEAD = "define stream A (s string, t string, v int, l long, p double, b bool);"
EMPTY = (None, None, None, None, None, None)


def value(text, **given):
    """The value of an expression for one event; `()` where the event is dropped."""
    names = ("s", "t", "v", "l", "p", "b")
    row = tuple(given.get(name) for name in names)
    found = data(f"from A select {text} as r insert into O;", [("A", 1000, *row)], HEAD)
    return found[0][0] if found else ()


@pytest.mark.parametrize(
    ("text", "given", "result"),
    [
        ("str:concat(s, 'x')", {}, "x"),
        ("str:strcmp(s, 'c')", {"s": "a"}, -2),
        ("str:strcmp(s, 'c')", {}, ()),
        ("math:bin(v)", {"v": -13}, "11111111111111111111111111110011"),
        ("math:hex(v)", {"v": -1}, "ffffffff"),
        ("math:oct(v)", {"v": -1}, "37777777777"),
        ("math:ln(p)", {"p": 0.0}, -math.inf),
        ("math:getExponent(p)", {"p": 0.0}, -1023),
        ("math:isNan(p)", {}, False),
        ("math:isInfinite(p)", {}, False),
        ("str:contains(s, 'x')", {}, False),
        ("str:hex(s)", {"s": "\u20ac"}, "20ac"),
        ("convert(s, 'long')", {"s": " 3 "}, None),
        ("math:parseInt(s)", {"s": "x"}, ()),
        ("math:parseInt(s)", {}, None),
        ("str:length(s)", {}, ()),
        ("math:abs(v)", {"v": -3}, 3.0),
        ("math:max(v, l)", {"v": 1, "l": 2}, 2.0),
        ("math:min(v, l)", {"v": 1, "l": 2}, 1.0),
        ("math:round(p)", {"p": 1e300}, (1 << 63) - 1),
        ("math:atan(v, l)", {"v": 4, "l": 2}, math.atan2(4, 2)),
        ("str:substr(s, 'b(.)', 1)", {"s": "abc"}, "c"),
        ("str:locate('o', s, 6)", {"s": "hello world"}, 7),
        ("str:replaceAll(s, 'b', '[$0]')", {"s": "abc"}, "a[b]c"),
        ("str:replaceAll(s, '\\Q.\\E', '-')", {"s": "a.b"}, "a-b"),
        ("str:split(s, '[0-9]', 1)", {"s": "a1b"}, "b"),
        ("str:length(s)", {"s": "\U0001f600"}, 2),
        ("str:concat(p, '')", {"p": 1e-5}, "1.0E-5"),
        ("time:currentTimestamp('Asia/Kolkata')", {}, "1970-01-01 05:30:01"),
        ("time:dateDiff(l, 0L)", {"l": 86_399_999}, 0),
        ("time:dateFormat(l, 'EEE H:m:s D w S')", {"l": 1}, "Thu 0:0:0 1 1 1"),
        ("time:date(s, 'yyyy-MM-dd')", {"s": "2024-13-01"}, "2025-01-01"),
        ("time:date(s, 'yyyy-MM-dd')", {"s": "x"}, ()),
        ("cast(s, 'bool')", {"s": "1"}, ()),
        ("cast(s, 'bool')", {}, False),
    ],
)
def test_an_expression_has_the_value_of_the_original(text, given, result):
    found = value(text, **given)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    "text", ["math:ln(p)", "math:log(p, 2)", "math:sqrt(p)", "math:acos(p - 5)"]
)
def test_outside_its_domain_a_function_is_not_a_number(text):
    assert math.isnan(value(text, p=-1.0))


def test_a_dropped_event_is_counted_and_the_next_one_passes():
    running = engine("from A select str:upper(s) as r insert into O;", HEAD)
    feed(running, [("A", 1000, *EMPTY), ("A", 1001, "x", *EMPTY[1:])])
    assert rows(running) == [(1001, "+", "X")]
    assert sum(running.kernel.stats.faults.values()) == 1


def test_a_count_of_an_attribute_counts_nulls():
    events = [("A", 1000, *EMPTY), ("A", 1001, "x", *EMPTY[1:])]
    assert data("from A select count(s) as n insert into O;", events, HEAD)[-1] == (2,)


def test_a_batch_whose_trigger_leaves_at_once_shows_sums_of_zero():
    query = (
        "from A#window.expressionBatch('sum(v) < 12', true, true) "
        "select v, sum(v) as s, count() as n, stdDev(v) as d insert all events into O;"
    )
    found = play(query, [("A", 1000 + i, "x", v) for i, v in enumerate((6, 0, 5, 9, 6, 4))],
                 "define stream A (k string, v int);")  # fmt: skip
    assert (0, 0) in {row[3:5] for row in found}


def test_a_stream_function_drops_an_event_without_its_argument():
    query = "from A#pol2Cart(p, 2.0) select x insert into O;"
    assert len(data(query, [("A", 1000, *EMPTY), ("A", 1001, *EMPTY[:4], 1.0, None)], HEAD)) == 1


STREAMS = "define stream A (k string, v int); define stream B (k string, v int); "
TABLE = STREAMS + "define table T (k string, v int); from A insert into T; "


def test_a_column_is_set_whatever_stands_before_the_dot():
    query = (
        "from B update T set Other.v = v on T.k == k; "
        "from B join T on T.k == B.k select T.v as v insert into O;"
    )
    assert data(query, [("A", 1000, "x", 1), ("B", 1001, "x", 5)], TABLE) == [(5,)]


def test_a_window_on_a_table_has_no_effect():
    query = "from B join T#window.length(1) on T.k == B.k select T.v as v insert into O;"
    events = [("A", 1000, "x", 1), ("A", 1001, "x", 2), ("B", 1002, "x", 0)]
    assert data(query, events, TABLE) == [(1,), (2,)]


def test_a_filter_sees_the_last_event_of_a_counted_element():
    query = "from e1=A<2:3> -> e2=B[v > e1.v] select e1.v as a, e2.v as b insert into O;"
    events = [("A", 1000, "x", 9), ("A", 1001, "x", 1), ("B", 1002, "x", 5)]
    assert data(query, events) == [([9, 1], 5)]


def test_a_counted_element_that_took_nothing_is_an_empty_list():
    query = "from e1=A<0:2> -> e2=B select e1.v as a, e2.v as b insert into O;"
    assert data(query, [("B", 1000, "x", 5)]) == [([], 5)]
