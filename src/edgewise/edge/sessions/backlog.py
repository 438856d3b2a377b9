"""Keep the changes that only one client still needs, those in the log among them. Pure.

A client that was away for longer than the history of a topic reaches gets the rest from the log,
page by page: the next page is asked for when the last one is sent, so that memory is bounded by a
page for each topic that is replayed, however long the client was away.

    next_page          changes            later
    in the log    >    next to send   >   came while the log was read

Subscriptions own a backlog, the outbox sends from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import structs

from edgewise.edge.sessions.resume import read_changes
from edgewise.edge.topics.change_queue import TopicChange
from edgewise.edge.topics.tree import HistoryPage, PageRequest, Topic


class Backlog:
    """`last` is the version of the newest change in it. Changes up to version `replay_to` are sent
    as replay, the others as updates.
    """

    __slots__ = ("changes", "last", "later", "next_page", "replay_to")

    def __init__(self, changes: Iterable[TopicChange], last: int, replay_to: int = 0) -> None:
        self.changes = deque(changes)
        self.later: list[TopicChange] = []
        self.last = last
        self.replay_to = replay_to
        self.next_page: PageRequest | None = None

    @property
    def end(self) -> int:
        """The position of a client that got all of it."""
        if self.later:
            return self.later[-1].to
        return self.changes[-1].to if self.next_page is None else self.next_page.end

    def extend(self, changes: list[TopicChange], last: int) -> None:
        """Behind all that is there already."""
        if self.next_page is None:
            self.changes.extend(changes)
        else:
            self.later += changes
        self.last = last

    def read_log(
        self, topic: Topic, start: int, outbox: Any, deliver: Callable[[HistoryPage | None], None]
    ) -> None:
        """Fill it with the rows from position `start` up to the head."""
        assert topic.head is not None, "there is something to replay"
        self.next_page = PageRequest(topic.path, start, topic.head.to, outbox, deliver)
        self.fetch_page(topic)

    def fetch_page(self, topic: Topic) -> None:
        """The next page, when all that came before was sent."""
        if self.next_page is not None and not self.changes and topic.row_history is not None:
            topic.row_history.fetch(self.next_page)

    def take_page(self, topic: Topic, page: HistoryPage) -> None:
        request = self.next_page
        assert request is not None, "a page was asked for"
        self.changes.extend(read_changes(topic, page, request.end, self.replay_to))
        if page.next < request.end:
            self.next_page = structs.replace(request, start=page.next)
            self.fetch_page(topic)  # a page without a row of this topic
        else:
            self.next_page = None
            self.changes.extend(self.later)
            self.later = []
