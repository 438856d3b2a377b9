from tests.support.kernel_runs import START, play


def test_a_trailing_absence_is_met_when_its_time_is_over():
    query = "from e1=A -> not B for 100 milliseconds select e1.v as a insert into O;"
    assert play(query, [("A", 1010, "x", 1), 2000]) == [(1110, "+", 1)]
    assert play(query, [("A", 1010, "x", 1), ("B", 1050, "x", 1), 2000]) == []


def test_a_leading_absence_counts_from_the_start():
    query = "from not A for 100 milliseconds -> e2=B select e2.v as b insert into O;"
    assert play(query, [("B", 1050, "x", 1), ("B", 1150, "x", 2)]) == [(1150, "+", 2)]
    assert play(query, [("A", 1050, "x", 0), ("B", 1120, "x", 1), ("B", 1151, "x", 2)]) == [
        (1151, "+", 2)
    ]


def test_every_absence_is_met_again_and_again():
    query = "from every not A for 100 milliseconds select 1 as one insert into O;"
    assert [row[0] for row in play(query, [START + 350])] == [1100, 1200, 1300]


def test_absence_beside_and_waits_for_both():
    query = "from not A for 100 milliseconds and e2=B select e2.v as b insert into O;"
    assert play(query, [("B", 1050, "x", 1), 2000]) == [(1100, "+", 1)]
    assert play(query, [("A", 1010, "x", 1), ("B", 1050, "x", 1), 1100]) == []


def test_absence_without_time_is_broken_by_its_event():
    query = "from e1=A -> not B and e3=A select e1.v as a, e3.v as c insert into O;"
    assert play(query, [("A", 1001, "x", 1), ("A", 1002, "x", 2)]) == [(1002, "+", 1, 2)]
    events = [("A", 1001, "x", 1), ("B", 1002, "x", 0), ("A", 1003, "x", 2)]
    assert play(query, events) == []


def test_absence_beside_or_is_met_by_time():
    query = (
        "from e1=A -> not B for 100 milliseconds or e3=A "
        "select e1.v as a, e3.v as c insert into O;"
    )
    assert play(query, [("A", 1001, "x", 1), 2000]) == [(1101, "+", 1, None)]
