"""Count open connections by address, and admit new ones a few at a time.

No address may take all connections. A handshake, a token and the first values of all topics take a
hundred times as long as an update, so that many clients who connect at once are served in turns
and the others go on. The server asks it for each connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping

from edgewise.edge.access.forwarded import TrustedProxies
from edgewise.edge.config import EdgeConfig
from edgewise.edge.transports.connection import Connection

ADMITTED_MAX = 8  # new connections read in one turn of the loop


class AdmissionQueue:
    """A newcomer is listened to when its turn has come: a handshake, a token and a first sight of
    everything take a hundred times as long as an update. Methods belong to the running loop.
    """

    def __init__(self) -> None:
        self._waiting: deque[Connection] = deque()
        self._admitted = 0  # in this turn
        self._turning = False

    def admit(self, connection: Connection) -> None:
        if self._admitted < ADMITTED_MAX:
            self._admitted += 1
        else:
            connection.listen(on=False)
            self._waiting.append(connection)
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._admitted = 0
        while self._waiting and self._admitted < ADMITTED_MAX:
            self._waiting.popleft().listen(on=True)
            self._admitted += 1
        self._turning = self._admitted > 0
        if self._turning:
            asyncio.get_running_loop().call_soon(self._turn)


class ConnectionTable:
    """Open connections by address; one of a trusted proxy counts for the client it asks for."""

    def __init__(self, config: EdgeConfig) -> None:
        self._config = config
        self._proxies = TrustedProxies(config.trusted_proxies)
        self._open: dict[Connection, str] = {}
        self._by_address: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter([*self._open])

    def add_connection(self, connection: Connection, address: str) -> str:
        """Why a connection cannot stay; empty when it can. `left` follows either way."""
        self._add(connection, address)
        if len(self._open) > self._config.connections_max:
            return "too many connections"
        return "" if self._proxies.trusts(address) else self._check_crowd(address)

    def check_request(self, connection: Connection, peer: str, headers: Mapping[str, str]) -> str:
        """A request came over it: why it is not answered, empty when it is."""
        if not self._proxies or connection not in self._open:
            return ""
        address = self._proxies.client(peer, headers)
        self.left(connection)
        self._add(connection, address)
        return self._check_crowd(address)

    def left(self, connection: Connection) -> None:
        address = self._open.pop(connection, None)
        if address is None:
            return
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _add(self, connection: Connection, address: str) -> None:
        self._open[connection] = address
        self._by_address[address] = self._by_address.get(address, 0) + 1

    def _check_crowd(self, address: str) -> str:
        crowded = self._by_address[address] > self._config.address_connections_max
        return f"too many connections from {address}" if crowded else ""
