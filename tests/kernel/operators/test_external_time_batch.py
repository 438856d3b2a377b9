"""Batches by an attribute end with events, not with the clock."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import data

from edgewise.kernel.operators.external_time_batch import begun, end_of

QUERY = "from T#window.externalTimeBatch(t, 10 milliseconds) select t insert into O;"
HEAD = "define stream T (t long); "


def test_an_event_past_the_end_lets_an_external_batch_out():
    events = [("T", 1000, t) for t in (5, 9, 15, 40)]
    assert data(QUERY, events, HEAD) == [(5,), (9,), (15,)]


@given(st.lists(st.integers(0, 200), max_size=20).map(sorted))
def test_every_event_but_those_of_the_open_batch_comes_out_once_and_in_order(times):
    found = [t for (t,) in data(QUERY, [("T", 1000, t) for t in times], HEAD)]
    assert found == times[: len(found)]
    still_open = times[len(found) :]
    assert not still_open or still_open[-1] - still_open[0] < 10


def test_a_batch_that_has_begun_knows_its_end():
    assert end_of(begun(1234)) == 1234
