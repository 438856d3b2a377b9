import asyncio

import pytest

from edgewise.edge.server import flush_scheduler as flushes
from edgewise.edge.server.flush_scheduler import CLOCK_EVERY, CROWD_MIN, FlushScheduler
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.topics.tree import Publication, TopicTree


class World:
    """Sessions that see one topic; a flush takes a while by the clock of the test."""

    def __init__(self, sessions, flush_us=100):
        self.fanout = Fanout(TopicTree(10))
        self.clock, self.flush_us = 1_000_000, flush_us
        self.got = {}
        self.order = []
        self.carriers = {}
        self.publish(0)
        for number in range(sessions):
            outbox = Outbox(10, 10_000, 10)
            self.fanout.subscribe(outbox, 1, ("a",))
            self.carriers[outbox] = Carrier(self, number, outbox)
        self.flushes = FlushScheduler(self.fanout, self.carriers, 10_000)
        self.flushes.begin()

    def publish(self, value):
        self.fanout.publish(Publication("a", {"v": value}, value, value), 0)

    async def settled(self):
        while self.fanout.dirty or self.flushes._handle is not None:  # noqa: ASYNC110 - the loop's turns are what is tested
            await asyncio.sleep(0)


class Carrier:
    def __init__(self, world, number, outbox):
        self.world, self.number, self.outbox = world, number, outbox

    def flush(self, now_us):
        if self.outbox.take(1_000_000, now_us):
            self.world.order.append(self.number)
            self.world.got.setdefault(self.number, []).append(
                self.outbox.subscriptions[1].sent.at_us
            )
        self.world.clock += self.world.flush_us


@pytest.fixture
def clock(monkeypatch):
    def use(world):
        monkeypatch.setattr(flushes, "now_us", lambda: world.clock)
        return world

    return use


def test_a_quiet_edge_answers_at_once():
    async def main():
        world = World(CROWD_MIN - 1)
        world.flushes.due(0)
        assert len(world.order) == CROWD_MIN - 1

    asyncio.run(main())


def test_each_session_is_served_once_in_a_round_and_in_order(clock):
    async def main():
        world = clock(World(100))
        world.flushes.soon()
        await world.settled()
        assert world.order == list(range(100))

    asyncio.run(main())


def test_whoever_is_served_later_in_a_round_gets_the_newer_value(clock):
    async def main():
        world = clock(World(4 * CLOCK_EVERY, flush_us=flushes.SLICE_US))
        world.flushes._start()
        assert len(world.order) == CLOCK_EVERY
        world.publish(1)
        await asyncio.sleep(0)
        assert len(world.order) == 2 * CLOCK_EVERY
        world.publish(2)
        await world.settled()
        first = [world.got[n][0] for n in range(4 * CLOCK_EVERY)]
        assert first == [0] * CLOCK_EVERY + [1] * CLOCK_EVERY + [2] * 2 * CLOCK_EVERY
        assert {values[-1] for values in world.got.values()} == {2}
        assert {len(values) for values in world.got.values()} == {1, 2}

    asyncio.run(main())


def test_under_load_updates_are_collected_for_a_bounded_time(clock):
    async def main():
        world = clock(World(64, flush_us=1_000))
        world.flushes._start()
        while world.flushes._handle is not None:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        assert world.flushes.spent_us >= 64_000
        assert world.flushes.tick_us == 10_000
        world.publish(1)
        world.flushes.due(world.clock)
        assert len(world.order) == 64
        world.clock += 10_000
        world.flushes.stop()
        world.flushes.begin()
        world.flushes.due(world.clock)
        assert len(world.order) > 64

    asyncio.run(main())


def test_who_left_meanwhile_is_passed_over(clock):
    async def main():
        world = clock(World(20))
        gone = list(world.carriers)[3]
        world.carriers.pop(gone)
        world.flushes._start()
        await world.settled()
        assert world.order == [n for n in range(20) if n != 3]

    asyncio.run(main())


def test_a_long_round_is_known_while_it_lasts_and_a_moment_longer(clock):
    async def main():
        world = clock(World(2 * CLOCK_EVERY, flush_us=100_000))
        assert not world.flushes.longer_than(1_000_000)
        world.flushes._start()
        assert world.flushes.longer_than(1_000_000)
        await world.settled()
        assert world.flushes.longer_than(1_000_000)
        world.clock += flushes.LONG_AGO_US
        assert not world.flushes.longer_than(1_000_000)

    asyncio.run(main())


def test_a_source_of_unconflated_updates_waits_for_a_round_that_falls_behind(clock):
    async def main():
        world = clock(World(4 * CLOCK_EVERY, flush_us=flushes.SLICE_US))
        world.flushes._start()
        assert len(world.order) == CLOCK_EVERY
        world.fanout.queued += flushes.QUEUED_MAX * 4 * CLOCK_EVERY + 1
        await asyncio.sleep(0)
        assert len(world.order) == 4 * CLOCK_EVERY

    asyncio.run(main())
