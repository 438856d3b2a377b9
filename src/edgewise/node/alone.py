"""`edgewise edge`: an edge without a node. It shows the topics of an app from logs that others
write, as many of them as are wanted, wherever the logs can be read.

It takes no lease and writes nothing. What its own clients publish is seen by them alone.
"""

from __future__ import annotations

import asyncio
import signal

import uvloop

from edgewise.edge.collector import calm
from edgewise.edge.feed import Feed
from edgewise.edge.server import Edge
from edgewise.log.patient import PatientReader
from edgewise.log.places import open_reader
from edgewise.node import apps
from edgewise.node.config import NodeConfig
from edgewise.node.ends import Ends
from edgewise.node.homes import Homes
from edgewise.node.layout import Layout
from edgewise.node.merges import register_aggregates
from edgewise.node.terminal import Steps

LOOK_EVERY_S = 1.0


def fed_edge(config: NodeConfig) -> tuple[Edge, list[Feed]]:
    """An edge and a feed for each stream that it shows; neither is started."""
    loaded = apps.load(config.app, config.functions)
    edge = Edge(config.edge_config())
    register_aggregates(edge.fanout.merges, loaded.merges)
    edge.serve_all(loaded.answers)
    layout = Layout(config.data, Homes.of(config.homes, loaded.app))
    topics = Ends.of(loaded.app, loaded.merges).topics
    readers = (PatientReader(open_reader(layout.place(stream))) for stream, _ in topics)
    return edge, [Feed(edge, r, sink) for r, (_, sink) in zip(readers, topics, strict=True)]


def serve(config: NodeConfig) -> None:
    """Until Ctrl-C."""
    uvloop.run(_serve(config))


async def _serve(config: NodeConfig) -> None:
    steps, stop = Steps(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    edge, fed = fed_edge(config)
    await edge.take_in()
    for feed in fed:
        feed.start()
    # It listens last: whoever connects finds the current values.
    for feed in fed:
        await asyncio.to_thread(feed.caught_up.wait)
    port = await edge.start(config.host, config.edge_port)
    calm()
    scheme = "https" if config.tls else "http"
    steps.say("edge", f"{scheme}://{config.host}:{port}/")
    watch = asyncio.create_task(_tell_failures(fed, steps))
    await stop.wait()
    watch.cancel()
    for feed in fed:
        feed.stop()
    await edge.stop()
    steps.say("edge", "stopped")


async def _tell_failures(fed: list[Feed], steps: Steps) -> None:
    """A log that cannot be read further is told once; the other topics go on."""
    told: set[int] = set()
    while True:
        for number, feed in enumerate(fed):
            if feed.error is not None and number not in told:
                told.add(number)
                steps.say("feed", f"ended: {feed.error}")
        await asyncio.sleep(LOOK_EVERY_S)
