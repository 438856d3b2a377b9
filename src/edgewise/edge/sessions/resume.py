"""Decide what a client gets that comes back to a topic. Pure.

The client says which position it holds: the offset up to which it has everything. Offsets of a log
are never reused, so a position of an earlier epoch is as good as one of this epoch.

    held by the client     history of the topic        it gets
    the head               any                         nothing but the name of the topic
    3                      4 5 6, whole from 3         REPLAY 4, 5, 6
    3                      5 6, whole from 4           precise: REPLAY 4 from the log, page by
                                                       page, then 5, 6; else GAP: the head
    3                      none kept, conflatable      CATCH_UP: the head says all that was missed
    another life's         any                         GAP: the head

Rows of the log are the changes of a topic only where a row is the whole value: tables and series
are made of many, and say GAP. The outbox carries the decision out.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.edge.topics.change_queue import TopicChange
from edgewise.edge.topics.tree import HistoryPage, Topic
from edgewise.wire.frames import How


@dataclass(frozen=True, slots=True)
class ReplayMissed:
    """Each change that was missed, exactly as it was; `base` stands for what the client holds.
    Without changes: they have to be read from the log first.
    """

    base: TopicChange
    changes: list[TopicChange]


@dataclass(frozen=True, slots=True)
class SendHead:
    """The current value; `start` is the position from which it leads there."""

    how: How
    start: int


def plan_resume(
    topic: Topic, head: TopicChange, epoch: int, to: int
) -> ReplayMissed | SendHead | None:
    """None when the client has the head."""
    known = epoch <= head.epoch and to <= head.to
    if known and to == head.to:
        return None
    missed = topic.since(epoch, to) if topic.policy.replays else None
    if missed:
        return ReplayMissed(_base(missed[0].version - 1, epoch, to, missed[0].at_us), missed)
    if known and topic.policy.recovery == "precise" and reads_log(topic):
        return ReplayMissed(_base(head.version - 1, epoch, to, head.at_us), [])
    how = How.CATCH_UP if topic.replaceable and known else How.GAP
    return SendHead(how, min(to, head.to))


def reads_log(topic: Topic) -> bool:
    return topic.row_history is not None and not topic.composed


def read_changes(topic: Topic, page: HistoryPage, end: int, version: int) -> list[TopicChange]:
    """Rows of the log as changes. The last one, which ends at `end`, is the change of `version`;
    earlier ones are only sent as replay, where versions do not matter.
    """
    lift = None if topic.merge is None else topic.merge.lift
    return [
        TopicChange(
            version if row.offset + 1 == end else version - 1,
            row.epoch,
            row.offset + 1,
            row.at_us,
            value=row.value,
            arrived=row.value if lift is None else lift(row.value),
        )
        for row in page.rows
    ]


def _base(version: int, epoch: int, to: int, at_us: int) -> TopicChange:
    return TopicChange(version, epoch, to, at_us, value=None, arrived=None)
