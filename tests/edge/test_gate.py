import base64
import hmac
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from edgewise.edge.gate import (
    ANYONE,
    Gate,
    JwtVerifier,
    Principal,
    demand_authentication,
    selectors,
)
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire.codes import Code
from edgewise.wire.paths import parse_path

SECRET = "a secret of at least thirty-two bytes"


def claims(**more):
    return {"sub": "wall", "exp": int(time.time()) + 86_400, "read": ["alerts/#"], **more}


def pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture(scope="module")
def rsa():
    return generate_private_key(65537, 2048)


def test_shared_secrets_rsa_and_ed25519_verify(rsa):
    ed = Ed25519PrivateKey.generate()
    signed = [
        (JwtVerifier(SECRET), jwt.encode(claims(), SECRET, "HS256")),
        (JwtVerifier(SECRET), jwt.encode(claims(), SECRET, "HS512"))
        if len(SECRET) >= 64
        else None,
        (JwtVerifier(pem(rsa)), jwt.encode(claims(), rsa, "RS256")),
        (JwtVerifier(pem(ed)), jwt.encode(claims(), ed, "EdDSA")),
    ]
    for verifier, token in filter(None, signed):
        principal = verifier.verify(token)
        assert principal.name == "wall"
        assert principal.may_read(parse_path("alerts/a"))
        assert not principal.may_read(parse_path("other"))
        assert not principal.may_publish(parse_path("alerts/a"))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x" * 10_000,
        "a.b.c",
        jwt.encode(claims(), "another secret of thirty-two bytes..", "HS256"),
        jwt.encode({"sub": "x"}, SECRET, "HS256"),
        jwt.encode({"exp": int(time.time()) + 86_400}, SECRET, "HS256"),
        jwt.encode(claims(read="alerts/#"), SECRET, "HS256"),
        jwt.encode(claims(read=["a//b"]), SECRET, "HS256"),
        jwt.encode(claims(sessions="many"), SECRET, "HS256"),
        jwt.encode(claims(), None, "none"),
    ],
)
def test_tokens_that_do_not_hold_are_refused(token):
    with pytest.raises(ProtocolError) as caught:
        JwtVerifier(SECRET).verify(token)
    assert caught.value.code == Code.UNAUTHENTICATED


def test_an_expired_token_may_be_renewed():
    with pytest.raises(ProtocolError) as caught:
        JwtVerifier(SECRET).verify(jwt.encode(claims(exp=1), SECRET, "HS256"))
    assert caught.value.code == Code.TOKEN_EXPIRED


def test_a_public_key_is_never_taken_as_a_secret(rsa):
    body = jwt.encode(claims(), SECRET, "HS256").rpartition(".")[0].encode()
    forged = base64.urlsafe_b64encode(hmac.digest(pem(rsa), body, "sha256")).rstrip(b"=")
    with pytest.raises(ProtocolError, match="alg"):
        JwtVerifier(pem(rsa)).verify((body + b"." + forged).decode())


def test_weak_or_strange_keys_are_refused_at_start():
    for key in ("short", "-----BEGIN PUBLIC KEY-----\nxx\n-----END PUBLIC KEY-----"):
        with pytest.raises(SetupError):
            JwtVerifier(key)


def test_only_loopback_is_open_without_authentication():
    demand_authentication("127.0.0.1", None)
    demand_authentication("10.0.0.1", JwtVerifier(SECRET))
    with pytest.raises(SetupError, match=r"10\.0\.0\.1"):
        demand_authentication("10.0.0.1", None)


def test_anyone_may_not_write_the_servers_topics():
    assert ANYONE.may_read(("$sys", "edge"))
    assert ANYONE.may_publish(("a",))
    assert not ANYONE.may_publish(("$sys", "edge"))
    assert Principal("x", request=selectors(["echo"])).may_request(("echo",))


@pytest.mark.parametrize(
    ("origin", "admitted"),
    [
        ("", True),
        ("http://edge:8080", True),
        ("https://good.example", True),
        ("http://evil.example", False),
        ("null", False),
    ],
)
def test_pages_of_other_origins_are_kept_out(origin, admitted):
    gate = Gate(origins=("https://good.example",))
    assert gate.admits_origin(origin, "edge:8080") is admitted


def test_the_gate_counts_who_is_inside():
    gate = Gate(JwtVerifier(SECRET), sessions_max=2)
    token = jwt.encode(claims(), SECRET, "HS256")
    one, _ = gate.enter(token), gate.enter(token)
    with pytest.raises(ProtocolError) as caught:
        gate.enter(token)
    assert caught.value.code == Code.TOO_MANY_SESSIONS
    gate.leave(one)
    gate.enter(token)
    gate.revoke("wall")
    assert gate.now(one) is None
    with pytest.raises(ProtocolError):
        gate.identify(token)
