import base64
import hmac
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from edgewise.edge.access.auth import (
    ANYONE,
    REFUSALS_LOGGED_MAX,
    AccessControl,
    JwtVerifier,
    Principal,
    demand_authentication,
    is_local_host,
    parse_selectors,
)
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire.codes import ProtocolCode
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
    assert caught.value.code == ProtocolCode.UNAUTHENTICATED


def test_an_expired_token_may_be_renewed():
    with pytest.raises(ProtocolError) as caught:
        JwtVerifier(SECRET).verify(jwt.encode(claims(exp=1), SECRET, "HS256"))
    assert caught.value.code == ProtocolCode.TOKEN_EXPIRED


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
    assert Principal("x", request=parse_selectors(["echo"])).may_request(("echo",))


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
    access = AccessControl(origins=("https://good.example",))
    assert access.admits_origin(origin, "edge:8080") is admitted


def test_the_gate_counts_who_is_inside():
    access = AccessControl(JwtVerifier(SECRET), sessions_max=2)
    token = jwt.encode(claims(), SECRET, "HS256")
    one, _ = access.enter(token), access.enter(token)
    with pytest.raises(ProtocolError) as caught:
        access.enter(token)
    assert caught.value.code == ProtocolCode.TOO_MANY_SESSIONS
    access.leave(one)
    access.enter(token)
    access.revoke("wall")
    assert access.now(one) is None
    with pytest.raises(ProtocolError):
        access.identify(token)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1:8008", True),
        ("LocalHost", True),
        ("[::1]:8008", True),
        ("", True),
        ("good.example:443", True),
        ("evil.example:8008", False),
        ("127.0.0.1.evil.example", False),
        ("evil.example@localhost:1", True),  # the name is what comes after the user
    ],
)
def test_without_tokens_only_local_and_listed_hosts_are_served(host, local):
    assert is_local_host(host, ["https://good.example"]) == local
    assert AccessControl(origins=("https://good.example",)).admits_host(host) == local
    assert AccessControl(JwtVerifier("x" * 32)).admits_host(host)


def test_a_page_whose_host_is_its_own_name_is_refused_and_reported_once():
    reported = []
    access = AccessControl(report=reported.append)
    for _ in range(3):
        assert "without tokens" in access.refuse_page(
            "http://evil.example:8008", "evil.example:8008"
        )
        assert "--origin" in access.refuse_page("http://evil.example", "127.0.0.1:8008")
    assert not access.refuse_page("http://127.0.0.1:8008", "127.0.0.1:8008")
    assert len(reported) == 2
    for number in range(2 * REFUSALS_LOGGED_MAX):
        access.refuse_page(f"http://{number}", "127.0.0.1")
    assert len(reported) == REFUSALS_LOGGED_MAX
