import asyncio

import pytest

from edgewise.edge.server import busy_poll as awake
from edgewise.edge.server.busy_poll import SPIN_US, BusyPoll


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        us = 0

    monkeypatch.setattr(awake, "perf_counter_ns", lambda: Clock.us * 1000)
    return Clock


def looking(scenario):
    """Whether the loop looks again without being asked, after `scenario`."""

    async def main():
        awake = BusyPoll()
        awake.begin()
        scenario(awake)
        await asyncio.sleep(0)
        return awake._spins

    return asyncio.run(main())


def test_who_speaks_twice_at_once_finds_us_awake(clock):
    def twice(awake):
        awake.record_activity("a")
        clock.us += SPIN_US - 1
        awake.record_activity("a")

    assert looking(twice)


def test_slow_talk_and_a_crowd_let_the_loop_sleep(clock):
    def slowly(awake):
        for _ in range(5):
            awake.record_activity("a")
            clock.us += SPIN_US

    def crowd(awake):
        for number in range(20):
            awake.record_activity("ab"[number % 2])

    assert not looking(slowly)
    assert not looking(crowd)


def test_it_ends_a_moment_after_the_last_word_and_begins_again(clock):
    async def main():
        awake = BusyPoll()
        awake.begin()
        for _ in range(2):
            awake.record_activity("a")
            awake.record_activity("a")
            await asyncio.sleep(0)
            assert awake._spins
            clock.us += SPIN_US
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not awake._spins

    asyncio.run(main())


def test_it_ends_with_its_edge(clock):
    async def main():
        awake = BusyPoll()
        awake.begin()
        awake.record_activity("a")
        awake.record_activity("a")
        awake.stop()
        await asyncio.sleep(0)
        assert not awake._spins

    asyncio.run(main())
