"""What the edge tells about itself, as topics under `$sys/`. Pure: time is an argument.

`$sys/edge` once a second; `$sys/topics/...` and `$sys/sessions/...` only to those who look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial

from edgewise.edge.fanout import Fanout
from edgewise.edge.routes import Stats
from edgewise.edge.telemetry import Telemetry, Watched, pending_by_group, session_record
from edgewise.edge.topics import Policy

TELL_MS = 1000
SYSTEM_TOPIC = Policy(ttl_ms=5000)


class Reports:
    def __init__(
        self,
        fanout: Fanout,
        telemetry: Telemetry,
        stats: Callable[[], Stats],
        sessions: Callable[[], Iterable[Watched]],
    ) -> None:
        self._fanout = fanout
        self._telemetry = telemetry
        self._stats = stats
        self._sessions = sessions
        self._told_us = 0

    def due(self, now_us: int) -> bool:
        return now_us - self._told_us >= TELL_MS * 1000

    def tell(self, now_us: int) -> None:
        self._told_us = now_us
        fanout, telemetry = self._fanout, self._telemetry
        tell = partial(
            fanout.publish, now_us=now_us, offset=now_us, at_us=now_us, policy=SYSTEM_TOPIC
        )
        tell("$sys/edge", telemetry.look(asdict(self._stats()), now_us))
        groups = list(fanout.tree.groups.values())
        wanted = [g for g in groups if fanout.wanted(("$sys", "topics", g.name))]
        outboxes = [session.outbox for session, _ in self._sessions()] if wanted else []
        waiting = pending_by_group(outboxes)
        for group in wanted:
            record = telemetry.group_record(group, waiting.get(group.name, 0), now_us)
            tell(f"$sys/topics/{group.name}", record)
        for session, below in self._sessions():
            number, outbox = session.number, session.outbox
            if fanout.wanted(("$sys", "sessions", str(number))):
                rates = telemetry.rates(number, outbox.updates_sent, outbox.bytes_sent, now_us)
                tell(f"$sys/sessions/{number}", {**session_record(session, below()), **rates})
