"""Decide whether the caller of an ingest endpoint may be answered: host, page and token.

    host    without tokens only local names are served: a page of another site can let its own
            name resolve to 127.0.0.1 (DNS rebinding), and then its Host and Origin are equal
    page    browsers send no preflight for WebSockets and for mapped paths, so pages of other
            sites are refused here
    token   the node's authorizer decides (`tokens`)

A refused page is said once in the program's log: a browser does not tell its user why. Used by
`http`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from edgewise.gateway.quotas import Publisher
from edgewise.gateway.refusal import Refusal, refuse_request
from edgewise.gateway.tokens import Authorizer, read_token

logger = logging.getLogger(__name__)
# Arguments: the address that connected, and the headers by name in small letters.
FindAddress = Callable[[str, Mapping[str, str]], str]
REFUSALS_LOGGED_MAX = 100  # different hosts and pages; later ones are refused silently


class CallerChecks:
    """None as an answer: the caller may. `find_address` looks behind trusted proxies."""

    def __init__(
        self,
        origins: frozenset[str],
        admits_host: Callable[[str], bool],
        authorizer: Authorizer | None,
        find_address: FindAddress = lambda peer, _headers: peer,
    ) -> None:
        self._origins = origins
        self._admits_host = admits_host
        self._authorizer = authorizer
        self._find_address = find_address
        self._logged: set[str] = set()

    def refuse_host(self, headers: Mapping[bytes, bytes]) -> Refusal | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if self._admits_host(host):
            return None
        reason = f"'{host[:100]}' is not served: without tokens only local names are"
        return self._refuse(reason, "Host")

    def refuse_page(self, headers: Mapping[bytes, bytes]) -> Refusal | None:
        """The page's own host may, and listed origins; other callers have no Origin header."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        host = headers.get(b"host", b"").decode("latin-1")
        if not origin or origin in self._origins or urlsplit(origin).netloc == host:
            return None
        reason = f"pages of '{origin[:100]}' may not send events; allow them with --origin"
        return self._refuse(reason, "Origin")

    def list_cors_headers(self, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """What lets a page of a listed origin send events and read the answers."""
        origin = headers.get(b"origin", b"")
        if not origin or origin.decode("latin-1") not in self._origins:
            return []
        allowed = b"authorization, content-type, content-encoding, idempotency-key"
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", b"GET, POST"),
            (b"access-control-allow-headers", allowed),
            (b"access-control-expose-headers", b"retry-after"),
            (b"vary", b"origin"),
        ]

    def identify(self, scope: Mapping[str, Any], stream: str) -> Publisher | Refusal:
        """Who asks: a principal, or an address where there are no tokens."""
        if self._authorizer is not None:
            return self._authorizer(read_token(scope), stream)
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        return Publisher(self._find_address((scope.get("client") or ("",))[0], headers))

    def _refuse(self, reason: str, header: str) -> Refusal:
        if reason not in self._logged and len(self._logged) < REFUSALS_LOGGED_MAX:
            self._logged.add(reason)
            logger.warning("ingest: refused a request: %s %s", header, reason)
        return refuse_request(403, "forbidden", reason, at=header)
