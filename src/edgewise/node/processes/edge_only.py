"""Serve topics from logs that others write (`edgewise edge`).

An edge without a node: as many of them as are wanted, on any machine that can read the logs. It
takes no lease and writes nothing; what its own clients publish is seen by them alone. `build_edge`
is also how an edge worker builds its edge.
"""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import uvloop

from edgewise.edge.server.gc_tuning import tune_collector
from edgewise.edge.server.log_feed import LogFeed, wait_caught_up
from edgewise.edge.server.server import Edge
from edgewise.log.locations import open_reader
from edgewise.log.retrying_reader import RetryingReader
from edgewise.node.app.app_topic import APP_TOPIC, describe_app
from edgewise.node.app.declared_merges import register_aggregates
from edgewise.node.app.load import load
from edgewise.node.app.sources_sinks import SourcesAndSinks
from edgewise.node.config import NodeConfig
from edgewise.node.data_dir import DataDirectory
from edgewise.node.log_locations import LogLocations
from edgewise.node.terminal import Terminal

CHECK_EVERY_S = 1.0


def build_edge(config: NodeConfig) -> tuple[Edge, list[LogFeed], dict[str, Any]]:
    """An edge, a feed for each stream with topics, none of them started; and the app described."""
    loaded = load(config.app, config.functions)
    edge = Edge(config.edge_config())
    register_aggregates(edge.fanout.merges, loaded.merges)
    edge.serve_all(loaded.answers)
    data_dir = DataDirectory(config.data, LogLocations.parse(config.log_locations, loaded.app))
    declared = SourcesAndSinks.parse(loaded.app, loaded.merges)
    topics = declared.topics
    readers = (RetryingReader(open_reader(data_dir.log_location(stream))) for stream, _ in topics)
    feeds = [LogFeed(edge, r, sink) for r, (_, sink) in zip(readers, topics, strict=True)]
    return edge, feeds, describe_app(loaded.app, declared, engine="")


def serve(config: NodeConfig) -> None:
    """Run until Ctrl-C."""
    uvloop.run(_serve(config))


async def _serve(config: NodeConfig) -> None:
    terminal, stop = Terminal(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    edge, feeds, app = build_edge(config)
    await edge.attach_loop()
    edge.publish(APP_TOPIC, app, offset=0, at_us=0)
    for feed in feeds:
        feed.start()
    # Listen last: a client that connects finds the current values.
    await wait_caught_up(feeds)
    port = await edge.start(config.host, config.edge_port)
    tune_collector()
    scheme = "https" if config.tls else "http"
    terminal.say("edge", f"{scheme}://{config.host}:{port}/")
    watch = asyncio.create_task(_report_failures(feeds, terminal))
    await stop.wait()
    watch.cancel()
    for feed in feeds:
        feed.stop()
    await edge.stop()
    terminal.say("edge", "stopped")


async def _report_failures(feeds: list[LogFeed], terminal: Terminal) -> None:
    """Say once when a log cannot be read any further; the other topics go on."""
    reported: set[int] = set()
    while True:
        for number, feed in enumerate(feeds):
            if feed.error is not None and number not in reported:
                reported.add(number)
                terminal.say("feed", f"ended: {feed.error}")
        await asyncio.sleep(CHECK_EVERY_S)
