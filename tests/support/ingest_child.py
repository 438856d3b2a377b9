"""A node's front half as a program of its own, to be killed: `python -m ... DIRECTORY PORT`."""

import asyncio
import sys
import time
from pathlib import Path

from edgewise.event.schema import Schema
from edgewise.gateway.http import IngestServer
from edgewise.log.segment_writer import SegmentWriter

SCHEMA = Schema.of("S", who="int", n="int")


class WallClock:
    def now_us(self):
        return time.time_ns() // 1000


async def main(directory, port):
    writer = SegmentWriter.open(Path(directory), SCHEMA)
    server = IngestServer({"S": writer}, WallClock())
    await server.start(port=int(port))
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
