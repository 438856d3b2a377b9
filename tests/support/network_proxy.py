"""A TCP proxy whose wire can be cut, for tests of broken networks."""

import asyncio
from contextlib import suppress


class Wire:
    def __init__(self, target_port):
        self._target = target_port
        self._writers = set()
        self._server = None
        self.port = 0
        self.whole = True

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self):
        self.cut()
        self._server.close()

    def cut(self):
        """Every connection breaks at once, and new ones are refused."""
        self.whole = False
        for writer in list(self._writers):
            writer.transport.abort()

    def mend(self):
        self.whole = True

    async def _serve(self, reader, writer):
        if not self.whole:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        self._writers -= {writer, far_writer}

    @staticmethod
    async def _copy(reader, writer):
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
