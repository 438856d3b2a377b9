from tests.support.kernel_runs import data, engine

SOURCE = "from every e1=A[v > 2] -> e2=B<2> -> e3=A select e1.v as a, e3.v as b insert into O;"


def test_the_test_of_an_element_is_an_expression_over_locals():
    source = engine(SOURCE).kernel.source
    assert "_own0(ts, row):" in source
    assert "x0 = row[1]" in source


def test_the_last_in_its_own_filter_is_the_one_before():
    query = (
        "from every e1=A, e2=A[e2[last].v is null or v > e2[last].v]+, e3=B "
        "select e2[0].v as a, e2[last].v as z insert into O;"
    )
    events = [("A", 1, "x", 9), ("A", 2, "x", 1), ("A", 3, "x", 2), ("B", 4, "x", 0)]
    assert data(query, events) == [(1, 2)]


def test_a_bare_counted_attribute_is_the_list():
    query = "from e1=A<2> -> e2=B select e1.v as vs insert into O;"
    events = [("A", 1, "x", 1), ("A", 2, "x", 2), ("B", 3, "x", 0)]
    assert data(query, events) == [([1, 2],)]
