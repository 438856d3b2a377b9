import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.memory_log import MemoryLog

from edgewise.errors import LogFull
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import Admission, AdmissionLimits, AdmittedEvents
from edgewise.gateway.append_queue import AppendQueue, CaptureClock

SCHEMA = Schema.of("S", v="int")
ADMISSION = Admission(SCHEMA, AdmissionLimits())


def rows(*values):
    return AdmittedEvents(len(values), [0] * len(values), 0, [list(values)])


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as threads:
        yield threads


def test_capture_times_increase_when_the_clock_stands_or_jumps_back():
    clock = ManualClock(1000)
    arrivals = CaptureClock(clock)
    assert arrivals.now_us() == 1000
    arrivals.advance(1000, 5)
    assert arrivals.now_us() == 1005
    clock.advance(-500)
    assert arrivals.now_us() == 1005
    clock.advance(5000)
    assert arrivals.now_us() == 5500


def test_requests_that_wait_for_the_disk_share_the_next_append(pool):
    log = MemoryLog(SCHEMA)

    async def scenario():
        intake = AppendQueue(log, ADMISSION, pool)
        log.open.clear()
        first = asyncio.create_task(intake.append(rows(0)))
        await asyncio.sleep(0)
        later = [asyncio.create_task(intake.append(rows(i, i))) for i in range(1, 50)]
        await asyncio.sleep(0)
        log.open.set()
        return await asyncio.gather(first, *later)

    got = asyncio.run(scenario())
    assert log.appends <= 3
    stored = [r["v"] for r in log.rows()]
    assert stored == [0, *(i for i in range(1, 50) for _ in range(2))]
    for value, appended in enumerate(got):
        assert stored[appended.first : appended.end] == [value] * (2 if value else 1)


def test_a_full_log_fails_those_that_waited_and_takes_the_next(pool):
    log = MemoryLog(SCHEMA)
    log.full = True

    async def scenario():
        intake = AppendQueue(log, ADMISSION, pool)
        got = await asyncio.gather(
            *(intake.append(rows(i)) for i in range(3)), return_exceptions=True
        )
        assert all(isinstance(g, LogFull) for g in got)
        log.full = False
        assert (await intake.append(rows(7))).first == 0
        await intake.flush(1)

    asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == [7]


def test_a_producer_that_sends_again_gets_its_first_answer_and_nothing_twice(pool):
    log = MemoryLog(SCHEMA)

    async def scenario():
        intake = AppendQueue(log, ADMISSION, pool)
        sends = [(p, s) for s in range(10) for p in ("a", "b") for _ in range(2)]
        return await asyncio.gather(
            *(intake.append(rows(s), producer=p, sequence=s) for p, s in sends)
        )

    got = asyncio.run(scenario())
    assert sorted(r["v"] for r in log.rows()) == sorted([*range(10), *range(10)])
    assert sum(g.duplicate for g in got) == 20
    assert all(got[i].first == got[i + 1].first for i in range(0, 40, 2))


def test_a_request_that_gave_up_does_not_disturb_the_others(pool):
    log = MemoryLog(SCHEMA)

    async def scenario():
        intake = AppendQueue(log, ADMISSION, pool)
        log.open.clear()
        tasks = [asyncio.create_task(intake.append(rows(i))) for i in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        log.open.set()
        got = await asyncio.gather(*tasks, return_exceptions=True)
        assert [getattr(g, "first", None) for g in got] == [0, None, 2]

    asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == [0, 1, 2]


def test_what_waits_behind_a_failed_append_of_its_producer_fails_with_it(pool):
    log = MemoryLog(SCHEMA)
    log.full = True

    async def scenario():
        intake = AppendQueue(log, ADMISSION, pool)
        log.open.clear()
        sends = [
            asyncio.create_task(intake.append(rows(s), producer="p", sequence=s)) for s in range(3)
        ]
        other = asyncio.create_task(intake.append(rows(9), producer="q", sequence=0))
        await asyncio.sleep(0)
        log.open.set()
        got = await asyncio.gather(*sends, other, return_exceptions=True)
        assert all(isinstance(g, LogFull) for g in got[:3])
        log.full = False
        for s in range(3):
            assert not (await intake.append(rows(s), producer="p", sequence=s)).duplicate

    asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == [0, 1, 2]
