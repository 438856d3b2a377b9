"""One answer everywhere: embedded, a stream cut anywhere, a batch over history, row by row."""

import dataclasses
import itertools

import pytest
from tests.engines.spark.slices import case, late_case

from edgewise.engines.spark.engine import SparkConfig
from edgewise.errors import SetupError
from edgewise.lang import compile_app
from edgewise.node.replay import replay

pytestmark = pytest.mark.spark

LOGINS = """
define stream login_stream (ip string, cityId string);
from login_stream#window.time(10 min)
select ip, count(ip) as loginCount, cityId
group by ip having loginCount > 10
insert into login_attempt_repeatedly_stream;
"""


def rows(app, events, engine, **config):
    return [dataclasses.replace(e, at=0) for e in replay(app, events, engine, **config)]


def assert_same(seed, make=case):
    text, events, dice = make(seed)
    app = compile_app(text).app
    expected = rows(app, events, "embedded")
    small = dice.choice([0, 50_000])
    cuts = {"partitions": dice.randint(1, 3), "rows_max": dice.choice([7, 40, 1000])}
    stream = rows(app, events, "spark", master="local[2]", small_batch_rows=small, **cuts)
    assert stream == expected, f"seed {seed} as a stream, {cuts}, small={small}:\n{text}"
    batch = rows(app, events, "batch", master="local[2]", small_batch_rows=small, partitions=2)
    assert batch == expected, f"seed {seed} as a batch, small={small}:\n{text}"


@pytest.mark.parametrize("seed", range(4))
def test_random_apps_give_the_same_rows_on_every_engine(spark, seed):
    assert_same(seed)


@pytest.mark.parametrize("seed", range(2))
def test_events_are_put_in_order_on_every_engine(spark, seed):
    assert_same(seed, late_case)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_apps_give_the_same_rows_on_every_engine(spark, seed):
    assert_same(seed)


def test_the_demo_query_is_keyed_and_the_same_in_driver_and_in_tasks(spark):
    import random

    from edgewise.event.event import Event

    dice = random.Random(5)
    times = itertools.accumulate(dice.choice([0, 100, 2000, 9000]) for _ in range(3000))
    events = [Event("login_stream", t, (f"ip{dice.randint(0, 20)}", "c")) for t in times]
    app = compile_app(LOGINS).app
    expected = rows(app, events, "embedded")
    assert len(expected) > 1000
    for small in (0, 50_000):
        found = rows(app, events, "spark", small_batch_rows=small, rows_max=900, partitions=3)
        assert found == expected


def test_partitions_out_of_range_are_refused():
    with pytest.raises(SetupError, match="partitions must be"):
        SparkConfig(partitions=0).validate()
