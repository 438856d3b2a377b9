"""Connections that are open, counted by where they come from: nobody takes all the room."""

from __future__ import annotations

from collections.abc import Iterator

from edgewise.edge.config import EdgeConfig
from edgewise.edge.transports.connection import Connection


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
