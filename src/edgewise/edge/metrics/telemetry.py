"""Collect what the edge measures, above all the age of information. Pure: time is an argument.

Age counts from the capture of an event to the client's acknowledgement of the update that shows
it. Topics are grouped by their first segment, so that the number of series is bounded. Reports and
the route /metrics read it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from edgewise.edge.metrics.histogram import Histogram
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.session import Session
from edgewise.edge.topics.tree import GROUPS_MAX, OTHERS, TopicGroup, TopicTree

PENDING_TOPICS_MAX = 20_000  # topics with something waiting that one count by group includes
# Of each session: the metric, what it is, its key in the session's record, and per what unit.
SESSION_METRICS = (
    ("updates_total", "counter", "updates", 1),
    ("bytes_total", "counter", "bytes", 1),
    ("conflated_total", "counter", "conflated", 1),
    ("pending", "gauge", "pending", 1),
    ("drain_bytes_per_second", "gauge", "drain_bytes_per_s", 1),
    ("bytes_below", "gauge", "bytes_below", 1),
    ("round_trip_seconds", "gauge", "rtt_ms", 1000),
)

ReportedSession = tuple[
    Session, Callable[[], int]
]  # with how many bytes are below it, which costs a call

GAUGES = {"connections", "sessions", "topics", "pending"}


@dataclass(slots=True)
class EdgeStats:
    """Counters since the start; those in GAUGES are as of now."""

    connections: int = 0
    sessions: int = 0
    topics: int = 0
    pending: int = 0
    published: int = 0
    updates_sent: int = 0
    bytes_sent: int = 0
    conflated: int = 0
    refused: int = 0
    unpublishable: int = 0


@dataclass(slots=True)
class SessionTotals:
    """Sums over all sessions, which cost a walk over them."""

    bytes_sent: int = 0
    pending: int = 0

    def add(self, session: Session | None, bytes_sent: int) -> None:
        if session is not None:
            self.bytes_sent += bytes_sent
            self.pending += session.outbox.scheduler.count()


class Telemetry:
    """Ages by group and by session, and rates since the last report."""

    def __init__(self) -> None:
        self.ages: dict[str, Histogram] = {}
        self._session_ages: dict[int, Histogram] = {}  # since the first acknowledgement
        self._before: dict[str, float] = {}
        self._counted: dict[object, tuple[int, int, int]] = {}
        self._at_us = 0

    def record_age(self, session: int, group: str, age_us: int) -> None:
        """From the capture of an event to its acknowledgement by this session."""
        age_ms = max(0, age_us) / 1000
        self._session_ages.setdefault(session, Histogram()).add(age_ms)
        if group not in self.ages and len(self.ages) >= GROUPS_MAX:
            group = OTHERS
        self.ages.setdefault(group, Histogram()).add(age_ms)

    def measure_rates(self, stats: dict[str, float], now_us: int) -> dict[str, float]:
        """The counters, their rates since the last report, and the ages of everything."""
        seconds = (now_us - self._at_us) / 1_000_000
        rates = {
            f"{name}_per_s": round((value - self._before.get(name, 0)) / seconds, 1)
            for name, value in stats.items()
            if name in {"published", "updates_sent", "bytes_sent", "conflated"} and seconds > 0
        }
        self._before, self._at_us = dict(stats), now_us
        whole = Histogram()
        for histogram in self.ages.values():
            whole.counts = [a + b for a, b in zip(whole.counts, histogram.counts, strict=True)]
            whole.count += histogram.count
        ages = {f"age_p{int(q * 100)}_ms": round(whole.quantile(q), 1) for q in (0.5, 0.99)}
        return {**stats, **rates, **ages}

    def lines(self, tree: TopicTree, outboxes: Iterable[Outbox] = ()) -> Iterator[str]:
        """The histograms and the counters by group in Prometheus' text format."""
        name = "edgewise_edge_age_seconds"
        yield f"# HELP {name} From the capture of an event to the client's acknowledgement."
        yield f"# TYPE {name} histogram"
        for group, histogram in sorted(self.ages.items()):
            yield from histogram.lines(name, f'topic="{_escape(group)}"')
        groups = sorted(tree.groups.items())
        for what in ("updates", "bytes", "conflated"):
            yield f"# TYPE edgewise_edge_topic_{what}_total counter"
            for first, counted in groups:
                label = f'topic="{_escape(first)}"'
                yield f"edgewise_edge_topic_{what}_total{{{label}}} {getattr(counted, what)}"
        waiting = count_pending_by_group(outboxes)
        yield "# TYPE edgewise_edge_topic_pending gauge"
        for first, _ in groups:
            label = f'topic="{_escape(first)}"'
            yield f"edgewise_edge_topic_pending{{{label}}} {waiting.get(first, 0)}"

    def measure_session(
        self, who: object, updates: int, sent: int, now_us: int
    ) -> dict[str, float]:
        """Per second since the last report of `who`."""
        before = self._counted.get(who)
        self._counted[who] = (updates, sent, now_us)
        if before is None or now_us <= before[2]:
            return {"updates_per_s": 0.0, "bytes_per_s": 0.0}
        seconds = (now_us - before[2]) / 1_000_000
        return {
            "updates_per_s": round((updates - before[0]) / seconds, 1),
            "bytes_per_s": round((sent - before[1]) / seconds, 1),
        }

    def forget(self, session: int) -> None:
        self._counted.pop(session, None)
        self._session_ages.pop(session, None)

    def describe_group(self, group: TopicGroup, pending: int, now_us: int) -> dict[str, Any]:
        """Topics with one first segment as a `$sys/topics` value."""
        ages = self.ages.get(group.name) or Histogram()
        return {
            "topics": group.topics,
            "updates": group.updates,
            "bytes": group.bytes,
            "conflated": group.conflated,
            "pending": pending,
            **self.measure_session(group.name, group.updates, group.bytes, now_us),
            "age_p50_ms": round(ages.quantile(0.5), 1),
            "age_p99_ms": round(ages.quantile(0.99), 1),
        }

    def describe_session(self, session: Session, unsent: int) -> dict[str, Any]:
        """One session as a `$sys/sessions` value. Its name is a secret and stays out."""
        outbox = session.outbox
        ages = self._session_ages.get(session.number) or Histogram()
        return {
            "client": session.client,
            "principal": session.principal.name,
            "topics": len(outbox.subscriptions),
            "pending": outbox.scheduler.count(),
            "conflated": outbox.conflated,
            "updates": outbox.written.updates,
            "bytes": outbox.written.bytes,
            "drain_bytes_per_s": session.link.measured_bytes_per_s,
            "learned_bytes_per_s": session.link.bytes_per_s,
            "bytes_below": unsent,
            "rtt_ms": round(session.rtt_us / 1000, 2),
            "age_ms": round(session.age_us / 1000, 1),
            "age_p50_ms": round(ages.quantile(0.5), 1),
            "age_p99_ms": round(ages.quantile(0.99), 1),
            "since_us": session.opened_us,
        }

    def format_session_lines(self, reported: Iterable[ReportedSession]) -> Iterator[str]:
        """Sessions in Prometheus' text format."""
        rows = [
            (_format_labels(s), s, self.describe_session(s, unsent())) for s, unsent in reported
        ]
        for metric, kind, key, per in SESSION_METRICS:
            yield f"# TYPE edgewise_edge_session_{metric} {kind}"
            for label, _, record in rows:
                yield f"edgewise_edge_session_{metric}{{{label}}} {record[key] / per:g}"
        yield "# TYPE edgewise_edge_session_age_seconds histogram"
        for label, session, _ in rows:
            ages = self._session_ages.get(session.number)
            if ages is not None:
                yield from ages.lines("edgewise_edge_session_age_seconds", label)


def count_pending_by_group(outboxes: Iterable[Outbox]) -> dict[str, int]:
    """How many updates wait, by the first segment of their topics; bounded."""
    pending: dict[str, int] = {}
    counts = itertools.chain.from_iterable(
        outbox.scheduler.count_by_topic() for outbox in outboxes
    )
    for topic, count in itertools.islice(counts, PENDING_TOPICS_MAX):
        name = topic.group.name
        pending[name] = pending.get(name, 0) + count
    return pending


def _format_labels(session: Session) -> str:
    client, principal = _escape(session.client), _escape(session.principal.name)
    return f'session="{session.number}",client="{client}",principal="{principal}"'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
