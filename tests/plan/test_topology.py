"""An app in the words of Storm and Heron."""

import json

from edgewise.lang import compile_app
from edgewise.plan.topology import build_topology, encode_topology, format_topology

APP = """
@app:name('shop')
define stream orders (customer string, price double);
define stream offers (price double);
define stream visits (page string);
@info(name='sums')
from orders select customer, sum(price) as spent group by customer insert into totals;
@info(name='large') from offers[price > 5.0] select price insert into big;
@info(name='recent') from visits#window.length(3) select count() as n insert into counts;
"""


def test_keys_are_field_groupings_and_what_has_none_is_one_task_with_its_reason():
    found = {c.name: c for c in build_topology(compile_app(APP).app, 4)}
    assert (found["orders"].kind, found["orders"].tasks) == ("spout", 1)
    assert (found["sums"].tasks, found["sums"].reads[0].grouping) == (4, "fields(customer)")
    assert (found["large"].tasks, found["large"].reads[0].grouping) == (4, "shuffle")
    assert (found["recent"].tasks, found["recent"].reads[0].grouping) == (1, "global")
    assert found["recent"].why
    assert [e.source for e in found["totals log"].reads] == ["sums"]


def test_a_later_stage_reads_from_the_bolt_before_it():
    chain = """
    define stream S (k string, v int);
    @info(name='one') from S#window.time(1 sec) select k, v, sum(v) as n group by k insert into X;
    @info(name='two') from X#window.time(2 sec) select v, count() as n group by v insert into O;
    """
    found = {c.name: c for c in build_topology(compile_app(chain).app, 3)}
    assert [(e.source, e.grouping) for e in found["two"].reads] == [("one", "fields(v)")]


def test_it_is_printed_and_encoded():
    components = build_topology(compile_app(APP).app, 2)
    lines = format_topology("shop", components)
    assert lines[:2] == ["topology shop", "  spout orders (1 task): reads the log of orders"]
    assert "          from orders, fields(customer) grouping" in lines
    assert json.loads(encode_topology("shop", components))["components"][0]["kind"] == "spout"
