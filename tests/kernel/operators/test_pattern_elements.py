"""Counts, `and`, `or`: each fact as the language states it."""

import pytest
from tests.support.kernel_runs import START, data

A = [("A", START + i, "x", i) for i in range(1, 7)]
B = ("B", START + 50, "x", 9)


def test_a_count_collects_until_the_next_element_matches():
    query = (
        "from every e1=A<2:4> -> e2=B "
        "select e1[0].v as a, e1[last].v as z, e2.v as b insert into O;"
    )
    assert data(query, [*A, B]) == [(1, 4, 9), (3, 6, 9), (5, 6, 9)]


def test_an_element_that_was_not_there_is_null():
    query = "from e1=A<0:2> -> e2=B select e1[0].v as a, e2.v as b insert into O;"
    assert data(query, [B]) == [(None, 9)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_and_takes_either_order(order):
    query = "from e1=A and e2=B select e1.v as a, e2.v as b insert into O;"
    events = [A[0], B]
    assert data(query, [events[i] for i in order]) == [(1, 9)]


def test_or_leaves_the_other_side_null():
    query = "from e1=A or e2=B select e1.v as a, e2.v as b insert into O;"
    assert data(query, [B]) == [(None, 9)]


def test_a_sequence_collects_with_plus():
    query = (
        "from every e1=A[v < 3]+, e2=B select e1[0].v as a, e1[last].v as z, e2.v as b "
        "insert into O;"
    )
    assert data(query, [*A[:2], B]) == [(1, 2, 9)]
