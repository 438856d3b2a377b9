import asyncio

from edgewise.edge.access.auth import AccessControl
from edgewise.edge.metrics.reports import SystemTopics
from edgewise.edge.metrics.telemetry import EdgeStats, Telemetry
from edgewise.edge.server.sweeper import SWEEP_SLICE, Sweeper
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.topics.tree import TopicTree


class Carrier:
    """A connection without a session that counts how often it was checked."""

    session = None
    bytes_sent = 1

    def __init__(self, ticked):
        self.ticked = ticked

    def tick(self, _now_us):
        self.ticked.append(self)


async def sweep(count):
    """One sweep over so many connections: how many were checked, and in how many turns."""
    ticked, turns, swept = [], [], asyncio.Event()
    fanout, telemetry = Fanout(TopicTree(10)), Telemetry()
    sweeper = Sweeper(
        1,
        fanout,
        AccessControl(None, (), 10),
        SystemTopics(fanout, telemetry, EdgeStats, tuple),
        carriers=lambda: [Carrier(ticked) for _ in range(count)],
        end=ticked.remove,
        flush_soon=lambda: (turns.append(len(ticked)), len(ticked) == count and swept.set()),
    )
    sweeper.start()
    await swept.wait()
    await asyncio.sleep(0)
    sweeper.stop()
    return len(ticked), len(turns)


def test_many_connections_are_checked_in_slices():
    count = 3 * SWEEP_SLICE + 1
    assert asyncio.run(sweep(count)) == (count, 4)
