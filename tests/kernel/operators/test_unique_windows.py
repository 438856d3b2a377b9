import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import play

ALL = "from A#window.{} select k, v insert all events into O;"
STEPS = st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 5)), max_size=20)


def marks(window, events):
    return [row[1:] for row in play(ALL.format(window), events)]


def in_turn(steps):
    return [("A", 1000 + 10 * i, k, v) for i, (k, v) in enumerate(steps)]


@given(STEPS)
def test_of_each_key_only_the_newest_event_stays(steps):
    held = {}
    for mark, key, value in marks("unique:ever(k)", in_turn(steps)):
        if mark == "-":
            assert held.pop(key) == value
        else:
            held[key] = value
    assert held == dict(steps)


@given(STEPS)
def test_the_first_event_of_each_key_passes(steps):
    first = dict(reversed(steps))
    assert dict(row[1:] for row in marks("unique:first(k)", in_turn(steps))) == first


@given(STEPS, st.integers(1, 3))
def test_no_more_than_n_keys_stay(steps, n):
    held = {}
    for mark, key, value in marks(f"unique:length(k, {n})", in_turn(steps)):
        if mark == "-":
            assert held.pop(key) == value
        else:
            held[key] = value
        assert len(held) <= n


def test_an_event_leaves_by_time_or_for_a_newer_one_of_its_key():
    events = [("A", 1000, "x", 1), ("A", 1010, "y", 2), ("A", 1020, "x", 3), 1200]
    assert play(ALL.format("unique:time(k, 50)"), events) == [
        (1000, "+", "x", 1), (1010, "+", "y", 2), (1020, "-", "x", 1), (1020, "+", "x", 3),
        (1060, "-", "y", 2), (1070, "-", "x", 3),
    ]  # fmt: skip


@pytest.mark.parametrize(("window", "kept"), [("lengthBatch", 3), ("firstLengthBatch", 1)])
def test_a_batch_is_full_with_n_keys(window, kept):
    steps = [("x", 1), ("x", 3), ("y", 2)]
    assert marks(f"unique:{window}(k, 2)", in_turn(steps)) == [("+", "x", kept), ("+", "y", 2)]


@pytest.mark.parametrize(("window", "kept"), [("timeBatch", 3), ("firstTimeBatch", 1)])
def test_a_batch_by_time_has_each_key_once(window, kept):
    events = [*in_turn([("x", 1), ("x", 3), ("y", 2)]), 1400]
    assert play(ALL.format(f"unique:{window}(k, 100)"), events) == [
        (1100, "+", "x", kept), (1100, "+", "y", 2), (1200, "-", "x", kept), (1200, "-", "y", 2),
    ]  # fmt: skip


def test_what_comes_after_a_full_batch_is_gone_until_the_next():
    steps = [("x", 1), ("y", 2), ("z", 3)]
    events = [*in_turn(steps), 1120, ("A", 1130, "z", 4), ("A", 1140, "x", 5), 1300]
    found = [row for row in marks("unique:timeLengthBatch(k, 100, 2)", events) if row[0] == "+"]
    assert found == [("+", "x", 1), ("+", "y", 2), ("+", "x", 5), ("+", "z", 4)]


def test_batches_by_an_attribute_have_each_key_once():
    head = "define stream A (k string, t long, v int);"
    events = [("A", 1000, "x", 10, 1), ("A", 1001, "x", 20, 2), ("A", 1002, "y", 30, 3),
              ("A", 1003, "y", 120, 4)]  # fmt: skip
    query = "from A#window.unique:externalTimeBatch(k, t, 100) select k, v insert into O;"
    assert [row[2:] for row in play(query, events, head)] == [("x", 2), ("y", 3)]
