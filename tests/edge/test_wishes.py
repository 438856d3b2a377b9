"""A client that changes its mind, reads seldom, and comes back: whatever it does, each update says
truly which changes it stands for, has the form that was wished for, and in the end it knows all.
"""

import functools

from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.sessions.budget import Budget
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.subscription import DeliveryState, Preference
from edgewise.edge.topics.merges import window_merge
from edgewise.edge.topics.tree import HistoryPage, Policy, Publication, TopicTree
from edgewise.wire import codec
from edgewise.wire.frames import How, RemoveReason
from edgewise.wire.view import Removed, Stopped, Update, View

SECOND = 1_000_000
PATHS = ["a", "b"]
WINDOW = window_merge(["count", "sum"])
WANTS = [
    Preference(),
    Preference(gap_us=SECOND),
    Preference(gap_us=1000 * SECOND),
    Preference(window=WINDOW),
    Preference(window=WINDOW, gap_us=3 * SECOND),
]
SELECTORS = [("#",), ("+",), ("a",)]
POLICIES = [
    Policy(),
    Policy(recovery="precise", keep=3),
    Policy(conflate="off", keep=3),
    Policy(conflate="off", recovery="precise", keep=100),
    Policy(conflate="merge(sum)"),
    Policy(conflate="merge(sum)", recovery="precise", keep=3),
]


class World:
    """Topics of one policy, and all that ever happened to each."""

    def __init__(self, policy):
        self.policy = policy
        self.fanout = Fanout(TopicTree(10))
        self.log = {path: [] for path in PATHS}  # offsets up to, and what came in
        self.now = self.offset = 1
        self.epoch = 0
        self.requests = []  # pages of the log that clients wait for

    def put(self, path):
        value = {"v": self.offset, "k": f"{self.offset % 3}"}
        publication = Publication(
            path, value, self.offset, self.offset, self.epoch, self.policy, history=self
        )
        self.fanout.publish(publication, self.now)
        self.offset += 1
        self.log[path].append((self.offset, value))

    def remove(self, path):
        self.fanout.remove(path)
        self.log[path] = []

    def fetch(self, request):
        self.requests.append(request)

    def read_page(self, rows_max, scan_max):
        """One page of the log, which has no row that the request is not for."""
        if not self.requests:
            return
        request = self.requests.pop(0)
        end = min(request.end, request.start + scan_max)
        rows = [
            Publication(request.path, value, to - 1, to - 1, self.epoch)
            for to, value in self.log[request.path]
            if request.start < to <= end
        ]
        if len(rows) > rows_max:
            rows, end = rows[:rows_max], rows[rows_max - 1].offset + 1
        request.deliver(HistoryPage(rows, end))


class Client:
    def __init__(self, world):
        self.world, self.policy, self.fanout = world, world.policy, world.fanout
        self.view = View()
        self.outbox = Outbox(3, 100_000, 1000)
        self.wishes = {}
        self.wished = 0
        self.held = {}

    def wish(self, which, how):
        self.wished += 1
        if which in self.wishes:
            del self.wishes[which]
            self.fanout.unsubscribe(self.outbox, which, SELECTORS[which])
        else:
            self.wishes[which] = WANTS[how]
            self.fanout.subscribe(self.outbox, which, SELECTORS[which], WANTS[how])

    def come_back(self):
        self.fanout.forget(self.outbox, {which: SELECTORS[which] for which in self.wishes})
        self.outbox = Outbox(3, 100_000, 1000)
        self.view.begin()
        have = {path: (epoch, to) for path, epoch, to in self.view.positions()}
        there = {topic.path for topic in self.fanout.tree if any(self.wanting(topic.path))}
        for path in have.keys() - there:
            self.view.forget(path)  # a session tells it, or the client wants it no more
            del self.held[path]
        for which, want in self.wishes.items():
            self.fanout.subscribe(self.outbox, which, SELECTORS[which], want, have)

    def read(self, bytes_max):
        for data in self.outbox.take(bytes_max, self.world.now):
            event = self.view.take(codec.decode_from_server(data))
            if isinstance(event, Update):
                self.check(event)
                self.held[event.path] = event.meta.to
            elif isinstance(event, Removed):
                assert event.reason in {RemoveReason.UNSUBSCRIBED, RemoveReason.REMOVED}
                del self.held[event.path]
            elif isinstance(event, Stopped):
                subscription = self.outbox.subscriptions.get(event.alias)
                if subscription is not None:
                    self.outbox.resume(subscription, event.epoch, event.to)

    def check(self, update):
        meta, log = update.meta, self.world.log[update.path]
        covered = [value for to, value in log if meta.start < to <= meta.to]
        if meta.how is How.SNAPSHOT:
            assert meta.start == meta.to - 1
        else:
            assert meta.start == self.held[update.path]
        if meta.how in {How.CATCH_UP, How.GAP}:
            assert meta.count == 0
            # The log has every row, so only another form is a reason to send the state anew.
            assert self.policy.recovery != "precise" or self.wished > 1
        else:
            assert meta.count == len(covered) > 0
        if meta.how is How.REPLAY or (self.policy.conflate == "off" and not self.windowed(update)):
            assert meta.count <= 1
        assert update.value == self.formed(update, covered)

    def windowed(self, update):
        return all(want.window for want in self.wanting(update.path))

    def wanting(self, path):
        selecting = {("#",), ("+",), (path,)}
        return (want for which, want in self.wishes.items() if SELECTORS[which] in selecting)

    def formed(self, update, covered):
        meta, log = update.meta, self.world.log[update.path]
        sums = self.policy.conflate == "merge(sum)"
        states = [(to, state(log, to) if sums else value) for to, value in log]
        if self.windowed(update):
            inside = [value for to, value in states if meta.start < to <= meta.to]
            if meta.how in {How.CATCH_UP, How.GAP}:
                inside = [value for to, value in states if to == meta.to]
            if meta.how is How.REPLAY:
                inside = covered
            return WINDOW.show(functools.reduce(WINDOW.merge, map(WINDOW.lift, inside)))
        if sums and meta.how in {How.UPDATE, How.REPLAY}:
            return {"v": sum(value["v"] for value in covered), "k": covered[-1]["k"]}
        return dict(states)[meta.to]

    def settle(self):
        """Time passes, and everything is read."""
        for _ in range(100):
            self.world.now += 2000 * SECOND
            self.read(10**9)
            self.world.read_page(100, 10**9)
        assert self.outbox.idle
        assert not self.outbox.scheduler.timer.heap
        seen = [topic for topic in self.fanout.tree if self.outbox in topic.subscriptions]
        assert self.held == {topic.path: topic.head.to for topic in seen}


