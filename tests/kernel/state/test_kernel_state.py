"""State as entries for a store: a cut anywhere changes nothing, and little is written twice."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.test_kernel import (
    APPS,
    END,
    EVENTS,
    KEYED,
    LATE_EVENTS,
    SUM,
    run_through,
)
from tests.support.kernel_plans import K, app_of, kernel_of, plain, query, runs, window

from edgewise.errors import StateError
from edgewise.kernel.state import pieces
from edgewise.lang import compile_app


@pytest.fixture(autouse=True, scope="module")
def small():
    """Short lists are cut too."""
    kept = pieces.LEAST_ITEMS, pieces.MEAN_ITEMS
    pieces.LEAST_ITEMS, pieces.MEAN_ITEMS = 4, 2
    yield
    pieces.LEAST_ITEMS, pieces.MEAN_ITEMS = kept


@given(APPS, EVENTS | LATE_EVENTS, st.integers(0, 25))
def test_a_snapshot_anywhere_changes_nothing(app, events, cut):
    cut = min(cut, len(events))
    whole = run_through(kernel_of(app), events)
    first, second = kernel_of(app), kernel_of(app)
    parts = list(runs(events, range(len(events))))
    for run in parts[:cut]:
        first.feed(run)
    second.restore([(k, s) for k, s in first.changed() if s is not None])
    for run in parts[cut:]:
        second.feed(run)
    second.advance(END, 77)
    assert first.take() + second.take() == whole


@given(st.sampled_from(KEYED), EVENTS, st.integers(0, 25), st.integers(0, 25))
def test_incremental_snapshots_by_key_add_up(app, events, one, two):
    cuts = sorted({min(one, len(events)), min(two, len(events))})
    parts = list(runs(events, range(len(events))))
    first, second = kernel_of(app, key=("k",)), kernel_of(app, key=("k",))
    stored = {}
    for i, run in enumerate(parts):
        if i in cuts:
            stored.update(first.changed())
        if i == cuts[-1]:
            break
        first.feed(run)
    stored.update(first.changed())
    second.restore([(k, s) for k, s in stored.items() if s is not None])
    for run in parts[cuts[-1] :]:
        second.feed(run)
    second.advance(END, 77)
    assert plain(first.take() + second.take()) == plain(
        run_through(kernel_of(app, key=("k",)), events)
    )


def test_a_key_that_holds_nothing_is_gone():
    kernel = kernel_of(KEYED[0], key=("k",))
    for run in runs([(1000, ("a", 1, None)), (1001, ("b", 1, None))]):
        kernel.feed(run)
    assert all(state is not None for _, state in kernel.changed())
    kernel.advance(1100, 0)
    assert [state is None for _, state in kernel.changed()] == [True]
    assert kernel.stats.keys == 1


def test_a_key_whose_pattern_waits_for_nothing_is_gone():
    app = compile_app(
        "define stream S (k string, v int, p double); "
        "from every e1=S[v > 5] -> e2=S[v < 2] -> e3=S[v == 3] select e1.v as a insert into O;"
    ).app
    kernel = kernel_of(app, key=("k",))
    feed = [(1000, ("a", 9, None)), (1001, ("b", 4, None)), (1002, ("a", 1, None))]
    for run in runs(feed):
        kernel.feed(run)
    assert sorted(state is None for _, state in kernel.changed()) == [False, True]
    for run in runs([(1003, ("a", 3, None))]):
        kernel.feed(run)
    assert [state is None for _, state in kernel.changed()] == [True]


@given(APPS, EVENTS | LATE_EVENTS, st.sets(st.integers(0, 25)))
def test_what_changed_adds_up_without_a_key(app, events, cuts):
    parts = list(runs(events, range(len(events))))
    kernel, stored, rows = kernel_of(app), {}, []
    for low, high in pairwise(sorted({0, len(parts), *(c for c in cuts if c < len(parts))})):
        kernel.restore(stored.items())
        for run in parts[low:high]:
            kernel.feed(run)
        stored.update(kernel.changed())
        stored = {key: state for key, state in stored.items() if state is not None}
        rows += kernel.take()
        kernel = kernel_of(app)
    kernel.restore(stored.items())
    kernel.advance(END, 77)
    assert rows + kernel.take() == run_through(kernel_of(app), events)


@pytest.mark.parametrize("group", [[], [K]])
def test_a_long_window_is_not_written_again(group):
    app = app_of(query({"k": K, "s": SUM}, win=window("length", 20_000), group=group))
    kernel = kernel_of(app)
    rows = [(1000 + i, (f"k{i}", i, None)) for i in range(20_001)]
    for run in runs(rows[:-1]):
        kernel.feed(run)
    whole = sum(len(key) + len(state) for key, state in kernel.changed())
    for run in runs(rows[-1:]):
        kernel.feed(run)
    more = [(key, state) for key, state in kernel.changed() if state is not None]
    assert sum(len(key) + len(state) for key, state in more) < whole / 3


def test_a_sum_that_outgrew_its_type_is_kept():
    app = compile_app("define stream S (v long); from S select sum(v) as s insert into O;").app
    first, second = kernel_of(app), kernel_of(app)
    events = [(1000 + i, (2**63 - 1,)) for i in range(6)]
    head, tail = runs(events, [5])
    first.feed(head)
    second.restore(first.changed())
    second.feed(tail)
    assert [r.data for r in second.take()] == [((6 * (2**63 - 1) + 2**63) % 2**64 - 2**63,)]


def test_state_of_another_query_is_refused():
    first, second = kernel_of(KEYED[0], key=("k",)), kernel_of(KEYED[1], key=("k",))
    for run in runs([(1000, ("a", 1, None))]):
        first.feed(run)
    with pytest.raises(StateError, match="belongs to another query"):
        second.restore(list(first.changed()))
