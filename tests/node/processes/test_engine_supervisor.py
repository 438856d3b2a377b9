import asyncio
import io

from edgewise.node.config import NodeConfig
from edgewise.node.processes import engine_supervisor
from edgewise.node.processes.children import PERMANENT_ERROR
from edgewise.node.processes.engine_supervisor import (
    SUMMARY_EVERY_S,
    EngineStatus,
    EngineSupervisor,
)
from edgewise.node.terminal import Terminal

PROGRESS = {
    "batches": 3,
    "rows_in": 1000,
    "watermark_lag_ms": 1500,
    "state_keys": 7,
    "state_bytes": 2048,
    "backlog_rows": 12,
    "batch_ms": {"read": 1.0, "run": 20.0, "trigger": 30},
    "counts": {"faults": {"S": 2}},
}


def test_the_terminal_gets_a_summary_now_and_then_where_rows_came():
    status = EngineStatus()
    status.progress = PROGRESS
    assert status.summarize(SUMMARY_EVERY_S) == (
        "100 events/s, batch 30 ms (read 1, run 20), backlog 12, event time 1.5 s behind the "
        "clock, "
        "state 7 keys, 2,048 bytes, 2 faults"
    )
    assert not status.summarize(SUMMARY_EVERY_S + 1)
    assert not status.summarize(3 * SUMMARY_EVERY_S)
    status.progress = PROGRESS | {"rows_in": 1500}
    assert status.summarize(4 * SUMMARY_EVERY_S).startswith("17 events/s")


def test_the_topic_says_why_the_engine_failed():
    status = EngineStatus(failed="no disk")
    assert status.to_topic() == {"restarts": 0, "failed": "no disk"}


class FailingEngine:
    """In place of the engine's process: says why it fails, and ends."""

    def __init__(self, *_):
        pass

    ended = False

    async def start(self):
        pass

    async def send_start(self):
        pass

    async def receive(self, handle):
        handle({"failed": "no disk"})
        return 3

    async def stop(self):
        pass


def test_a_failing_engine_says_why_and_is_started_again_later_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_supervisor, "Child", FailingEngine)
    waits = []
    monkeypatch.setattr(engine_supervisor, "backoff_s", lambda n: waits.append(n) or 0)
    printed = io.StringIO()
    config = NodeConfig(app=tmp_path / "app.siddhi", data=tmp_path)
    supervisor = EngineSupervisor(config, tmp_path / "log", Terminal(printed), lambda _value: None)

    async def scenario():
        running = asyncio.create_task(supervisor.run())
        while supervisor.status.restarts < 3:  # noqa: ASYNC110  every turn is one restart
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(scenario())
    assert waits[:3] == [1, 2, 3]
    assert "failed: no disk" in printed.getvalue()
    assert "ended with code 3" in printed.getvalue()
    assert supervisor.status.to_topic()["failed"] == "no disk"


class WrongCheckpoint(FailingEngine):
    async def receive(self, handle):
        handle({"failed": "written by --engine spark"})
        return PERMANENT_ERROR


def test_the_engine_that_a_standby_prepared_is_used(tmp_path, monkeypatch):
    made = []

    class OtherEngine(WrongCheckpoint):
        def __init__(self, *_):
            made.append(self)

    monkeypatch.setattr(engine_supervisor, "Child", OtherEngine)
    config = NodeConfig(app=tmp_path / "app.siddhi", data=tmp_path)
    log = tmp_path / "log"
    for ended in (False, True):
        prepared = WrongCheckpoint()
        prepared.ended = ended
        supervisor = EngineSupervisor(
            config, log, Terminal(io.StringIO()), lambda _value: None, prepared=prepared
        )
        asyncio.run(asyncio.wait_for(supervisor.run(), 20))
        assert len(made) == ended, "one that has ended is started anew"


def test_a_permanent_error_stops_the_node_and_is_not_retried(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_supervisor, "Child", WrongCheckpoint)
    errors = []
    config = NodeConfig(app=tmp_path / "app.siddhi", data=tmp_path)
    terminal = Terminal(io.StringIO())
    supervisor = EngineSupervisor(
        config, tmp_path / "log", terminal, lambda _value: None, errors.append
    )
    asyncio.run(asyncio.wait_for(supervisor.run(), 20))
    assert [str(e) for e in errors] == ["the engine cannot start: written by --engine spark"]
    assert supervisor.status.restarts == 0
