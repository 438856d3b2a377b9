"""Run one edge worker on the shared port; `edge_pool` starts it.

It listens last: a client that connects finds everything that the first edge process shows.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import uvloop

from edgewise.edge.server.gc_tuning import tune_collector
from edgewise.edge.server.log_feed import wait_caught_up
from edgewise.edge.server.worker_routing import WorkerRouter
from edgewise.edge.server.worker_sync import WorkerSync
from edgewise.errors import EdgewiseError
from edgewise.node.processes.children import exit_with_parent, read_config, send_message
from edgewise.node.processes.edge_only import build_edge
from edgewise.node.processes.edge_pool import HEAD_SOCKET, EdgeWorkerConfig


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        config = read_config(EdgeWorkerConfig)
        exit_with_parent()
        uvloop.run(_serve(config))
    except (EdgewiseError, OSError) as error:
        send_message(failed=str(error))
        return 2
    return 0


async def _serve(config: EdgeWorkerConfig) -> None:
    edge, feeds, _app = build_edge(config.node)
    sync, router = WorkerSync(edge), WorkerRouter(edge, config.number, config.directory)
    stopping = asyncio.create_task(_stopping(sync))
    await edge.attach_loop()
    await sync.start(config.directory / HEAD_SOCKET)
    for feed in feeds:
        feed.start()
    await wait_caught_up(feeds)
    await router.start()
    await edge.start(config.node.edge_host, config.node.edge_port, share_port=True)
    tune_collector()
    send_message(ready=True)
    await stopping
    for feed in feeds:
        feed.stop()
    await edge.stop()
    await router.stop()
    await sync.stop()


async def _stopping(sync: WorkerSync) -> None:
    """Until SIGTERM, or until the connection to the node breaks."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, sync.ended.set)
    await sync.ended.wait()


if __name__ == "__main__":
    sys.exit(main())
