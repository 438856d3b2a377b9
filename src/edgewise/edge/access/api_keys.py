"""Keep API keys of machines in a file, hashed, with what each may do (`edgewise key`).

A key is `ew_NAME_SECRET`. The file has a line of JSON for each key, with the SHA-256 of the
secret: it has 256 bits of chance, so a slow hash would cost each request for nothing. The file is
read again when it changes: a revoked key is refused from the next request on. A session that is
open at the edge lives on; the revocation list ends it. The node's config builds the verifier.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewise.edge.access.auth import Principal, Verifier, build_principal
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire.codes import ProtocolCode

PREFIX = "ew_"
KEYS_MAX = 10_000
SECRET_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9.-]{1,64}")  # no '_': it ends the name in a key


class ApiKeyFile:
    """The keys by name: the hash of the secret and the claims."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: tuple[int, int, int] | None = None
        self._keys: dict[str, dict[str, Any]] = {}

    def list_keys(self) -> Mapping[str, dict[str, Any]]:
        """As the file says now. A file that cannot be read keeps what was known."""
        try:
            found = self._path.stat()
            mark = (found.st_mtime_ns, found.st_size, found.st_ino)
            if mark != self._mark:
                self._keys, self._mark = _read(self._path), mark
        except FileNotFoundError:
            if self._mark is None:
                return {}
        except OSError:
            pass
        return self._keys

    def add(self, name: str, claims: Mapping[str, Any]) -> str:
        """Returns the key; it is told once and nowhere kept."""
        if not _NAME.fullmatch(name):
            raise SetupError(f"'{name}': a name has 1 to 64 letters, digits, dots and hyphens")
        keys = dict(self.list_keys())
        if name in keys:
            raise SetupError(f"there is a key '{name}': revoke it first, or take another name")
        if len(keys) >= KEYS_MAX:
            raise SetupError(f"{self._path} has {KEYS_MAX} keys, which is the limit")
        secret = secrets.token_urlsafe(SECRET_BYTES)
        self._write(keys | {name: {"name": name, "sha256": _hash(secret), **claims}})
        return f"{PREFIX}{name}_{secret}"

    def revoke(self, name: str) -> None:
        keys = dict(self.list_keys())
        if keys.pop(name, None) is None:
            raise SetupError(f"{self._path} has no key '{name}'")
        self._write(keys)

    def _write(self, keys: Mapping[str, dict[str, Any]]) -> None:
        temporary = self._path.with_name(f"{self._path.name}.tmp")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in keys.values())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)


class ApiKeyVerifier:
    """Verifies API keys; all other tokens go to `others`."""

    def __init__(self, keys: ApiKeyFile, others: Verifier | None = None) -> None:
        self._keys = keys
        self._others = others

    def verify(self, token: str) -> Principal:
        if not token.startswith(PREFIX) and self._others is not None:
            return self._others.verify(token)
        name, _, secret = token.removeprefix(PREFIX).partition("_")
        entry = self._keys.list_keys().get(name, {})
        good = hmac.compare_digest(entry.get("sha256", ""), _hash(secret))
        if not good or not token.startswith(PREFIX):
            raise ProtocolError(ProtocolCode.UNAUTHENTICATED, "no such API key")
        return build_principal({**entry, "sub": name})


def _read(path: Path) -> dict[str, dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines()[:KEYS_MAX]
    try:
        entries = [json.loads(line) for line in lines if line.strip()]
        return {entry["name"]: entry for entry in entries}
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{path} is no file of API keys: {error!r}") from None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
