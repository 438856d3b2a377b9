import asyncio

from edgewise.gateway.stats import ConnectorStats
from edgewise.gateway.task_failures import report_failure


def test_a_fault_is_said_and_an_end_or_a_cancel_is_not(caplog):
    stats = ConnectorStats()

    async def fail():
        raise ValueError("the disk failed")

    async def scenario():
        fine = report_failure(asyncio.create_task(asyncio.sleep(0)), "source a", stats)
        stopped = report_failure(asyncio.create_task(asyncio.sleep(60)), "source b", stats)
        stopped.cancel()
        await asyncio.wait([fine, stopped])
        assert stats.failed == ""
        await asyncio.wait([report_failure(asyncio.create_task(fail()), "source c", stats)])

    asyncio.run(scenario())
    assert stats.failed == "stopped: ValueError: the disk failed"
    assert "source c stopped: ValueError: the disk failed" in caplog.text
