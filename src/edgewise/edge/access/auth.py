"""Verify tokens, and decide what a principal may read, publish and request.

A token is a JWT. Its claims are the permissions; selectors say where:

    {"sub": "wall", "exp": 1790000000, "read": ["alerts/#"], "publish": ["chat/+"],
     "request": ["echo"], "ingest": ["logins"], "sessions": 5, "bytes_per_s": 62500}

`ingest` names streams whose events its owner may send; the HTTP source asks for it.

Without a verifier everybody is `anyone` and the edge only binds to loopback. Permissions are
checked again while a session lives: `revoke`, `regrant` and the revocation list act on open
sessions at the next sweep. Sessions, the HTTP routes and the HTTP source use it.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

import jwt

from edgewise.edge.access.revocation import RevocationList
from edgewise.edge.access.token_keys import FixedKey, KeyAndAlgorithms, TokenKeys
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.paths import parse_selector, selects

Selectors = tuple[tuple[str, ...], ...]
TOKEN_BYTES_MAX = 8192
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
REFUSALS_LOGGED_MAX = 100  # different pages and hosts; later ones are refused silently


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a session acts for. 0 means no limit of its own."""

    name: str
    read: Selectors = ()
    publish: Selectors = ()
    request: Selectors = ()
    ingest: Selectors = ()
    expires_us: int = 0
    sessions_max: int = 0
    bytes_per_s: int = 0
    updates_per_s: int = 0
    ingest_events_per_s: int = 0
    ingest_bytes_per_s: int = 0

    def may_read(self, path: tuple[str, ...]) -> bool:
        return any(selects(s, path) for s in self.read)

    def may_publish(self, path: tuple[str, ...]) -> bool:
        # The server's own topics belong to the server, whatever a token says.
        if path[0].startswith("$"):
            return False
        for selector in self.publish:  # noqa: SIM110 - a generator costs more than the answer
            if selects(selector, path):
                return True
        return False

    def may_ingest(self, stream: str) -> bool:
        return any(selects(s, (stream,)) for s in self.ingest)

    def may_request(self, path: tuple[str, ...]) -> bool:
        return any(selects(s, path) for s in self.request)


_ALL: Selectors = (("#",), ("$sys", "#"))
ANYONE = Principal("anyone", read=_ALL, publish=_ALL, request=_ALL)


class Verifier(Protocol):
    def verify(self, token: str) -> Principal:
        """Who this token is; ProtocolError UNAUTHENTICATED when it is nobody."""
        ...


class JwtVerifier:
    """Verifies tokens by a secret, a public key, or published keys (`token_keys`).

    `skew_s`: how far the clock of whoever made the token may be from ours.
    """

    def __init__(
        self,
        key: str | bytes | TokenKeys,
        *,
        audience: str = "",
        issuer: str = "",
        skew_s: int = 0,
    ) -> None:
        self._keys = FixedKey(key) if isinstance(key, str | bytes) else key
        self._audience = audience or None
        self._issuer = issuer or None
        self._skew_s = skew_s

    def verify(self, token: str) -> Principal:
        if not token or len(token) > TOKEN_BYTES_MAX:
            raise ProtocolError(
                ProtocolCode.UNAUTHENTICATED, "a token is needed; none that fits came"
            )
        try:
            key, algorithms = self._find_key(token)
            claims = jwt.decode(
                token,
                key,
                algorithms=algorithms,
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._skew_s,
                options={"require": ["exp", "sub"]},
            )
            return build_principal(claims | {"exp": int(claims["exp"]) + self._skew_s})
        except jwt.ExpiredSignatureError as error:
            raise ProtocolError(ProtocolCode.TOKEN_EXPIRED, "the token has expired") from error
        except (jwt.InvalidTokenError, TypeError, ValueError, ProtocolError) as error:
            raise ProtocolError(
                ProtocolCode.UNAUTHENTICATED, f"the token does not hold: {error}"
            ) from error

    def _find_key(self, token: str) -> KeyAndAlgorithms:
        kid = str(jwt.get_unverified_header(token).get("kid", ""))
        found = self._keys.find(kid)
        if found is None:
            raise jwt.InvalidTokenError(f"no key '{kid[:100]}' is known")
        return found


def build_principal(claims: Mapping[str, Any]) -> Principal:
    """From the claims of a token or of an API key; without `exp` it does not end."""
    return Principal(
        name=str(claims["sub"]),
        read=_selectors(claims, "read"),
        publish=_selectors(claims, "publish"),
        request=_selectors(claims, "request"),
        ingest=_selectors(claims, "ingest"),
        expires_us=int(claims.get("exp", 0)) * 1_000_000,
        sessions_max=int(claims.get("sessions", 0)),
        bytes_per_s=int(claims.get("bytes_per_s", 0)),
        updates_per_s=int(claims.get("updates_per_s", 0)),
        ingest_events_per_s=int(claims.get("ingest_events_per_s", 0)),
        ingest_bytes_per_s=int(claims.get("ingest_bytes_per_s", 0)),
    )


