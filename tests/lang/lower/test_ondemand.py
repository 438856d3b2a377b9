import pytest
from tests.support.compiled_plans import planned

from edgewise.errors import AppError
from edgewise.lang import compile_query
from edgewise.plan.exprs import Field
from edgewise.plan.nodes import DeleteFrom, InsertInto, StoreKind, UpdateOrInsert, UpdateTable

APP = planned("define aggregation G from S select sum(v) as t aggregate every sec;")


def test_reading_a_store():
    found = compile_query("from T as t on t.v > 1 select t.k, count() as n group by t.k", APP)
    assert (found.store, found.kind, found.slot) == ("T", StoreKind.TABLE, "t")
    assert isinstance(found.select.group_by[0], Field)
    found = compile_query("from G within '2020-**' per 'days' select *", APP)
    assert [i.name for i in found.select.items] == ["AGG_TIMESTAMP", "t"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("select 'a' as k, 1 as v insert into T", InsertInto),
        ("select 'a' as k, 1 as v update or insert into T on T.k == k", UpdateOrInsert),
        ("update T set T.v = 2 on T.k == 'a'", UpdateTable),
        ("delete T on T.k == 'a'", DeleteFrom),
    ],
)
def test_writing_a_table(text, kind):
    assert isinstance(compile_query(text, APP).output, kind)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from U select *", "there is no table or window or aggregation 'U'"),
        ("from T select z", "there is no attribute 'z' here"),
        ("from G select *", "an aggregation is read with 'within' and 'per'"),
        ("select 1 as v insert into B", "'B' is a stream, not a table"),
        ("from T select", "expected an expression"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(AppError, match=message):
        compile_query(text, APP)
