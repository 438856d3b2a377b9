"""Publish what the edge measures as topics under `$sys/`. Pure: time is an argument.

`$sys/edge` once a second; `$sys/topics/...` and `$sys/sessions/...` only while a session selects
them, because they cost a walk over all sessions. The server's sweep calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from edgewise.edge.metrics.telemetry import (
    EdgeStats,
    ReportedSession,
    Telemetry,
    count_pending_by_group,
)
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.topics.tree import Policy, Publication

PUBLISH_MS = 1000
SYSTEM_TOPIC = Policy(ttl_ms=5000)


class SystemTopics:
    def __init__(
        self,
        fanout: Fanout,
        telemetry: Telemetry,
        stats: Callable[[], EdgeStats],
        sessions: Callable[[], Iterable[ReportedSession]],
    ) -> None:
        self._fanout = fanout
        self._telemetry = telemetry
        self._stats = stats
        self._sessions = sessions
        self._published_us = 0

    def due(self, now_us: int) -> bool:
        return now_us - self._published_us >= PUBLISH_MS * 1000

    def publish(self, now_us: int) -> None:
        self._published_us = now_us
        fanout, telemetry = self._fanout, self._telemetry

        def publish(path: str, value: dict[str, Any]) -> None:
            fanout.publish(Publication(path, value, now_us, now_us, policy=SYSTEM_TOPIC), now_us)

        publish("$sys/edge", telemetry.measure_rates(asdict(self._stats()), now_us))
        groups = list(fanout.tree.groups.values())
        wanted = [g for g in groups if fanout.is_selected(("$sys", "topics", g.name))]
        outboxes = [session.outbox for session, _ in self._sessions()] if wanted else []
        waiting = count_pending_by_group(outboxes)
        for group in wanted:
            record = telemetry.describe_group(group, waiting.get(group.name, 0), now_us)
            publish(f"$sys/topics/{group.name}", record)
        for session, unsent in self._sessions():
            number, outbox = session.number, session.outbox
            if fanout.is_selected(("$sys", "sessions", str(number))):
                rates = telemetry.measure_session(
                    number, outbox.written.updates, outbox.written.bytes, now_us
                )
                publish(
                    f"$sys/sessions/{number}",
                    {**telemetry.describe_session(session, unsent()), **rates},
                )
