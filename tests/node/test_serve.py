"""What only shows between the rooms: marks carry time through a silent stream."""

import asyncio
import io

import pytest

from edgewise.errors import LogLocked
from edgewise.event.schema import Schema
from edgewise.log.api import LogConfig
from edgewise.log.segment import SegmentReader, SegmentWriter
from edgewise.node import apps, serve
from edgewise.node.archiver import ArchiveConfig
from edgewise.node.config import NodeConfig
from edgewise.node.serve import mark
from edgewise.node.terminal import Steps


def test_a_mark_moves_the_clock_of_a_log_and_holds_no_event(tmp_path):
    writer = SegmentWriter.open(tmp_path / "S", Schema.of("S", k="string", v="int"))
    mark(writer, 5_000)
    reader = SegmentReader.open(tmp_path / "S")
    [batch] = reader.read(0, 1)
    [row] = batch.rows.to_pylist()
    assert reader.clock(1) == 5_000
    assert (row["_kind"], row["k"], row["v"]) == (2, None, None)
    reader.close()
    writer.close()


def test_a_writer_that_lost_the_lease_and_hangs_is_fenced(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "LINGER_S", 0.1)
    (tmp_path / "app.siddhi").write_text(
        "define stream S (v int);\nfrom S select v insert into O;\n"
    )
    config = NodeConfig(app=tmp_path / "app.siddhi", data=tmp_path / "data")
    loaded = apps.load(config.app)
    serving = serve.Serving(config, loaded, Steps(io.StringIO()))
    stream = loaded.app.stream("S")
    old = SegmentWriter.open(serving.layout.log("S"), stream.schema)
    mark(old, 1_000)
    new = asyncio.run(serving._open_log(stream))
    with pytest.raises(LogLocked, match="took over"):
        mark(old, 2_000)
    mark(new, 3_000)
    assert new.head.offset == 2
    new.close()
    old.close()


def test_a_node_moves_old_ledgers_of_all_logs_to_parquet_while_it_runs(tmp_path):
    (tmp_path / "app.siddhi").write_text(
        "define stream S (v int);\nfrom S select v insert into O;\n"
    )
    config = NodeConfig(
        app=tmp_path / "app.siddhi",
        data=tmp_path / "data",
        log=LogConfig(segment_bytes_max=4_000),
        archive=ArchiveConfig(age_ms=0),
        tidy_every_s=0.01,
    )
    serving = serve.Serving(config, apps.load(config.app), Steps(io.StringIO()))

    async def scenario():
        for stream in ("S", "O"):
            writer = await serving._open_log(serving.app.stream(stream))
            for at in range(50):
                mark(writer, at)
            writer.close()
        tidying = asyncio.create_task(serving._tidy())
        async with asyncio.timeout(20):
            while len(+serving.archiver.ledgers) < 2:  # noqa: ASYNC110  a thread counts
                await asyncio.sleep(0.01)
        tidying.cancel()
        await asyncio.wait([tidying])

    asyncio.run(scenario())
    assert list(serving.layout.log("O").glob("*.parquet"))
    reader = SegmentReader.open(serving.layout.log("S"))
    assert reader.head().offset == 50
    reader.close()


class FailingEngine:
    """In the place of the engine's process: says why it fails, and ends."""

    def __init__(self, *_):
        pass

    async def start(self):
        pass

    async def messages(self, hear):
        hear({"failed": "no disk"})
        return 3

    async def stop(self):
        pass


def test_a_failing_engine_says_why_and_is_started_again_later_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "Child", FailingEngine)
    waits = []
    monkeypatch.setattr(serve, "backoff_s", lambda failures: waits.append(failures) or 0)
    (tmp_path / "app.siddhi").write_text(
        "define stream S (v int);\nfrom S select v insert into O;\n"
    )
    config = NodeConfig(app=tmp_path / "app.siddhi", data=tmp_path / "data")
    said = io.StringIO()
    serving = serve.Serving(config, apps.load(config.app), Steps(said))

    async def scenario():
        keeping = asyncio.create_task(serving._keep_engine())
        while serving.watch.restarts < 3:  # noqa: ASYNC110  every turn is one restart
            await asyncio.sleep(0)
        keeping.cancel()
        await asyncio.wait([keeping])

    asyncio.run(scenario())
    assert waits[:3] == [1, 2, 3]
    assert "failed: no disk" in said.getvalue()
    assert "ended with code 3" in said.getvalue()
    assert serving.watch.topic()["failed"] == "no disk"
