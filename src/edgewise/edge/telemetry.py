"""What the edge knows about itself, above all the age of information: from the capture of an
event to the client's acknowledgement of the update that shows it. Pure; time is an argument.

Topics are grouped by their first segment, so that the number of series stays bounded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from edgewise.edge.conflate import Outbox
from edgewise.edge.histogram import Histogram
from edgewise.edge.session import Session
from edgewise.edge.topics import GROUPS_MAX, OTHERS, Group, TopicTree

PENDING_LOOKED_MAX = 20_000  # waiting updates that one look counts by group
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

Watched = tuple[Session, Callable[[], int]]  # with how many bytes are below it, which costs a call


class Telemetry:
    """Ages by group, and rates since the last look."""

    def __init__(self) -> None:
        self.ages: dict[str, Histogram] = {}
        self._before: dict[str, float] = {}
        self._counted: dict[object, tuple[int, int, int]] = {}
        self._at_us = 0

    def age(self, group: str, age_us: int) -> None:
        if group not in self.ages and len(self.ages) >= GROUPS_MAX:
            group = OTHERS
        self.ages.setdefault(group, Histogram()).add(max(0, age_us) / 1000)

    def look(self, stats: dict[str, float], now_us: int) -> dict[str, float]:
        """The counters and their rates since the last look, with the ages of everything."""
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
            yield from histogram.lines(name, f'topic="{_escaped(group)}"')
        groups = sorted(tree.groups.items())
        for what in ("updates", "bytes", "conflated"):
            yield f"# TYPE edgewise_edge_topic_{what}_total counter"
            for first, counted in groups:
                label = f'topic="{_escaped(first)}"'
                yield f"edgewise_edge_topic_{what}_total{{{label}}} {getattr(counted, what)}"
        waiting = pending_by_group(outboxes)
        yield "# TYPE edgewise_edge_topic_pending gauge"
        for first, _ in groups:
            label = f'topic="{_escaped(first)}"'
            yield f"edgewise_edge_topic_pending{{{label}}} {waiting.get(first, 0)}"

    def rates(self, who: object, updates: int, sent: int, now_us: int) -> dict[str, float]:
        """Per second since the last look at `who`."""
        before = self._counted.get(who)
        self._counted[who] = (updates, sent, now_us)
        if before is None or now_us <= before[2]:
            return {"updates_per_s": 0.0, "bytes_per_s": 0.0}
        seconds = (now_us - before[2]) / 1_000_000
        return {
            "updates_per_s": round((updates - before[0]) / seconds, 1),
            "bytes_per_s": round((sent - before[1]) / seconds, 1),
        }

    def forget(self, who: object) -> None:
        self._counted.pop(who, None)

    def group_record(self, group: Group, pending: int, now_us: int) -> dict[str, Any]:
        """Topics with one first segment as a `$sys/topics` value."""
        ages = self.ages.get(group.name) or Histogram()
        return {
            "topics": group.topics,
            "updates": group.updates,
            "bytes": group.bytes,
            "conflated": group.conflated,
            "pending": pending,
            **self.rates(group.name, group.updates, group.bytes, now_us),
            "age_p50_ms": round(ages.quantile(0.5), 1),
            "age_p99_ms": round(ages.quantile(0.99), 1),
        }


def pending_by_group(outboxes: Iterable[Outbox]) -> dict[str, int]:
    """How many updates wait, by the first segment of their topics; a bounded look."""
    waiting: dict[str, int] = {}
    slots = itertools.chain.from_iterable(outbox.waiting() for outbox in outboxes)
    for slot in itertools.islice(slots, PENDING_LOOKED_MAX):
        name = slot.topic.group.name
        waiting[name] = waiting.get(name, 0) + 1
    return waiting


def session_record(session: Session, below: int) -> dict[str, Any]:
    """One session as a `$sys/sessions` value. Its name is a secret and stays out."""
    outbox, ages = session.outbox, session.ages or Histogram()
    return {
        "client": session.client,
        "principal": session.principal.name,
        "topics": len(outbox.slots),
        "pending": outbox.pending,
        "conflated": outbox.conflated,
        "updates": outbox.updates_sent,
        "bytes": outbox.bytes_sent,
        "drain_bytes_per_s": session.drain.seen_bytes_per_s,
        "learned_bytes_per_s": session.drain.bytes_per_s,
        "bytes_below": below,
        "rtt_ms": round(session.rtt_us / 1000, 2),
        "age_ms": round(session.age_us / 1000, 1),
        "age_p50_ms": round(ages.quantile(0.5), 1),
        "age_p99_ms": round(ages.quantile(0.99), 1),
        "since_us": session.opened_us,
    }


def session_lines(told: Iterable[Watched]) -> Iterator[str]:
    """Sessions in Prometheus' text format."""
    rows = [(_labels(s), s, session_record(s, below())) for s, below in told]
    for metric, kind, key, per in SESSION_METRICS:
        yield f"# TYPE edgewise_edge_session_{metric} {kind}"
        for label, _, record in rows:
            yield f"edgewise_edge_session_{metric}{{{label}}} {record[key] / per:g}"
    yield "# TYPE edgewise_edge_session_age_seconds histogram"
    for label, session, _ in rows:
        if session.ages is not None:
            yield from session.ages.lines("edgewise_edge_session_age_seconds", label)


def _labels(session: Session) -> str:
    client, principal = _escaped(session.client), _escaped(session.principal.name)
    return f'session="{session.number}",client="{client}",principal="{principal}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
