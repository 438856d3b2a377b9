"""One further edge process: reads the logs, shares the port. Started by `edgewise.node.edges`.

It listens last: whoever connects finds everything the first edge shows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import uvloop

from edgewise.edge.collector import calm
from edgewise.edge.passing import Passing
from edgewise.edge.siblings import Limb
from edgewise.errors import EdgewiseError
from edgewise.node.alone import fed_edge
from edgewise.node.children import end_with_parent
from edgewise.node.config import NodeConfig
from edgewise.node.edges import HEAD_SOCKET


def tell(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="edgewise.node.edge")
    parser.add_argument("app", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--jwt-key", type=Path)
    parser.add_argument("--revoked", type=Path)
    parser.add_argument("--origin", action="append", default=[])
    parser.add_argument("--trusted-proxy", action="append", default=[])
    parser.add_argument("--tls", type=Path, nargs=2)
    parser.add_argument("--log", action="append", default=[])
    parser.add_argument("--functions", action="append", default=[])
    parser.add_argument("--asset", nargs=2, action="append", default=[])
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--number", type=int, required=True)
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    try:
        uvloop.run(_serve(arguments))
    except (EdgewiseError, OSError) as error:
        tell(failed=str(error))
        return 2
    return 0


def _config(arguments: argparse.Namespace) -> NodeConfig:
    return NodeConfig(
        app=arguments.app,
        data=arguments.data,
        edge_host=arguments.host,
        edge_port=arguments.port,
        homes=tuple(arguments.log),
        functions=tuple(arguments.functions),
        assets=tuple((prefix, Path(directory)) for prefix, directory in arguments.asset),
        jwt_key=arguments.jwt_key,
        revoked=arguments.revoked,
        origins=tuple(arguments.origin),
        trusted_proxies=tuple(arguments.trusted_proxy),
        tls=tuple(arguments.tls) if arguments.tls else None,
    )


async def _serve(arguments: argparse.Namespace) -> None:
    config = _config(arguments)
    edge, fed = fed_edge(config)
    limb, passing = Limb(edge), Passing(edge, arguments.number, arguments.directory)
    stopping = asyncio.create_task(_stopping(limb))
    await edge.take_in()
    await limb.start(arguments.directory / HEAD_SOCKET)
    for feed in fed:
        feed.start()
    for feed in fed:
        await asyncio.to_thread(feed.caught_up.wait)
    await passing.start()
    await edge.start(config.edge_host, config.edge_port, share_port=True)
    calm()
    tell(ready=True)
    await stopping
    for feed in fed:
        feed.stop()
    await edge.stop()
    await passing.stop()
    await limb.stop()


async def _stopping(limb: Limb) -> None:
    """Told to, or without a head."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, limb.ended.set)
    await limb.ended.wait()


if __name__ == "__main__":
    sys.exit(main())
