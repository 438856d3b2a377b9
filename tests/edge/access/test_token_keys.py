import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support.token_keys import MAKERS, jwk, key_set, sign

from edgewise.edge.access.auth import JwtVerifier
from edgewise.edge.access.published_keys import (
    PublishedKeys,
)
from edgewise.edge.access.token_keys import FixedKey, parse_key_set
from edgewise.errors import ProtocolError, SetupError


@pytest.mark.parametrize("algorithm", MAKERS)
def test_tokens_hold_by_a_key_in_pem_and_by_one_of_a_set(algorithm):
    key = MAKERS[algorithm][0]()
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    other = MAKERS[algorithm][0]()
    fixed = JwtVerifier(FixedKey(pem))
    published = JwtVerifier(PublishedKeys(lambda: key_set(jwk(key, algorithm, "k1"))))
    assert fixed.verify(sign(key, algorithm)).name == "ada"
    assert published.verify(sign(key, algorithm, "k1")).name == "ada"
    assert published.verify(sign(key, algorithm)).name == "ada", "one key needs no name"
    for verifier in (fixed, published):
        with pytest.raises(ProtocolError):
            verifier.verify(sign(other, algorithm, "k1"))
    with pytest.raises(ProtocolError, match="no key 'k2'"):
        published.verify(sign(key, algorithm, "k2"))


def test_a_published_secret_and_foreign_keys_are_ignored():
    good = jwk(ec.generate_private_key(ec.SECP256R1()), "ES256", "k1")
    secret = {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "s"}
    odd = {"kty": "new", "kid": "n"}
    sealing = good | {"use": "enc", "kid": "e"}
    assert list(parse_key_set(key_set(good, secret, odd, sealing))) == ["k1"]
    for bad in (b"{}", b"[]", b"x", key_set(), key_set(secret)):
        with pytest.raises(SetupError):
            parse_key_set(bad)


def test_a_public_key_is_no_secret_of_a_token():
    """Algorithm confusion: an HS256 token signed with the text of the public key."""
    key = rsa.generate_private_key(65537, 2048)
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header = {"alg": "HS256", "typ": "JWT"}
    claims = {"sub": "eve", "exp": time.time() + 60}
    parts = [jwt.utils.base64url_encode(json.dumps(p).encode()) for p in (header, claims)]
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signed = b".".join(parts)
    token = signed + b"." + jwt.utils.base64url_encode(signature.sign(signed, pem))
    for keys in (FixedKey(pem), PublishedKeys(lambda: key_set(jwk(key, "RS256", "")))):
        with pytest.raises(ProtocolError):
            JwtVerifier(keys).verify(token.decode())


def test_clocks_may_differ_by_the_skew():
    key = ec.generate_private_key(ec.SECP256R1())
    keys = PublishedKeys(lambda: key_set(jwk(key, "ES256", "k")))
    old = sign(key, "ES256", "k", exp=int(time.time()) - 20)
    with pytest.raises(ProtocolError, match="expired"):
        JwtVerifier(keys, skew_s=5).verify(old)
    found = JwtVerifier(keys, skew_s=60).verify(old)
    assert found.expires_us > time.time() * 1e6
