"""Hold the limits, routes and access rules of an ingest server in one frozen value.

Built by `connectors` from the sources of an app and by the node from its options. Used by `http`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edgewise.gateway.admit import AdmissionLimits
from edgewise.gateway.caller_checks import FindAddress
from edgewise.gateway.quotas import QuotaConfig
from edgewise.gateway.spec import MapSpec
from edgewise.gateway.tokens import Authorizer


@dataclass(frozen=True, slots=True)
class IngestConfig:
    """Limits and routes of an ingest server.

    `paths` gives streams further paths, such as `/logins`; `maps` gives the mapping of bodies
    that are sent to such a path, where it is not JSON or Arrow. Streams in `keyed` are delivered
    effectively once: each request must have an idempotency key.
    """

    limits: AdmissionLimits = AdmissionLimits()
    in_flight_bytes_max: int = 64 * 1024 * 1024
    body_timeout_s: float = 30.0
    connections_max: int = 4096
    address_connections_max: int = 2048  # so that one address cannot keep all others out
    head_timeout_s: float = 10.0
    head_bytes_max: int = 16 * 1024
    keep_alive_s: int = 30
    append_threads: int = 16
    paths: Mapping[str, str] = field(default_factory=dict)
    maps: Mapping[str, MapSpec] = field(default_factory=dict)
    keyed: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()  # of pages on other hosts that may open WebSockets
    admits_host: Callable[[str], bool] = lambda _host: True  # by the Host header of a request
    authorizer: Authorizer | None = None  # None: every caller may send
    find_address: FindAddress = lambda peer, _headers: peer  # of a caller, behind its proxies
    quotas: QuotaConfig = QuotaConfig()
    tls: tuple[Path, Path] | None = None  # certificate chain and key, PEM