def state(log, to):
    values = [value for at, value in log if at <= to]
    return {"v": sum(value["v"] for value in values), "k": values[-1]["k"]}


def check_states(outbox):
    """Where a subscription is kept follows from its state alone."""
    pending = {}
    for alias, subscription in outbox.subscriptions.items():
        topic, state = subscription.topic, subscription.state
        assert (outbox in topic.idle) == (state is DeliveryState.IDLE)
        assert (alias in outbox.scheduler.timer.waiting) == (state is DeliveryState.THROTTLED)
        queue = topic.queue.members if topic.queue is not None else {}
        assert (outbox in queue) == (state is DeliveryState.QUEUED)
        if subscription.sendable:
            pending[alias] = subscription
    assert outbox.scheduler.pending == pending


WHO = st.integers(0, 1)
DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(PATHS)),
        st.tuples(st.just("put"), st.sampled_from(PATHS)),
        st.tuples(st.just("remove"), st.sampled_from(PATHS)),
        st.tuples(st.just("epoch")),
        st.tuples(st.just("pass"), st.sampled_from([1, SECOND // 2, 2 * SECOND, 5000 * SECOND])),
        st.tuples(st.just("read"), WHO, st.sampled_from([1, 60, 10**9])),
        st.tuples(st.just("wish"), WHO, st.integers(0, 2), st.integers(0, len(WANTS) - 1)),
        st.tuples(st.just("budget"), WHO, st.sampled_from([0, 20, 10_000]), st.integers(0, 3)),
        st.tuples(st.just("come_back"), WHO),
        st.tuples(st.just("read_page"), st.integers(1, 3), st.sampled_from([1, 5, 100])),
    ),
    max_size=50,
)


def act(world, clients, verb, *what):
    if verb == "epoch":
        world.epoch += 1
    elif verb == "pass":
        world.now += what[0]
    elif verb in {"put", "remove", "read_page"}:
        getattr(world, verb)(*what)
    elif verb == "budget":
        budget = Budget(*what[1:], world.now)
        clients[what[0]].outbox.budget = budget if budget.limited else None
    else:
        getattr(clients[what[0]], verb)(*what[1:])


@given(st.sampled_from(POLICIES), DEEDS)
def test_each_update_is_what_it_says_and_in_the_end_all_is_known(policy, deeds):
    world = World(policy)
    clients = Client(world), Client(world)
    for deed in deeds:
        act(world, clients, *deed)
        for client in clients:
            check_states(client.outbox)
            assert (
                len(client.outbox.scheduler.timer.heap) <= 2 * len(client.outbox.subscriptions) + 1
            )
    for client in clients:
        client.settle()
    for topic in world.fanout.tree:
        assert not topic.folds
        assert topic.queue is None or not topic.queue.members


def test_who_changes_its_mind_again_and_again_keeps_nothing():
    world = World(Policy())
    client = Client(world)
    world.put("a")
    for _ in range(100):
        client.wish(0, 2)
        client.read(10**9)
        world.put("a")
        client.wish(0, 2)
    assert not client.outbox.scheduler.timer.heap
    assert client.outbox.scheduler.count() == 0
