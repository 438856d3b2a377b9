"""Connections that are open, counted by where they come from: nobody takes all the room. And
newcomers: however many come at once, those who are here go on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping

from edgewise.edge.config import EdgeConfig
from edgewise.edge.proxies import Proxies
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
    """A connection of a trusted proxy counts for whoever asked over it last."""

    def __init__(self, config: EdgeConfig) -> None:
        self._config = config
        self._proxies = Proxies(config.trusted_proxies)
        self._open: dict[Connection, str] = {}
        self._by_address: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter([*self._open])

    def joined(self, connection: Connection, address: str) -> str:
        """Why a connection cannot stay; empty when it can. `left` follows either way."""
        self._enter(connection, address)
        if len(self._open) > self._config.connections_max:
            return "too many connections"
        return "" if self._proxies.trusts(address) else self._crowded(address)

    def asks(self, connection: Connection, peer: str, headers: Mapping[str, str]) -> str:
        """A request came over it: why it is not answered, empty when it is."""
        if not self._proxies or connection not in self._open:
            return ""
        address = self._proxies.client(peer, headers)
        self.left(connection)
        self._enter(connection, address)
        return self._crowded(address)

    def left(self, connection: Connection) -> None:
        address = self._open.pop(connection, None)
        if address is None:
            return
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _enter(self, connection: Connection, address: str) -> None:
        self._open[connection] = address
        self._by_address[address] = self._by_address.get(address, 0) + 1

    def _crowded(self, address: str) -> str:
        crowded = self._by_address[address] > self._config.address_connections_max
        return f"too many connections from {address}" if crowded else ""