def _selectors(claims: Mapping[str, Any], name: str) -> Selectors:
    listed = claims.get(name, [])
    if not isinstance(listed, list):
        raise TypeError(f"'{name}' must be a list of selectors")
    return tuple(parse_selector(str(s)) for s in listed)


@dataclass(slots=True)
class AccessControl:
    """One per edge. Counts sessions by principal and knows who was sent away."""

    verifier: Verifier | None = None
    origins: tuple[str, ...] = ()
    sessions_max: int = 0  # per principal that does not say
    changes: int = 0  # of what was granted; a session that saw the last need not ask again
    revoked: RevocationList | None = None
    _revoked: frozenset[str] = frozenset()
    _inside: dict[str, int] = field(default_factory=dict)
    _granted: dict[str, Principal | None] = field(default_factory=dict)
    report: Callable[[str], None] = lambda _reason: None  # why a page was refused
    _logged: set[str] = field(default_factory=set)

    def identify(self, token: str) -> Principal:
        if self.verifier is None:
            return ANYONE
        principal = self.verifier.verify(token)
        self.reload_revoked()
        granted = self.now(principal)
        if granted is None:
            raise ProtocolError(ProtocolCode.UNAUTHENTICATED, f"'{principal.name}' was revoked")
        return granted

    def enter(self, token: str) -> Principal:
        """A new session; `leave` must follow."""
        principal = self.identify(token)
        limit = principal.sessions_max or (self.sessions_max if self.verifier else 0)
        count = self._inside.get(principal.name, 0)
        if limit and count >= limit:
            raise ProtocolError(
                ProtocolCode.TOO_MANY_SESSIONS, f"'{principal.name}' has {limit} sessions already"
            )
        self._inside[principal.name] = count + 1
        return principal

    def leave(self, principal: Principal) -> None:
        count = self._inside.get(principal.name, 1) - 1
        if count:
            self._inside[principal.name] = count
        else:
            self._inside.pop(principal.name, None)

    def now(self, principal: Principal) -> Principal | None:
        """What holds for a principal at this moment; None when it was sent away."""
        if principal.name in self._revoked:
            return None
        return self._granted.get(principal.name, principal)

    def reload_revoked(self) -> None:
        """Whether the list of the revoked is another now."""
        if self.revoked is not None:
            names = self.revoked.names
            if names is not self._revoked:
                self._revoked = names
                self.changes += 1

    def revoke(self, name: str) -> None:
        self._granted[name] = None
        self.changes += 1

    def regrant(self, principal: Principal) -> None:
        """New permissions for a name, for open sessions and those to come."""
        self._granted[principal.name] = principal
        self.changes += 1

    def admits_origin(self, origin: str, host: str) -> bool:
        """A browser page may connect when it came from here or is listed."""
        if not origin or origin in self.origins:
            return True
        return hmac.compare_digest(urlsplit(origin).netloc.lower().encode(), host.lower().encode())

    def admits_host(self, host: str) -> bool:
        """Whether a request for this Host header may be answered.

        Without tokens only local names are: a page of another site can let its own name resolve
        to 127.0.0.1 (DNS rebinding), and its Host and Origin are then equal.
        """
        return self.verifier is not None or is_local_host(host, self.origins)

    def refuse_page(self, origin: str, host: str) -> str:
        """Why a page may not connect, '' where it may; reported once for each."""
        if not self.admits_host(host):
            reason = f"host '{host[:100]}' is not served: without tokens only local names are"
        elif not self.admits_origin(origin, host):
            reason = f"pages of '{origin[:100]}' may not connect; allow them with --origin"
        else:
            return ""
        if reason not in self._logged and len(self._logged) < REFUSALS_LOGGED_MAX:
            self._logged.add(reason)
            self.report(reason)
        return reason


def is_local_host(host: str, origins: Iterable[str] = ()) -> bool:
    """Whether a Host header names this machine or the host of a listed origin; '' does."""
    name = urlsplit(f"//{host}").hostname if host else None
    return not host or name in LOOPBACK or name in {urlsplit(o).hostname for o in origins}


def demand_authentication(host: str, verifier: Verifier | None) -> None:
    if host not in LOOPBACK and verifier is None:
        raise SetupError(
            f"edge: {host} can be reached from outside and no authentication is configured; "
            "give a token key, or bind to 127.0.0.1"
        )


def parse_selectors(texts: Iterable[str]) -> Selectors:
    """`selectors(["a/#", "b"])` for building principals in code."""
    return tuple(parse_selector(t) for t in texts)
