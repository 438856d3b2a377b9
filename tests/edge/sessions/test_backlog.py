from hypothesis import given
from hypothesis import strategies as st
from tests.edge.sessions.test_outbox import Bench

from edgewise.edge.topics.tree import HistoryPage, Publication
from edgewise.wire import frames


class Log:
    """All rows of one topic, and the pages that were asked for."""

    def __init__(self, bench):
        self.bench = bench
        self.rows = []
        self.requests = []
        self.kept_from = 0

    def publish(self, value):
        self.rows.append(Publication("A", {"v": value}, self.bench.offset, self.bench.offset))
        self.bench.publish("A", {"v": value})
        self.bench.tree.get("A").row_history = self

    def fetch(self, request):
        self.requests.append(request)

    def read_page(self, rows_max):
        request = self.requests.pop(0)
        if self.kept_from > request.start:
            request.deliver(None)
            return
        rows = [row for row in self.rows if request.start <= row.offset < request.end]
        end = rows[rows_max].offset if len(rows) > rows_max else request.end
        request.deliver(HistoryPage(rows[:rows_max], end))


def come_back(log, to, conflate="replace"):
    """A client of a precise topic that held position `to`."""
    client = Bench()
    topic = log.bench.tree.get("A")
    client.outbox.resume(client.outbox.attach(topic, 1), 0, to)
    client.view.take(frames.TopicFrame(topic.alias, "A"))
    return client


def fill(count, **policy):
    bench = Bench(recovery="precise", keep=2, **policy)
    log = Log(bench)
    for value in range(count):
        log.publish(value)
        bench.outbox.take(10**9, 0)
    return log


STEPS = st.lists(st.sampled_from(["publish", "page", "read", "read one"]), min_size=1, max_size=40)


@given(st.sampled_from(["replace", "off"]), st.integers(4, 30), st.integers(1, 5), STEPS)
def test_a_client_that_was_away_for_long_gets_each_row_once_and_in_order(
    conflate, count, rows_max, steps
):
    log = fill(count, conflate=conflate)
    client, seen = come_back(log, 1), []
    replayed = len(log.rows)

    def do(step):
        if step == "publish":
            log.publish(len(log.rows))
            topic = log.bench.tree.get("A")
            subscription = topic.subscriptions[client.outbox]
            if topic.idle.pop(client.outbox, None) is not None:
                client.outbox.offer(subscription, topic.head, 0)
        elif step == "page" and log.requests:
            log.read_page(rows_max)
        elif step.startswith("read"):
            seen.extend(client.flush(10**9 if step == "read" else 1))
        held = sum(
            len(s.backlog.changes) for s in client.outbox.subscriptions.values() if s.backlog
        )
        assert held <= rows_max + 1024

    for step in steps:
        do(step)
    while log.requests or not client.outbox.idle:
        do("page")
        do("read")
    values = [update.value["v"] for update in seen]
    assert values[: replayed - 1] == list(range(1, replayed))
    assert values[-1] == len(log.rows) - 1
    assert all(u.meta.how.name == "REPLAY" for u in seen[: replayed - 1])
    assert all(u.meta.how.name == "UPDATE" for u in seen[replayed - 1 :])
    assert [u.meta.start for u in seen[1:]] == [u.meta.to for u in seen[:-1]]
    if conflate == "off":
        assert values == list(range(1, len(log.rows)))


def test_rows_that_the_log_has_not_kept_are_a_gap():
    log = fill(10)
    log.kept_from = 5
    client = come_back(log, 1)
    assert client.flush() == []
    log.read_page(5)
    (update,) = client.flush()
    assert (update.value["v"], update.meta.how.name, update.meta.start) == (9, "GAP", 1)


def test_a_page_for_a_client_that_left_changes_nothing():
    log = fill(10)
    client = come_back(log, 1)
    client.outbox.forget()
    log.read_page(5)
    assert client.outbox.idle
    assert client.outbox not in log.bench.tree.get("A").idle


def test_a_table_says_gap_as_a_row_is_not_its_value():
    bench = Bench(recovery="precise", keep=2, kind=frames.TopicKind.TABLE)
    log = Log(bench)
    for value in range(5):
        log.publish(value)
    client = come_back(log, 1)
    assert [u.meta.how.name for u in client.flush()] == ["GAP"]
    assert not log.requests
