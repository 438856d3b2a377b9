import jwt
import pytest

from edgewise.edge.access.auth import JwtVerifier
from edgewise.event.clock import ManualClock
from edgewise.gateway.quotas import Publisher
from edgewise.node import ingest_auth
from edgewise.node.ingest_auth import IngestAuth

SECRET = "a secret that is long enough for everyone"
LATER = 4_000_000_000


class Counting(JwtVerifier):
    asked = 0

    def verify(self, token):
        self.asked += 1
        return super().verify(token)


def token(key=SECRET, **claims):
    return jwt.encode({"sub": "sensor", "exp": LATER, **claims}, key, algorithm="HS256")


@pytest.fixture
def gate():
    return IngestAuth(Counting(SECRET), ManualClock(1_000_000))


def test_a_token_opens_the_streams_it_names(gate):
    mine = token(ingest=["logins", "metrics"])
    assert gate(mine, "logins") == Publisher("sensor")
    assert gate(mine, "") == Publisher("sensor"), "pages about all streams"
    assert gate(mine, "orders").status == 403
    assert gate(token(ingest=["#"]), "orders") == Publisher("sensor")
    assert gate(token(), "orders").status == 403
    assert gate(token(publish=["#"]), "orders").status == 403, "topics are not streams"


@pytest.mark.parametrize("bad", ["", "x.y.z", token(key="another secret, just as long as ours!")])
def test_a_stranger_stays_outside(gate, bad):
    assert gate(bad, "logins").status == 401


def test_a_token_is_verified_once_and_not_believed_when_it_expired():
    clock = ManualClock((LATER - 1) * 1_000_000)
    verifier = Counting(SECRET)
    gate = IngestAuth(verifier, clock)
    mine = token(ingest=["#"])
    assert [gate(mine, "s") for _ in range(5)] == [Publisher("sensor")] * 5
    assert verifier.asked == 1
    clock.advance(2_000_000)
    gate(mine, "s")
    assert verifier.asked == 2, "its time is over: the verifier decides again"


def test_the_memory_of_tokens_is_bounded(gate, monkeypatch):
    monkeypatch.setattr(ingest_auth, "TOKENS_MAX", 3)
    for number in range(10):
        gate(token(jti=str(number), ingest=["#"]), "s")
    assert len(gate._known) == 3


def test_a_token_may_carry_the_quotas_of_its_owner(gate):
    mine = token(ingest=["#"], ingest_events_per_s=7, ingest_bytes_per_s=9)
    assert gate(mine, "s") == Publisher("sensor", 7, 9)
