"""Keys of all kinds, as an identity provider publishes them, and tokens signed with them."""

import json
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

MAKERS = {
    "RS256": (lambda: rsa.generate_private_key(65537, 2048), jwt.algorithms.RSAAlgorithm),
    "ES256": (lambda: ec.generate_private_key(ec.SECP256R1()), jwt.algorithms.ECAlgorithm),
    "ES384": (lambda: ec.generate_private_key(ec.SECP384R1()), jwt.algorithms.ECAlgorithm),
    "EdDSA": (ed25519.Ed25519PrivateKey.generate, jwt.algorithms.OKPAlgorithm),
}


def jwk(key, algorithm, kid):
    text = MAKERS[algorithm][1].to_jwk(key.public_key())
    return json.loads(text) | {"kid": kid, "use": "sig", "alg": algorithm}


def key_set(*entries):
    return json.dumps({"keys": entries}).encode()


def sign(key, algorithm, kid="", **claims):
    payload = {"sub": "ada", "exp": time.time() + 60, **claims}
    return jwt.encode(payload, key, algorithm, headers={"kid": kid} if kid else None)
