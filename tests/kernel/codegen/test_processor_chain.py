from tests.support.kernel_runs import data, engine, feed, rows

from edgewise.kernel.codegen.processor_chain import MAKERS
from edgewise.plan.processors import PROCESSORS


def test_every_processor_has_an_operator():
    assert {p.name.lower() for p in PROCESSORS} == set(MAKERS)


def test_processors_follow_each_other():
    query = (
        "from A#str:tokenize(k, ',')#unique:deduplicate(token, 100)[token != 'b'] "
        "select token, v insert into O;"
    )
    assert data(query, [("A", 1000, "a,b,a", 1), ("A", 1001, "a,c", 2)]) == [("a", 1), ("c", 2)]


def test_a_named_window_can_be_read_through_a_processor():
    query = (
        "define window W (k string, v int) length(2); from A select k, v insert into W; "
        "from W#str:tokenize(k, ',') select token, v insert into O;"
    )
    assert data(query, [("A", 1000, "a,b", 1)]) == [("a", 1), ("b", 1)]


def test_a_timer_of_a_processor_goes_on_to_the_selection():
    running = engine(
        "from A#extrema:topKTimeBatch(k, 50, 1)[v > 1] select top1Element insert into O;"
    )
    feed(running, [("A", 1000, "x", 5), 1100])
    assert rows(running) == [(1000, "+", "x")]
