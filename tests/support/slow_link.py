"""Relay TCP between a client and an edge over a link that can be broken and made slow."""

import asyncio
import contextlib

CHUNK = 4096


class Pipe:
    """`bytes_per_s` 0 is no limit. Belongs to one event loop."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.bytes_per_s = 0
        self.open = True
        self.port = 0
        self._server = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task] = set()

    async def start(self) -> int:
        # Small buffers, or the operating system hides seconds of data in the relay.
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0, limit=CHUNK)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    def cut(self) -> None:
        self.open = False
        for writer in self._writers:
            writer.transport.abort()

    def mend(self) -> None:
        self.open = True

    async def stop(self) -> None:
        self._server.close()
        self.cut()
        writers = list(self._writers)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*list(self._tasks), return_exceptions=True)
        closed = (writer.wait_closed() for writer in writers)
        await asyncio.gather(*closed, return_exceptions=True)

    async def _relay(self, reader, writer) -> None:
        if not self.open:
            writer.transport.abort()
            return
        task, ends = asyncio.current_task(), {writer}
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            up_reader, up = await asyncio.open_connection("127.0.0.1", self.target, limit=CHUNK)
            ends.add(up)
            self._writers.add(up)
            await asyncio.gather(self._copy(reader, up), self._copy(up_reader, writer))
        finally:
            self._tasks.discard(task)
            self._writers -= ends
            for each in ends:
                each.close()

    async def _copy(self, reader, writer) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                writer.write(data)
                await writer.drain()
                if self.bytes_per_s:
                    await asyncio.sleep(len(data) / self.bytes_per_s)
            writer.close()
