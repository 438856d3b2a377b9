"""Keep what one session still has to send, and give it out when the socket can take it. Pure.

Nothing is encoded before `take`, and nothing is taken before the socket can have it. Until then a
newer value takes the turn of an older one (conflation), so what waits is bounded by the number of
topics, however slow the client is:

    came (oldest first)    A1  B1  C1  A2  C2
    conflate='replace'     A2  B1  C2          the newest value, in the turn of the oldest
    'merge(sum)'           A1+A2  B1  C1+C2
    'off'                  A1  B1  C1  A2  C2  all of them, in the queue of each topic; a session
                                               that falls too far behind there is paused, after
                                               what it still had to get

The scheduler chooses the topic, the writer the frame, `resume.py` what a returning client gets;
`subscription.py` has the table of states. Sessions own an outbox, fanout offers changes to it,
connections take frames from it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial

from edgewise.edge.sessions.backlog import Backlog
from edgewise.edge.sessions.budget import UNLIMITED, Budget
from edgewise.edge.sessions.control import ControlQueue
from edgewise.edge.sessions.encode import encode_topic
from edgewise.edge.sessions.resume import ReplayMissed, plan_resume
from edgewise.edge.sessions.scheduler import Scheduler
from edgewise.edge.sessions.subscription import (
    NO_PREFERENCE,
    TRANSITIONS,
    DeliveryState,
    Preference,
    TopicSubscription,
    Trigger,
)
from edgewise.edge.sessions.update_writer import UpdateWriter, close_fold
from edgewise.edge.topics.change_queue import TopicChange
from edgewise.edge.topics.tree import HistoryPage, Topic
from edgewise.wire import codec
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import How, Paused, Remove, RemoveReason

# Looked up once: each update passes here.
_IDLE, _PENDING, _THROTTLED, _QUEUED, _PAUSING, _PAUSED = DeliveryState
_VALUE_DUE, _RATE_EXCEEDED, _RATE_ELAPSED, _CHANGE_QUEUED = itertools.islice(Trigger, 4)
_SENT, _QUEUE_FULL, _PAUSE_SENT, _RESET = itertools.islice(Trigger, 4, 8)
_FROM_IDLE, _FROM_PENDING, _FROM_QUEUED = (
    TRANSITIONS[state] for state in (_IDLE, _PENDING, _QUEUED)
)


class Outbox:
    """Control frames first, then names of topics, then updates."""

    __slots__ = (
        "budget",
        "control",
        "may_read",
        "queue_max",
        "scheduler",
        "subscriptions",
        "topics_max",
        "written",
    )

    def __init__(self, queue_max: int, control_bytes_max: int, topics_max: int) -> None:
        self.topics_max = topics_max
        self.queue_max = queue_max  # of one topic that may not be conflated
        self.may_read: Callable[[tuple[str, ...]], bool] = lambda _path: True
        self.subscriptions: dict[int, TopicSubscription] = {}  # by alias
        self.budget: Budget | None = None
        self.control = ControlQueue(control_bytes_max)
        self.written = UpdateWriter()
        self.scheduler = Scheduler()

    @property
    def conflated(self) -> int:
        """Updates that were overtaken while they waited: those gone and those still here."""
        return self.written.conflated + self.scheduler.count_overtaken()

    @property
    def idle(self) -> bool:
        """Nothing waits, not even for time to pass."""
        scheduler = self.scheduler
        waits = scheduler.pending or scheduler.timer.heap
        return not (waits or self.control.bytes or self.control.announcements)

    def ready(self, now_us: int) -> bool:
        """Whether `take` would give anything."""
        if self.control.bytes or self.control.announcements:
            return True
        if not self.scheduler.is_due(now_us):
            return False
        return self.budget is None or self.budget.bytes_left(now_us) > 0

    def wake_us(self) -> int:
        """When `ready` may become true by time alone; 0 when only a change can do it."""
        if self.scheduler.pending:
            return self.budget.ready_us() if self.budget is not None else 0
        return self.scheduler.timer.next_us

    def attach(
        self, topic: Topic, subscription_id: int, preference: Preference = NO_PREFERENCE
    ) -> TopicSubscription | None:
        """See a topic; its current value becomes pending. None when the client may not."""
        if not self.may_read(topic.segments):
            return None
        subscription = self.subscriptions.get(topic.alias)
        if subscription is None:
            if len(self.subscriptions) >= self.topics_max:
                self.control.refuse_topic(subscription_id, self.topics_max)
                return None
            subscription = self.subscriptions[topic.alias] = TopicSubscription(topic)
            topic.subscriptions[self] = topic.idle[self] = subscription
            if topic.head is not None:
                subscription.overtaken_us = topic.head.at_us
                self._await_head(subscription, topic.head)
        self.prefer(subscription, subscription_id, preference)
        return subscription

    def prefer(
        self,
        subscription: TopicSubscription,
        subscription_id: int,
        preference: Preference | None,
    ) -> None:
        """Another wish for a topic. A client that holds a value in another form than it is to get
        from now on gets the current one anew, and at once.
        """
        gap_us, overtaken = subscription.preference.gap_us, subscription.overtaken
        reshaped = subscription.prefer(subscription_id, preference)
        wider_us = subscription.preference.gap_us - gap_us
        if wider_us:
            subscription.due_us += wider_us
            if subscription.state is _THROTTLED:
                self.scheduler.timer.start(subscription)
        if reshaped and subscription.sent is not None:
            close_fold(subscription)
            if subscription.state not in {_PAUSING, _PAUSED}:
                self.written.count_conflated(subscription.topic, overtaken)
                self._send_in_other_form(subscription)

    def detach(self, topic: Topic, reason: RemoveReason) -> None:
        subscription = self.subscriptions.pop(topic.alias, None)
        if subscription is None:
            return
        known = subscription.announced
        # From an earlier session: the client has the topic, and this one did not name it yet.
        held = topic.alias in self.control.announcements or subscription.resumes
        self._reset(subscription)
        topic.subscriptions.pop(self, None)
        topic.idle.pop(self, None)
        if held and not known:
            self.control.add(encode_topic(topic))
        if held or known:
            self.control.add(codec.encode(Remove(topic.alias, reason)))

    def forget(self) -> None:
        """The session ended: no topic refers to it any more."""
        for subscription in self.subscriptions.values():
            topic = subscription.topic
            close_fold(subscription)
            topic.subscriptions.pop(self, None)
            topic.idle.pop(self, None)
            if topic.queue is not None:
                topic.queue.leave(self)
        self.subscriptions.clear()
        self.control.announcements.clear()
        self.scheduler.clear()

    def offer(self, subscription: TopicSubscription, change: TopicChange, now_us: int) -> None:
        """A topic changed, and took this subscription out of those that are idle. While something
        waits nothing is offered: that is conflation, and it costs nothing.
        """
        topic, merge = subscription.topic, subscription.merge
        if subscription.state is not _IDLE:
            return
        if topic.queue is not None and merge is None:
            self._queue_up(subscription, change)
            return
        subscription.overtaken_us = change.at_us
        subscription.first = change.version
        if merge is not None and subscription.sent is not None:
            subscription.fold = topic.open_fold(change, merge)
        if now_us < subscription.due_us:
            subscription.state = _FROM_IDLE[_RATE_EXCEEDED]
            self.scheduler.timer.start(subscription)
        else:
            subscription.state = _FROM_IDLE[_VALUE_DUE]
            if subscription.backlog is None or subscription.backlog.changes:
                self.scheduler.pending[topic.alias] = subscription

    def pause(self, subscription: TopicSubscription, head: int) -> None:
        """Too far behind for the queue: what came before version `head` is kept, then it ends."""
        topic = subscription.topic
        queue, first = topic.queue, subscription.covered + 1
        assert queue is not None, "only a queue pauses"
        subscription.keep([queue.changes[n] for n in range(first, head)], head - 1)
        queue.leave(self)
        self._move(subscription, _QUEUE_FULL)

    def resume(self, subscription: TopicSubscription, epoch: int, to: int) -> None:
        """The client holds this position: give it what it missed, and say how exact that is."""
        topic = subscription.topic
        head = topic.head
        self._reset(subscription)
        if head is None:
            return
        plan = plan_resume(topic, head, epoch, to)
        if plan is None:
            subscription.sent = head
            if not subscription.announced:
                self.control.announcements[topic.alias] = subscription
        elif isinstance(plan, ReplayMissed):
            backlog = subscription.backlog = Backlog(plan.changes, head.version, head.version)
            subscription.sent = plan.base
            if plan.changes:
                self.scheduler.pending[topic.alias] = subscription
            else:
                backlog.read_log(topic, to, self, partial(self._take_page, subscription, backlog))
        else:
            subscription.resume_as = (plan.how, plan.start)
            self._await_head(subscription, head)

    def _take_page(
        self, subscription: TopicSubscription, backlog: Backlog, page: HistoryPage | None
    ) -> None:
        """Rows that were asked for came from the log; None when it has not kept them."""
        topic, sent = subscription.topic, subscription.sent
        known = self.subscriptions.get(topic.alias) is subscription
        if not known or subscription.backlog is not backlog or topic.head is None or sent is None:
            return  # the client left or resumed elsewhere meanwhile
        if page is None:
            self._reset(subscription)
            subscription.resume_as = (How.GAP, sent.to)
            self._await_head(subscription, topic.head)
            return
        backlog.take_page(topic, page)
        if backlog.changes:
            self.scheduler.pending[topic.alias] = subscription

    def take(self, bytes_max: int, now_us: int) -> Sequence[bytes]:
        """Frames for one write: at least one when there is any, then up to `bytes_max`."""
        out: list[bytes] = []
        scheduler, control = self.scheduler, self.control
        pending, size = scheduler.pending, control.bytes
        if (
            self.budget is None
            and len(pending) <= 1
            and size < bytes_max
            and not scheduler.timer.heap
            and not control.announcements
        ):
            # One topic for many clients is the common case, and the hot one.
            subscription = next(iter(pending.values()), None)
            if subscription is None or subscription.backlog is None:
                if subscription is not None and subscription.state is _QUEUED and not size:
                    run = self.written.write_run(subscription, bytes_max)
                    self._step(subscription)
                    return run
                if size:
                    out = control.take_answers()
                    self.written.bytes += size
                if subscription is not None:
                    self._send_next(subscription, out, now_us)
                return out
        self._take_by_urgency(bytes_max, now_us, out)
        return out

    def _take_by_urgency(self, bytes_max: int, now_us: int, out: list[bytes]) -> None:
        """What fits, by urgency when not everything does."""
        size = self.control.take(bytes_max, out)
        self.written.bytes += size
        scheduler, pending = self.scheduler, self.scheduler.pending
        for subscription in scheduler.timer.pop_due(now_us):
            self._move(subscription, _RATE_ELAPSED)
        updates, updates_max = 0, UNLIMITED
        if self.budget is not None:
            bytes_max = min(bytes_max, size + self.budget.bytes_left(now_us))
            updates_max = self.budget.updates_left(now_us)
        while pending and size < bytes_max and updates < updates_max:
            for alias in scheduler.order(bytes_max - size, now_us):
                size += self._send_next(pending[alias], out, now_us)
                updates += 1
                if size >= bytes_max or updates >= updates_max:
                    break
        if self.budget is not None:
            self.budget.spend(size, updates)

    def _send_next(self, subscription: TopicSubscription, out: list[bytes], now_us: int) -> int:
        """One update of a pending subscription, and how many bytes it is."""
        if subscription.preference.gap_us:
            subscription.due_us = now_us + subscription.preference.gap_us
        topic, state = subscription.topic, subscription.state
        if not subscription.announced:
            self.control.announcements.pop(topic.alias, None)
        if subscription.backlog is not None and subscription.backlog.changes:
            return self._send_backlog(subscription, out)
        if state is _PENDING:
            size = self.written.write_head(subscription, out)
            del self.scheduler.pending[topic.alias]
            subscription.state = _FROM_PENDING[_SENT]
            topic.idle[self] = subscription
            return size
        if state is _QUEUED:
            assert topic.queue is not None, "a queued subscription has a queue"
            change = topic.queue.changes[subscription.covered + 1]
            size = self.written.write_change(subscription, change, 0, out)
            self._step(subscription)
            return size
        out.append(codec.encode(Paused(topic.alias, ProtocolCode.QUEUE_FULL)))
        self._move(subscription, _PAUSE_SENT)
        return len(out[-1])

    def _send_backlog(self, subscription: TopicSubscription, out: list[bytes]) -> int:
        backlog = subscription.backlog
        assert backlog is not None, "there is a backlog"
        change = backlog.changes.popleft()
        size = self.written.write_change(subscription, change, backlog.replay_to, out)
        if not backlog.changes:
            if backlog.next_page is None:
                subscription.backlog = None
            if not subscription.sendable:
                del self.scheduler.pending[subscription.topic.alias]
            backlog.fetch_page(subscription.topic)
        return size

    def _step(self, subscription: TopicSubscription) -> None:
        """The client got what was next for it in the queue."""
        topic, queue, sent = subscription.topic, subscription.topic.queue, subscription.sent
        assert queue is not None, "a queued subscription has a queue"
        assert sent is not None, "something was just sent"
        following = queue.changes.get(sent.version + 1)
        if following is not None:
            subscription.overtaken_us = following.at_us
        else:
            queue.leave(self)
            subscription.state = _FROM_QUEUED[_SENT]
            del self.scheduler.pending[topic.alias]
            topic.idle[self] = subscription

    def _move(self, subscription: TopicSubscription, trigger: Trigger) -> None:
        """Change the state, and what depends on it: who is offered changes, what is pending."""
        topic, before = subscription.topic, subscription.state
        state = subscription.state = TRANSITIONS[before][trigger]
        if state is _IDLE:
            topic.idle[self] = subscription
        elif before is _IDLE:
            topic.idle.pop(self, None)
        if before is _THROTTLED:
            self.scheduler.timer.stop(topic.alias)
        if subscription.sendable:
            self.scheduler.pending[topic.alias] = subscription
        else:
            self.scheduler.pending.pop(topic.alias, None)

    def _await_head(self, subscription: TopicSubscription, head: TopicChange) -> None:
        """The current value goes out when it can; later ones take its turn."""
        subscription.first = head.version
        self._move(subscription, _VALUE_DUE)

    def _queue_up(self, subscription: TopicSubscription, change: TopicChange) -> None:
        """In the topic's queue with the others; who is there needs no further offer."""
        topic, scheduler = subscription.topic, self.scheduler
        assert topic.queue is not None, "only what may not be conflated is queued"
        subscription.overtaken_us = change.at_us
        if subscription.sent is None:
            self._await_head(subscription, change)
            return
        subscription.state = _FROM_IDLE[_CHANGE_QUEUED]
        topic.queue.join(self, subscription)
        if subscription.backlog is None or subscription.backlog.changes:
            scheduler.pending[topic.alias] = subscription

    def _send_in_other_form(self, subscription: TopicSubscription) -> None:
        topic, head, base = subscription.topic, subscription.topic.head, subscription.sent
        assert head is not None, "something was sent"
        assert base is not None, "something was sent"
        start = base.to if subscription.backlog is None else subscription.backlog.end
        whole = topic.replaceable or subscription.covered == head.version
        subscription.resume_as = (How.CATCH_UP if whole else How.GAP, start)
        if topic.queue is not None:
            topic.queue.leave(self)
        subscription.state = TRANSITIONS[subscription.state][_RESET]
        self.scheduler.timer.stop(topic.alias)
        self._await_head(subscription, head)

    def _reset(self, subscription: TopicSubscription) -> None:
        """Drop whatever waits."""
        topic = subscription.topic
        self.written.count_conflated(topic, subscription.overtaken)
        close_fold(subscription)
        if topic.queue is not None:
            topic.queue.leave(self)
        self.control.announcements.pop(topic.alias, None)
        subscription.backlog = subscription.resume_as = None
        self._move(subscription, _RESET)
