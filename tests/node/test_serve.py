"""The parts of an active node, without a process of its own."""

import asyncio
import io

import pytest

from edgewise.errors import LogLocked
from edgewise.event.arrow import record_batch
from edgewise.log.api import LogConfig
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node import serve
from edgewise.node.app import load as apps
from edgewise.node.config import NodeConfig
from edgewise.node.terminal import Terminal
from edgewise.node.upkeep.archiver import ArchiveConfig
from edgewise.node.upkeep.idle_clock import append_tick


def test_a_writer_that_lost_the_lease_and_hangs_is_fenced(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "LAST_WRITER_S", 0.1)
    (tmp_path / "app.siddhi").write_text(
        "define stream S (v int);\nfrom S select v insert into O;\n"
    )
    config = NodeConfig(app=tmp_path / "app.siddhi", data=tmp_path / "data")
    loaded = apps.load(config.app)
    serving = serve.ActiveNode(config, loaded, Terminal(io.StringIO()))
    stream = loaded.app.stream("S")
    old = SegmentWriter.open(serving.data_dir.log_directory("S"), stream.schema)
    append_tick(old, 1_000)
    new = asyncio.run(serving._open_log(stream))
    with pytest.raises(LogLocked, match="took over"):
        append_tick(old, 2_000)
    append_tick(new, 3_000)
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
        clean_up_every_s=0.01,
    )
    serving = serve.ActiveNode(config, apps.load(config.app), Terminal(io.StringIO()))

    async def scenario():
        for stream in ("S", "O"):
            writer = await serving._open_log(serving.app.stream(stream))
            for at in range(50):
                append_tick(writer, at)
            writer.close()
        cleaning = asyncio.create_task(serving._clean_up())
        async with asyncio.timeout(20):
            while len(+serving.archiver.ledgers) < 2:  # noqa: ASYNC110  a thread counts
                await asyncio.sleep(0.01)
        cleaning.cancel()
        await asyncio.wait([cleaning])

    asyncio.run(scenario())
    assert list(serving.data_dir.log_directory("O").glob("*.parquet"))
    reader = SegmentReader.open(serving.data_dir.log_directory("S"))
    assert reader.head().offset == 50
    reader.close()


def test_the_edge_listens_when_its_topics_have_their_current_values(tmp_path, monkeypatch):
    (tmp_path / "app.siddhi").write_text(
        "define stream S (v int);\n"
        "@sink(type='topic', path='o', recovery='precise')\ndefine stream O (v int);\n"
        "from S select v insert into O;\n"
    )
    config = NodeConfig(app=tmp_path / "app.siddhi", data=tmp_path / "data", edge_port=0)
    serving = serve.ActiveNode(config, apps.load(config.app), Terminal(io.StringIO()))
    found = []
    start = serving.edge.start

    async def record_value(*where, **options):
        found.append(serving.edge.value("o"))
        return await start(*where, **options)

    monkeypatch.setattr(serving.edge, "start", record_value)

    async def scenario():
        writer = await serving._open_log(serving.app.stream("O"))
        values = list(range(5_000))
        rows = record_batch(writer.schema, [1] * 5_000, [1] * 5_000, [0] * 5_000, [values])
        writer.append(rows)
        writer.close()
        await serving.open_logs()
        await serving.close()

    asyncio.run(scenario())
    assert found == [{"v": 4_999}]
