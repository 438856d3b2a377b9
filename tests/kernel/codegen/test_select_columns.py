from edgewise.kernel.codegen.select_columns import columns_text, is_plain
from edgewise.lang import compile_app


def select(items):
    text = f"define stream S (k string, v int); from S select {items} group by k insert into O;"
    return compile_app(text).app.queries[0].select


def test_attributes_are_taken_and_aggregates_called():
    found = columns_text(
        select("v, k, avg(v) as a, count() as n, sum(v) as s"),
        ("k", "v"),
        "c[{}]".format,
        "x.{}({})".format,
    )
    assert found == "[c[1], c[0], x.means(1), x.counts(), x.sums(1)]"


def test_nothing_stands_around_them():
    assert is_plain(select("k, sum(v) as s"))
    assert not is_plain(select("k, sum(v) + 1 as s"))
