"""Authorize callers of the ingest endpoints by the edge's tokens, with the claim `ingest`.

    {"sub": "sensor-7", "exp": 1790000000, "ingest": ["readings", "logins"]}

`#` stands for all streams. The signature of a token is checked once and remembered until the token
expires: checking it for every request would cost more than admitting the events. The authorizer
(`gateway.tokens.Authorizer`) of a node with `--jwt-key`; built by `config`.
"""

from __future__ import annotations

from collections import OrderedDict

from edgewise.edge.access.auth import Principal, Verifier
from edgewise.edge.access.revocation import RevocationList
from edgewise.errors import ProtocolError
from edgewise.event.clock import SystemClock
from edgewise.gateway.quotas import Publisher
from edgewise.gateway.refusal import Refusal
from edgewise.gateway.tokens import refuse_caller, refuse_stream

TOKENS_MAX = 4096  # remembered, the last ones used


class IngestAuth:
    def __init__(
        self, verifier: Verifier, clock: SystemClock, revoked: RevocationList | None = None
    ) -> None:
        self._verifier = verifier
        self._revoked = revoked
        self._clock = clock
        self._known: OrderedDict[str, Principal] = OrderedDict()

    def __call__(self, token: str, stream: str) -> Refusal | Publisher:
        """For one event loop."""
        principal = self._known.get(token)
        if principal is None or principal.expires_us <= self._clock.now_us():
            self._known.pop(token, None)
            try:
                principal = self._verifier.verify(token)
            except ProtocolError as bad:
                return refuse_caller(str(bad))
            self._known[token] = principal
            while len(self._known) > TOKENS_MAX:
                self._known.popitem(last=False)
        self._known.move_to_end(token)
        if self._revoked is not None and principal.name in self._revoked.names:
            return refuse_caller(f"'{principal.name}' was revoked")
        if stream and not principal.may_ingest(stream):
            return refuse_stream(f"'{principal.name}' may not send events to '{stream[:100]}'")
        return Publisher(
            principal.name, principal.ingest_events_per_s, principal.ingest_bytes_per_s
        )
