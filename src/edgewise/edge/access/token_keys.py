"""Read the keys that tokens are signed with: a secret, a public key, or a set (JWKS). Pure.

Symmetric keys of a published set are ignored: a published secret is none. `auth.JwtVerifier` asks
a `TokenKeys` for the key of a token; `published_keys` fetches sets.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from edgewise.errors import SetupError

SECRET_BYTES_MIN = 32
KEYS_MAX = 100
CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
RSA = ("RS256", "RS384", "RS512")
ASYMMETRIC = {*RSA, "PS256", "PS384", "PS512", *CURVES.values(), "EdDSA"}

KeyAndAlgorithms = tuple[Any, list[str]]


class TokenKeys(Protocol):
    def find(self, kid: str) -> KeyAndAlgorithms | None:
        """The key of this name, and the algorithms it may have been used with."""
        ...


class FixedKey:
    """A shared secret, or a public key in PEM: RSA, EC (P-256, P-384, P-521) or Ed25519."""

    def __init__(self, key: str | bytes) -> None:
        raw = key.encode() if isinstance(key, str) else key
        self._found: KeyAndAlgorithms = (raw, ["HS256", "HS384", "HS512"])
        if raw.lstrip().startswith(b"-----BEGIN"):
            self._found = _read_pem(raw)
        elif len(raw) < SECRET_BYTES_MIN:
            raise SetupError(
                f"edge: a token secret needs {SECRET_BYTES_MIN} bytes or more, it has {len(raw)}"
            )

    def find(self, kid: str) -> KeyAndAlgorithms:
        del kid  # there is one
        return self._found


def parse_key_set(data: bytes) -> dict[str, KeyAndAlgorithms]:
    """Public keys by name; SetupError where there is none."""
    try:
        listed = json.loads(data)["keys"][:KEYS_MAX]
        entries = [entry for entry in listed if entry.get("use", "sig") == "sig"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SetupError(f"this is no JSON Web Key Set: {error!r}") from None
    keys: dict[str, KeyAndAlgorithms] = {}
    for entry in entries:
        try:
            key = jwt.PyJWK.from_dict(entry)
        except (jwt.PyJWTError, ValueError, TypeError):
            continue  # of a kind that we do not know: tokens of the others are still good
        if key.algorithm_name in ASYMMETRIC:
            several = list(RSA) if "alg" not in entry and isinstance(key.key, RSAPublicKey) else []
            keys[key.key_id or ""] = (key.key, several or [key.algorithm_name])
    if not keys:
        raise SetupError("the JSON Web Key Set has no public key for signatures")
    return keys


def _read_pem(pem: bytes) -> KeyAndAlgorithms:
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SetupError(f"edge: the token key is no public key in PEM: {error}") from error
    if isinstance(key, RSAPublicKey):
        return key, list(RSA)
    if isinstance(key, Ed25519PublicKey):
        return key, ["EdDSA"]
    if isinstance(key, EllipticCurvePublicKey) and key.curve.name in CURVES:
        return key, [CURVES[key.curve.name]]
    raise SetupError("edge: the token key must be RSA, Ed25519, or EC of P-256, P-384 or P-521")
