"""The authority of the ingest door: the edge's tokens, with the claim `ingest`.

    {"sub": "sensor-7", "exp": 1790000000, "ingest": ["readings", "logins"]}

`#` stands for all streams. A token that held once holds until it expires: its signature is not
checked again for every request.
"""

from __future__ import annotations

from collections import OrderedDict

from edgewise.edge.gate import Principal, Verifier
from edgewise.edge.revoked import Revoked
from edgewise.errors import ProtocolError
from edgewise.event.clock import Clock
from edgewise.gateway.refusal import Refused
from edgewise.gateway.tokens import not_permitted, unknown_caller

TOKENS_MAX = 4096  # remembered, the last used ones


class IngestGate:
    def __init__(self, verifier: Verifier, clock: Clock, revoked: Revoked | None = None) -> None:
        self._verifier = verifier
        self._revoked = revoked
        self._clock = clock
        self._known: OrderedDict[str, Principal] = OrderedDict()

    def __call__(self, token: str, stream: str) -> Refused | None:
        """Of one event loop."""
        principal = self._known.get(token)
        if principal is None or principal.expires_us <= self._clock.now_us():
            self._known.pop(token, None)
            try:
                principal = self._verifier.verify(token)
            except ProtocolError as bad:
                return unknown_caller(str(bad))
            self._known[token] = principal
            while len(self._known) > TOKENS_MAX:
                self._known.popitem(last=False)
        self._known.move_to_end(token)
        if self._revoked is not None and principal.name in self._revoked.names:
            return unknown_caller(f"'{principal.name}' was revoked")
        if stream and not principal.may_ingest(stream):
            return not_permitted(f"'{principal.name}' may not send events to '{stream[:100]}'")
        return None
