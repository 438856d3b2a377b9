import threading

import pytest

from edgewise.errors import LogError
from edgewise.log.group_commit import GroupCommit, PendingCommit


class Gate:
    """A commit that waits for the test, and remembers its groups."""

    def __init__(self):
        self.groups = []
        self.entered = threading.Semaphore(0)
        self.open = threading.Semaphore(0)

    def commit(self, group):
        self.groups.append(list(group))
        self.entered.release()
        assert self.open.acquire(timeout=10)
        for entry in group:
            entry.answer = "done"


def started(commit, entry):
    thread = threading.Thread(target=commit.submit, args=(entry,))
    thread.start()
    return thread


def wait_until(condition):
    for _ in range(100_000):
        if condition():
            return
        threading.Event().wait(0.0001)
    raise AssertionError("did not happen")


def test_appends_that_come_meanwhile_share_the_next_commit():
    gate = Gate()
    commit = GroupCommit(gate.commit, 1000)
    entries = [PendingCommit(1) for _ in range(6)]
    threads = [started(commit, entries[0])]
    assert gate.entered.acquire(timeout=10)
    threads += [started(commit, e) for e in entries[1:]]
    wait_until(lambda: len(commit._queue) == 5)
    gate.open.release(2)
    for thread in threads:
        thread.join(10)
    assert [len(g) for g in gate.groups] == [1, 5]
    assert all(e.answer == "done" for e in entries)


def test_what_waits_is_bounded_but_a_giant_goes_alone():
    gate = Gate()
    commit = GroupCommit(gate.commit, 10)
    giant, small = PendingCommit(50), PendingCommit(1)
    threads = [started(commit, giant)]
    assert gate.entered.acquire(timeout=10)
    threads.append(started(commit, small))
    gate.open.release(2)
    for thread in threads:
        thread.join(10)
    assert gate.groups == [[giant], [small]]


def test_an_error_reaches_each_append_it_concerns():
    def commit(group):
        for entry in group:
            entry.error = LogError("no")

    with pytest.raises(LogError, match="no"):
        GroupCommit(commit, 10).submit(PendingCommit(1))


def test_a_broken_commit_breaks_no_later_one():
    faults = [RuntimeError("bug")]

    def commit(group):
        if faults:
            raise faults.pop()
        for entry in group:
            entry.answer = 1

    groups = GroupCommit(commit, 10)
    with pytest.raises(RuntimeError, match="bug"):
        groups.submit(PendingCommit(1))
    later = PendingCommit(1)
    groups.submit(later)
    assert later.answer == 1


def test_closing_waits_for_what_is_under_way_and_refuses_the_rest():
    gate = Gate()
    commit = GroupCommit(gate.commit, 10)
    entry = PendingCommit(1)
    thread = started(commit, entry)
    assert gate.entered.acquire(timeout=10)
    closing = threading.Thread(target=commit.close)
    closing.start()
    gate.open.release()
    closing.join(10)
    thread.join(10)
    assert entry.answer == "done"
    with pytest.raises(LogError, match="closed"):
        commit.submit(PendingCommit(1))


def test_an_append_that_is_interrupted_leaves_nobody_waiting(monkeypatch):
    gate = Gate()
    commit = GroupCommit(gate.commit, 1000)
    first, interrupted, last = PendingCommit(1), PendingCommit(1), PendingCommit(1)
    threads = [started(commit, first)]
    assert gate.entered.acquire(timeout=10)
    raised = []

    def interrupt(self):
        self._ready.wait(10)  # made the leader, and then Ctrl-C
        raise KeyboardInterrupt

    def submit():
        try:
            commit.submit(interrupted)
        except KeyboardInterrupt as error:
            raised.append(error)

    with monkeypatch.context() as patch:
        patch.setattr(PendingCommit, "_wait", interrupt)
        threads.append(threading.Thread(target=submit))
        threads[-1].start()
        wait_until(lambda: interrupted in commit._queue)
    threads.append(started(commit, last))
    wait_until(lambda: last in commit._queue)
    gate.open.release(2)
    for thread in threads:
        thread.join(10)
    assert raised
    assert (first.answer, interrupted.answer, last.answer) == ("done", None, "done")
    commit.close()
