"""Hold the limits and choices of an edge in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgewise.edge.access.auth import Verifier
from edgewise.edge.access.forwarded import TrustedProxies
from edgewise.edge.access.revocation import RevocationList
from edgewise.errors import SetupError


@dataclass(frozen=True, slots=True)
class EdgeConfig:
    """`assets`: URL prefix and directory, longest prefix first; '/' serves index.html."""

    assets: tuple[tuple[str, Path], ...] = ()
    user_page: bool = False  # the files at / are a user's: they may load from anywhere
    verifier: Verifier | None = None  # without one, loopback only and everybody is `anyone`
    revoked: RevocationList | None = None  # principals whose tokens no longer hold
    origins: tuple[str, ...] = ()  # pages from elsewhere that may connect
    tls: tuple[Path, Path] | None = None  # certificate chain and key, PEM
    trusted_proxies: tuple[str, ...] = ()  # addresses and networks that say who asks

    principal_sessions_max: int = 1_000  # per principal whose token does not say
    sessions_max: int = 10_000
    connections_max: int = 12_000
    address_connections_max: int = 6_000  # of one address; behind a proxy see trusted_proxies
    subscriptions_max: int = 256  # per session
    session_topics_max: int = 100_000  # topics selected by one session
    topics_max: int = 1_000_000
    frame_bytes_max: int = 64 * 1024  # one frame from a client
    head_bytes_max: int = 16 * 1024  # one HTTP request head
    control_bytes_max: int = 256 * 1024  # answers waiting for a client that does not read
    queue_max: int = 1024  # waiting updates of one unconflatable topic in one session

    handshake_ms: int = 10_000
    ping_ms: int = 20_000
    idle_ms: int = 60_000
    ack_ms: int = 1_000
    poll_ms: int = 25_000  # how long a long poll may wait
    poll_idle_ms: int = 30_000  # how long a session lives without a poll

    tick_ms: int = 10  # under load, the longest wait that lets updates share a write
    overload_ms: int = 1_000  # a round of flushes that takes longer: new sessions are refused
    flush_bytes: int = 16 * 1024  # one write
    flush_bytes_max: int = 64 * 1024  # one write to a socket that takes each write whole
    notsent_lowat: int = 16 * 1024  # bytes the kernel may hold unsent
    sweep_ms: int = 250  # how often expiry, staleness and idleness are checked

    def validate(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, int) and not isinstance(value, bool) and value <= 0:
                raise SetupError(f"edge: {name} must be above zero, it is {value}")
        for prefix, directory in self.assets:
            if not prefix.startswith("/"):
                raise SetupError(f"edge: the asset prefix '{prefix}' must begin with '/'")
            if not directory.is_dir():
                raise SetupError(f"edge: {directory} is no directory; give one for '{prefix}'")
        TrustedProxies(self.trusted_proxies)
        for path in self.tls or ():
            if not path.is_file():
                raise SetupError(f"edge: {path} is no file; TLS needs a certificate and a key")
        if self.idle_ms <= self.ping_ms:
            raise SetupError("edge: idle_ms must exceed ping_ms, or live clients are dropped")
