"""What one node is told: where its app, its logs and its doors are, and who may come in."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgewise.edge.config import EdgeConfig
from edgewise.edge.gate import LOOPBACK, JwtVerifier
from edgewise.edge.revoked import Revoked
from edgewise.errors import SetupError
from edgewise.gateway.doors import http_config
from edgewise.gateway.http import HttpConfig
from edgewise.gateway.spec import SourceSpec
from edgewise.log.api import LogConfig
from edgewise.node.archiver import ArchiveConfig
from edgewise.node.edges import PROCESSES_MAX
from edgewise.node.ingest_gate import IngestGate
from edgewise.node.layout import RETAIN_EVERY_S


class WallClock:
    def now_us(self) -> int:
        return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class NodeConfig:
    app: Path
    data: Path
    host: str = "127.0.0.1"
    http_port: int = 8006
    edge_port: int = 8008
    engine: str = "spark"
    master: str = "local[*]"
    partitions: int = 2
    trigger_ms: int = 0  # between micro-batches; 0: as soon as the last one is done
    state: str = ""  # where kernel state lives, a path or URI; '': in the data directory
    log: LogConfig = LogConfig()
    archive: ArchiveConfig = ArchiveConfig()
    tidy_every_s: float = RETAIN_EVERY_S
    homes: tuple[str, ...] = ()  # of logs outside the data directory, see `node.homes`
    assets: tuple[tuple[str, Path], ...] = ()
    edge_host: str = ""  # as `host` unless said; off loopback it needs `jwt_key`
    jwt_key: Path | None = None  # a secret, or a public key in PEM
    revoked: Path | None = None  # names of principals whose tokens no longer hold
    origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()  # of the edge: addresses and networks
    watch: bool = False  # take the app file again when its text changes
    tls: tuple[Path, Path] | None = None  # certificate chain and key, PEM
    functions: tuple[str, ...] = ()  # names of what the user adds to the language
    edge_processes: int = 1  # on the one port

    def validate(self) -> None:
        if not 1 <= self.edge_processes <= PROCESSES_MAX:
            raise SetupError(
                f"--edge-processes {self.edge_processes}: use 1 to {PROCESSES_MAX}, at most one "
                "per processor"
            )
        if self.revoked is not None and self.jwt_key is None:
            raise SetupError("--revoked says whose tokens no longer hold; it needs --jwt-key")
        if self.host not in LOOPBACK and self.jwt_key is None:
            raise SetupError(
                f"{self.host} can be reached from outside, and without --jwt-key the HTTP door "
                "takes events from anyone; give a key, or stay on 127.0.0.1 and use --edge-host "
                "for the clients"
            )

    def verifier(self) -> JwtVerifier | None:
        if self.jwt_key is None:
            return None
        try:
            return JwtVerifier(self.jwt_key.read_bytes().strip())
        except OSError as error:
            raise SetupError(f"cannot read {self.jwt_key}: {error.strerror}") from None

    def edge_config(self) -> EdgeConfig:
        return EdgeConfig(
            assets=self.assets,
            verifier=self.verifier(),
            revoked=Revoked(self.revoked) if self.revoked else None,
            origins=self.origins,
            trusted_proxies=self.trusted_proxies,
            tls=self.tls,
        )

    def door_config(self, sources: Iterable[SourceSpec]) -> HttpConfig:
        verifier = self.verifier()
        revoked = Revoked(self.revoked) if self.revoked else None
        given = HttpConfig(
            authority=IngestGate(verifier, WallClock(), revoked) if verifier else None,
            origins=frozenset(self.origins),
            tls=self.tls,
        )
        return http_config(sources, given)
