import pytest
from tests.support.parsed_trees import DEFINE, parsed, problems, query

from edgewise.event.types import AttrType
from edgewise.lang.parse.app import parse_on_demand
from edgewise.lang.report import Report
from edgewise.lang.source import SourceText
from edgewise.lang.syntax.expr import AttrRef, Duration, Literal, StreamRef
from edgewise.lang.syntax.query import Name, OrderItem, Output, Rate, SelectItem


def test_every_clause_in_order():
    text = """from S select k, v + 1 as w group by k, v having w > 1 order by k desc, w
    limit 5 offset 2 output last every 3 events insert expired events into T"""
    found = query(text)
    selection = found.selection
    assert selection.items[0] == SelectItem(AttrRef("k"))
    assert selection.group_by == (AttrRef("k"), AttrRef("v"))
    assert selection.order_by == (OrderItem(AttrRef("k"), True), OrderItem(AttrRef("w")))
    assert selection.limit == Literal(AttrType.INT, 5)
    assert found.rate == Rate("last", None, 3)
    assert found.output == Output("insert", Name("T"), "expired")


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("output every 2 events", Rate("all", None, 2)),
        ("output all every 1 sec", Rate("all", Duration(1000))),
        ("output first every 1 sec", Rate("first", Duration(1000))),
        ("output snapshot every 1 sec", Rate("snapshot", Duration(1000))),
    ],
)
def test_rates(text, rate):
    assert query(f"from S select k {text} insert into T").rate == rate


def test_outputs():
    column = AttrRef("k", StreamRef("T"))
    assert query("from S delete T for all events").output == Output("delete", Name("T"), "all")
    update = query("from S update T set T.v = v on T.k == k").output
    assert (update.kind, update.assignments[0].target.stream) == ("update", StreamRef("T"))
    upsert = query("from S update or insert into T on T.k == k").output
    assert (upsert.kind, upsert.on.left) == ("upsert", column)
    assert query("from S return expired events").output == Output("return", None, "expired")
    assert query("from S insert events into !T").output.target == Name("T", "!")


def test_partitions():
    text = """partition with (k of S, v > 5 as 'large' or v <= 5 as 'small' of A)
    begin from S insert into #I; from #I insert into T; end"""
    partition = query(text)
    assert partition.keys[0].value == AttrRef("k")
    assert [r.label for r in partition.keys[1].ranges] == ["large", "small"]
    assert [q.output.target.full for q in partition.queries] == ["#I", "T"]


def test_a_broken_query_in_a_partition_does_not_hide_the_next():
    text = "define stream S (v int); partition with (v of S) begin "
    text += "from S selec v insert into T; from S select into T; end"
    assert len(problems(text)) == 2


def test_what_is_wrong():
    assert problems(DEFINE + "from S select v + 1 insert into T") == [
        "this expression needs a name"
    ]
    assert problems(DEFINE + "from S update T set T.v = v") == [
        "expected 'on' and a condition, found the end of the app"
    ]
    assert problems(DEFINE + "from S output snapshot every 3 events insert into T") == [
        "a snapshot is taken every time span, not every n events"
    ]
    assert problems(DEFINE + "partition with (v of S) begin end")[0] == (
        "a partition holds at least one query"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("from T as t on t.k == 'a' select t.k limit 1", None),
        ("from G within '2020-**' per 'days' select *;", None),
        ("select 'a' as k, 1 as v insert into T", "insert"),
        ("select 'a' as k update or insert into T set T.k = k on T.k == k", "upsert"),
        ("update T set T.k = 'b' on T.k == 'a'", "update"),
        ("delete T on T.k == 'a'", "delete"),
    ],
)
def test_on_demand_queries(text, kind):
    report = Report(SourceText(text))
    found = parse_on_demand(report)
    assert not report.failed, report.errors()
    assert (found.output.kind if found.output else None) == kind


def test_a_tree_keeps_the_order_of_queries():
    tree = parsed(DEFINE + "from S insert into T; from T insert into U;")
    assert [q.output.target.text for q in tree.executions] == ["T", "U"]
