from tests.engines.kernel.apps import data, play

V = "from A#window.{} select v insert all events into O;"


def marks(window, events):
    return [(row[1], row[2]) for row in play(V.format(window), events)]


def a(*stamps):
    return [("A", 1000 + t, "x", t) for t in stamps]


def test_a_full_batch_pushes_the_last_one_out():
    assert marks("lengthBatch(2)", a(1, 2, 3, 4)) == [
        ("+", 1), ("+", 2), ("-", 1), ("-", 2), ("+", 3), ("+", 4),
    ]  # fmt: skip


def test_a_streaming_batch_lets_each_event_pass():
    assert marks("lengthBatch(2, true)", a(1, 2, 3)) == [
        ("+", 1), ("+", 2), ("-", 1), ("-", 2), ("+", 3),
    ]  # fmt: skip


def test_an_event_past_the_end_lets_an_external_batch_out():
    query = "from T#window.externalTimeBatch(t, 10) select t insert into O;"
    head = "define stream T (t long); "
    events = [("T", 1000, t) for t in (5, 9, 15, 40)]
    assert data(query.replace("10)", "10 milliseconds)"), events, head) == [(5,), (9,), (15,)]


def test_hopping_batches_overlap():
    rows = marks("hopping(20 milliseconds, 10 milliseconds)", [*a(1, 12), 1060])
    assert [v for mark, v in rows if mark == "+"] == [1, 1, 12, 12]


def test_an_expression_closes_a_batch():
    assert marks("expressionBatch('count() < 3')", a(1, 2, 3, 4, 5))[:4] == [
        ("+", 1), ("+", 2), ("-", 1), ("-", 2),
    ]  # fmt: skip
