"""Connections that are open, counted by where they come from: nobody takes all the room. And
newcomers: however many come at once, those who are here go on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from edgewise.edge.config import EdgeConfig
from edgewise.edge.transports.connection import Connection

WELCOMES_MAX = 8  # newcomers listened to in one turn of the loop


class Doorstep:
    """A newcomer is listened to when its turn has come: a handshake, a token and a first sight of
    everything take a hundred times as long as an update. Methods belong to the running loop.
    """

    def __init__(self) -> None:
        self._waiting: deque[Connection] = deque()
        self._welcomed = 0  # in this turn
        self._turning = False

    def came(self, connection: Connection) -> None:
        if self._welcomed < WELCOMES_MAX:
            self._welcomed += 1
        else:
            connection.listen(on=False)
            self._waiting.append(connection)
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._welcomed = 0
        while self._waiting and self._welcomed < WELCOMES_MAX:
            self._waiting.popleft().listen(on=True)
            self._welcomed += 1
        self._turning = self._welcomed > 0
        if self._turning:
            asyncio.get_running_loop().call_soon(self._turn)


class Arrivals:
    def __init__(self, config: EdgeConfig) -> None:
        self._config = config
        self._open: dict[Connection, str] = {}
        self._by_address: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter([*self._open])

    def joined(self, connection: Connection, address: str) -> str:
        """Why a connection cannot stay; empty when it can. `left` follows either way."""
        self._open[connection] = address
        count = self._by_address[address] = self._by_address.get(address, 0) + 1
        if len(self._open) > self._config.connections_max:
            return "too many connections"
        if count > self._config.address_connections_max:
            return f"too many connections from {address}"
        return ""

    def left(self, connection: Connection) -> None:
        address = self._open.pop(connection, None)
        if address is None:
            return
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
