"""A table with a primary key is a dictionary, one without is a list."""

from hypothesis import given
from hypothesis import strategies as st

from edgewise.kernel.operators.table_rows import TableRows
from edgewise.kernel.runtime import Runtime

rows = st.tuples(st.integers(0, 4), st.integers(0, 9))
steps = st.lists(st.tuples(st.sampled_from(["insert", "delete", "update"]), rows), max_size=30)


def table_of(key):
    rt = Runtime(keyed=False)
    table = TableRows(rt, 0, key)
    rt.root = [table.fresh()]
    return table


@given(steps)
def test_a_keyed_table_is_a_dictionary(changes):
    table, model = table_of((0,)), {}
    for verb, row in changes:
        k, v = row
        if verb == "insert":
            table.insert(row)
            model.setdefault(k, v)
        elif verb == "delete":
            table.delete(lambda r, k=k: r[0] == k, (k,))
            model.pop(k, None)
        else:
            known = table.update(lambda r, k=k: r[0] == k, lambda r, v=v: (r[0], v), (k,))
            assert known is (k in model)
            model |= {k: v} if k in model else {}
    assert list(table.rows()) == sorted(model.items())
    assert [list(table.rows((k,))) for k in model] == [[item] for item in model.items()]


@given(steps)
def test_a_table_without_a_key_is_a_list(changes):
    table, model = table_of(()), []
    for verb, row in changes:
        k, v = row
        if verb == "insert":
            table.insert(row)
            model.append(row)
        elif verb == "delete":
            table.delete(lambda r, k=k: r[0] == k)
            model = [r for r in model if r[0] != k]
        else:
            table.update(lambda r, k=k: r[0] == k, lambda r, v=v: (r[0], v))
            model = [(k, v) if r[0] == k else r for r in model]
    assert list(table.rows()) == model


def test_two_rows_never_share_a_key():
    table = table_of((0,))
    table.insert((1, 1))
    table.insert((2, 2))
    assert table.update(lambda _row: True, lambda row: (1, row[1]))
    assert list(table.rows()) == [(1, 1), (2, 2)]
    assert table.rt.faults == {"duplicate key": 1}
