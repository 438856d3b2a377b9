"""Queues by parts: everything comes back, and a save writes what came and not what is held."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import StateError
from edgewise.kernel import compile_kernel, serialize
from edgewise.kernel.api import EventRun
from edgewise.kernel.queues import Queue
from edgewise.kernel.state.queue_parts import (
    LEAST_ROWS,
    PART_ROWS_MAX,
    QueueParts,
    encode_entries,
    find_owner,
    forget_stored,
    is_part,
    join_parts,
)
from edgewise.lang import compile_app
from edgewise.plan.rules.keys import split_into_fragments

PLAN, KEY = b"plan", serialize.pack_key(("k",))
# Rows that come and rows that leave before each save; a restart before it, or none.
STEPS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60), st.booleans()), max_size=12)


def store(entries, into):
    entries = encode_entries(entries)
    for key, data in entries:
        if data is None:
            into.pop(key, None)
        else:
            into[key] = data
    return sum(len(key) + len(data or b"") for key, data in entries)


def load(stored):
    return serialize.unpack(PLAN, join_parts(stored.items())[KEY])


@given(STEPS)
def test_what_came_and_what_left_comes_back_across_restarts(steps):
    parts, state, stored, number = QueueParts(), [0, Queue(), {"p": [Queue()]}], {}, 0
    for came, leave, restart in steps:
        for queue in (state[1], state[2]["p"][0]):
            queue.extend((number + i, ("text", 1.5)) for i in range(came))
            for _ in range(min(leave, len(queue))):
                queue.popleft()
        number += came
        store(parts.pack(PLAN, KEY, state), stored)
        assert load(stored) == state
        if restart:
            parts, state = QueueParts(), load(stored)
            parts.remember(KEY, state)
    for queue in (state[1], state[2]["p"][0]):
        queue.clear()
    store(parts.pack(PLAN, KEY, state), stored)
    assert list(stored) == [KEY]


@given(st.integers(LEAST_ROWS, 200))
def test_a_state_that_goes_takes_its_parts_along(rows):
    parts, stored = QueueParts(), {}
    store(parts.pack(PLAN, KEY, [Queue((n,) for n in range(rows))]), stored)
    assert {find_owner(name) for name in stored} == {KEY}
    assert sum(map(is_part, stored)) == 1
    store(parts.drop(KEY), stored)
    assert stored == {}


def test_a_queue_that_is_no_longer_there_takes_its_parts_along():
    parts, stored = QueueParts(), {}
    store(parts.pack(PLAN, KEY, [{"one": Queue((n,) for n in range(50))}]), stored)
    store(parts.pack(PLAN, KEY, [{}]), stored)
    assert list(stored) == [KEY]


def test_many_rows_are_several_parts_that_stay_as_they_were_collected():
    parts, stored = QueueParts(), {}
    queue = Queue((n,) for n in range(2 * PART_ROWS_MAX + 1))
    later = parts.pack(PLAN, KEY, [queue])
    expected = [Queue(queue)]
    queue.popleft()
    queue.append((-1,))
    store(later, stored)
    assert sum(map(is_part, stored)) == 3
    assert load(stored) == expected
    store(parts.pack(PLAN, KEY, [queue]), stored)
    assert load(stored) == [queue]


def test_a_missing_part_is_refused():
    parts, stored = QueueParts(), {}
    store(parts.pack(PLAN, KEY, [Queue((n,) for n in range(50))]), stored)
    state = Queue((n,) for n in range(50))
    store(parts.pack(PLAN, KEY, [state]), stored)
    state.append((50,))
    store(parts.pack(PLAN, KEY, [state]), stored)
    del stored[max(name for name in stored if is_part(name))]
    with pytest.raises(StateError, match="a part of a window is missing"):
        load(stored)


def test_a_carried_state_is_written_whole():
    parts, stored = QueueParts(), {}
    state = [Queue((n,) for n in range(50))]
    store(parts.pack(PLAN, KEY, state), stored)
    forget_stored(state)
    again = {}
    store(QueueParts().pack(PLAN, KEY, state), again)
    assert load(again) == state


HEAD = "define stream S (k string, v int, t long); "
WINDOWS = {
    "time": "from S#window.time({0}) select k, avg(v) as a group by k insert into O;",
    "all": "from S#window.time({0}) select count() as a insert into O;",
    "expired": "from S#window.time({0}) select k, v insert all events into O;",
    "external": "from S#window.externalTime(t, {0}) select k, sum(v) as a group by k "
    "insert into O;",
    "length": "from S#window.length({0}) select k, sum(v) as a group by k insert into O;",
    "delay": "from S#window.delay({0}) select k, v insert into O;",
    "partition": "partition with (k of S) begin from S#window.time({0}) select k, sum(v) as a "
    "insert into O; end;",
}


@pytest.mark.parametrize("query", WINDOWS)
def test_bytes_per_save_are_flat_in_the_length_of_a_window(query):
    """Counted in bytes: late saves of a window of 40 s are as large as those of 2 s."""
    written = {span: _bytes_of_late_saves(WINDOWS[query].format(span)) for span in (2000, 40000)}
    assert written[40000] <= 1.25 * written[2000]


def _bytes_of_late_saves(query):
    app = compile_app(HEAD + query).app
    [fragment] = split_into_fragments(app)
    kernel, stored, late = compile_kernel(app, fragment), {}, 0
    for save in range(30):
        ts = list(range(1 + save * 1000, 1001 + save * 1000))
        rows = [[f"k{n % 20}" for n in ts], [n % 100 for n in ts], ts]
        kernel.feed(EventRun("S", ts, rows, [n - 1 for n in ts], ts, [n * 1000 for n in ts]))
        kernel.take()
        size = store(kernel.changed(), stored)
        late += size if save >= 20 else 0
    again = compile_kernel(app, fragment)
    again.restore(stored.items())
    kernel.advance(100_000, 100_000_000)
    again.advance(100_000, 100_000_000)
    assert again.take() == kernel.take()
    return late


def test_a_state_with_parts_and_with_pieces_comes_back_whole():
    """Many counts are cut into pieces, a long window into parts: both in one state."""
    text = "from S#window.time(1 min) select distinctCount(k) as a insert into O;"
    app = compile_app(HEAD + text).app
    [fragment] = split_into_fragments(app)
    kernel, stored = compile_kernel(app, fragment), {}
    ts = list(range(1, 2001))
    rows = [[f"k{n}" for n in ts], [n % 100 for n in ts], ts]
    kernel.feed(EventRun("S", ts, rows, [n - 1 for n in ts], ts, [n * 1000 for n in ts]))
    kernel.take()
    store(kernel.changed(), stored)
    assert any(map(is_part, stored))
    again = compile_kernel(app, fragment)
    again.restore(stored.items())
    for one in (kernel, again):
        one.advance(100_000, 100_000_000)
    assert kernel.take() == again.take()
    assert encode_entries(again.changed())
