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

from edgewise.gateway.refusal import Refusal, refuse_request
from edgewise.gateway.tokens import Authorizer, read_token

logger = logging.getLogger(__name__)
REFUSALS_LOGGED_MAX = 100  # different hosts and pages; later ones are refused silently


class CallerChecks:
    """None as an answer: the caller may."""

    def __init__(
        self,
        origins: frozenset[str],
        admits_host: Callable[[str], bool],
        authorizer: Authorizer | None,
    ) -> None:
        self._origins = origins
        self._admits_host = admits_host
        self._authorizer = authorizer
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

    def refuse_token(self, scope: Mapping[str, Any], stream: str) -> Refusal | None:
        return None if self._authorizer is None else self._authorizer(read_token(scope), stream)

    def _refuse(self, reason: str, header: str) -> Refusal:
        if reason not in self._logged and len(self._logged) < REFUSALS_LOGGED_MAX:
            self._logged.add(reason)
            logger.warning("ingest: refused a request: %s %s", header, reason)
        return refuse_request(403, "forbidden", reason, at=header)
