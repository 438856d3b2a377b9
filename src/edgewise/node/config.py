"""Hold the settings of a node: its app, its logs, its addresses, and who may connect.

One frozen dataclass that the CLI fills, `validate` checks, and child processes get as JSON
(`processes.children`). It builds the configs of the edge and of the ingest server.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from edgewise.edge.access.api_keys import ApiKeyFile, ApiKeyVerifier
from edgewise.edge.access.auth import LOOPBACK, JwtVerifier, Verifier, is_local_host
from edgewise.edge.access.forwarded import TrustedProxies
from edgewise.edge.access.published_keys import discover_keys, open_keys
from edgewise.edge.access.revocation import RevocationList
from edgewise.edge.access.token_keys import TokenKeys
from edgewise.edge.config import EdgeConfig
from edgewise.engines.state.save_schedule import INTERVAL_S
from edgewise.errors import SetupError
from edgewise.gateway.connectors import build_ingest_config
from edgewise.gateway.ingest_config import IngestConfig
from edgewise.gateway.quotas import QuotaConfig
from edgewise.gateway.spec import SourceSpec
from edgewise.log.api import LogConfig
from edgewise.node.data_dir import RETAIN_EVERY_S, DataDirectory
from edgewise.node.ingest_auth import IngestAuth
from edgewise.node.isolation.isolated_pool import CallLimits
from edgewise.node.upkeep.archiver import ArchiveConfig
from edgewise.node.upkeep.file_limit import bound_connections
from edgewise.plan.nodes import App

PROCESSES_MAX = 64  # of the edge on one port
COLD, WARM = STANDBYS = ("cold", "warm")


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
    standby: str = WARM  # a warm standby has its engine started, a cold one starts it on the win
    master: str = "local[*]"
    spark_settings: tuple[str, ...] = ()  # `--conf` options: KEY=VALUE
    packages: tuple[str, ...] = ()  # `--packages` options, for Spark's JVMs
    partitions: int = 2
    save_interval_s: float = INTERVAL_S  # between saves of state; 0: after each batch
    trigger_ms: int = 0  # between micro-batches; 0: as soon as the last one is done
    rows_max: int = 1_000_000  # of a micro-batch
    small_batch_rows: int | None = None  # up to so many run in the driver; None: Spark's default
    start_ms: int | None = None  # event time where a new app starts; None: at the first events
    state: str = ""  # where kernel state is, a path or URI; '': in the data directory
    log: LogConfig = LogConfig()
    retain_disk_share: float = 0.0  # of the disk for all logs, where `log.retain_bytes` is 0
    archive: ArchiveConfig = ArchiveConfig()
    clean_up_every_s: float = RETAIN_EVERY_S
    stall_s: float = 30.0  # an engine that does not move on for so long is not healthy
    log_locations: tuple[str, ...] = ()  # logs outside the data directory: `--log` options
    web: Path | None = None  # directory of the page at /; None: one of ours (`pages`)
    assets: tuple[tuple[str, Path], ...] = ()
    edge_host: str = ""  # '': as `host`; off loopback it needs `jwt_key`
    jwt_key: Path | None = None  # a secret, or a public key in PEM
    jwt_audience: str = ""  # claim `aud` that every token must have; '': none may have one
    jwt_issuer: str = ""  # claim `iss` that every token must have; '': any
    jwt_skew_s: int = 0  # how far the clock of whoever made a token may be from ours
    jwks: str = ""  # address of the public keys of tokens (JSON Web Key Set)
    oidc: str = ""  # address of an OpenID provider, which says where its keys are
    api_keys: Path | None = None  # file of hashed keys of machines (`edgewise key`)
    revoked: Path | None = None  # file with names of principals whose tokens are no longer valid
    origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()  # addresses and networks
    quotas: QuotaConfig = QuotaConfig()  # of one principal, or address, at the ingest endpoints
    watch: bool = False  # load the app file again when it changes
    tls: tuple[Path, Path] | None = None  # certificate chain and key, PEM
    functions: tuple[str, ...] = ()  # modules of the user with functions, merges and more
    edge_processes: int = 1  # that share the port of the edge
    isolation: CallLimits | None = None  # of functions that the app defines; None: in process

    def validate(self) -> None:
        if not 1 <= self.edge_processes <= PROCESSES_MAX:
            raise SetupError(
                f"--edge-processes {self.edge_processes}: use 1 to {PROCESSES_MAX}, at most one "
                "per processor"
            )
        if sum(map(bool, (self.jwt_key, self.jwks, self.oidc))) > 1:
            raise SetupError("--jwt-key, --jwks and --oidc say where keys are: give one of them")
        if self.oidc and not self.jwt_audience:
            raise SetupError("--oidc needs --jwt-audience: a provider makes tokens for others too")
        if (self.jwt_audience or self.jwt_issuer) and not (self.jwt_key or self.jwks or self.oidc):
            raise SetupError(
                "--jwt-audience and --jwt-issuer are claims of tokens: give --jwt-key"
            )
        if self.revoked is not None and not self.has_identity:
            raise SetupError("--revoked lists tokens that are no longer valid; it needs --jwt-key")
        if self.host not in LOOPBACK and not self.has_identity:
            raise SetupError(
                f"{self.host} can be reached from other machines, and without --jwt-key anyone "
                "could send events; give a key, or stay on 127.0.0.1 and use --edge-host for "
                "clients"
            )

    @property
    def has_identity(self) -> bool:
        """Whether callers must say who they are."""
        return bool(self.jwt_key or self.jwks or self.oidc or self.api_keys)

    def bound_logs(self, data_dir: DataDirectory, app: App) -> NodeConfig:
        """With the share of the disk that each log may take."""
        log = data_dir.bound_retention(app, self.log, self.retain_disk_share)
        return replace(self, log=log)

    def verifier(self) -> Verifier | None:
        tokens: Verifier | None = None
        if keys := self._open_token_keys():
            issuer = self.jwt_issuer or self.oidc
            tokens = JwtVerifier(
                keys, audience=self.jwt_audience, issuer=issuer, skew_s=self.jwt_skew_s
            )
        if self.api_keys is None:
            return tokens
        return ApiKeyVerifier(ApiKeyFile(self.api_keys), tokens)

    def _open_token_keys(self) -> TokenKeys | None:
        if self.oidc:
            return discover_keys(self.oidc)
        location = self.jwks or (str(self.jwt_key) if self.jwt_key else "")
        return open_keys(location) if location else None

    def edge_config(self) -> EdgeConfig:
        connections = bound_connections(EdgeConfig().connections_max)
        return EdgeConfig(
            assets=self.assets,
            user_page=self.web is not None,
            connections_max=connections,
            address_connections_max=min(EdgeConfig().address_connections_max, connections),
            verifier=self.verifier(),
            revoked=RevocationList(self.revoked) if self.revoked else None,
            origins=self.origins,
            trusted_proxies=self.trusted_proxies,
            tls=self.tls,
        )

    def ingest_config(self, sources: Iterable[SourceSpec]) -> IngestConfig:
        verifier = self.verifier()
        revoked = RevocationList(self.revoked) if self.revoked else None
        connections = bound_connections(IngestConfig().connections_max)
        # Behind a proxy all callers have its address.
        of_one = connections if self.trusted_proxies else IngestConfig().address_connections_max
        base = IngestConfig(
            authorizer=IngestAuth(verifier, WallClock(), revoked) if verifier else None,
            origins=frozenset(self.origins),
            connections_max=connections,
            address_connections_max=min(of_one, connections),
            admits_host=lambda host: verifier is not None or is_local_host(host, self.origins),
            find_address=TrustedProxies(self.trusted_proxies).client,
            quotas=self.quotas,
            tls=self.tls,
        )
        return build_ingest_config(sources, base)
