"""Fetch the keys of tokens where an identity provider publishes them, and follow their changes.

A provider replaces its keys from time to time. A set is fetched again when it is old, and when a
token names a key that is not in it: in a thread, so that no session waits; the token is refused
meanwhile. A set that cannot be fetched keeps what was known, so that an outage of the provider
locks nobody out. The node's config opens it for `auth.JwtVerifier`.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from edgewise.edge.access.token_keys import FixedKey, KeyAndAlgorithms, TokenKeys, parse_key_set
from edgewise.errors import SetupError

logger = logging.getLogger(__name__)
FETCH_BYTES_MAX = 1024 * 1024
FETCH_TIMEOUT_S = 10.0
REFRESH_S = 300.0  # a set that is older is fetched again
RETRY_S = 30.0  # the shortest time between two fetches, whatever tokens name
DISCOVERY = "/.well-known/openid-configuration"
LOCAL = {"127.0.0.1", "::1", "localhost"}


class PublishedKeys:
    """A set of keys that `fetch` reads, in any thread."""

    def __init__(
        self,
        fetch: Callable[[], bytes],
        *,
        now_s: Callable[[], float] = time.monotonic,
        retry_s: float = RETRY_S,
    ) -> None:
        self._fetch = fetch
        self._now_s = now_s
        self._retry_s = retry_s
        self._keys = parse_key_set(fetch())
        self._fetched_s = now_s()
        self.refreshing: threading.Thread | None = None

    def find(self, kid: str) -> KeyAndAlgorithms | None:
        found = self._keys.get(kid)
        if found is None and len(self._keys) == 1 and not kid:
            found = next(iter(self._keys.values()))  # a provider with one key need not name it
        age_s = self._now_s() - self._fetched_s
        if age_s > REFRESH_S or (found is None and age_s >= self._retry_s):
            self._refresh_soon()
        return found

    def _refresh_soon(self) -> None:
        if self.refreshing is None or not self.refreshing.is_alive():
            self._fetched_s = self._now_s()
            self.refreshing = threading.Thread(target=self._refresh, daemon=True)
            self.refreshing.start()

    def _refresh(self) -> None:
        try:
            self._keys = parse_key_set(self._fetch())
        except (SetupError, OSError) as error:
            logger.warning("the keys of tokens stay as they were: %s", error)


def open_keys(location: str) -> TokenKeys:
    """A file (secret, PEM or JWKS), or the address of a JWKS."""
    if location.startswith(("http://", "https://")):
        return PublishedKeys(lambda: fetch_url(location))
    path = Path(location)
    try:
        raw = path.read_bytes().strip()
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from None
    if raw.startswith(b"{"):
        return PublishedKeys(path.read_bytes, retry_s=1.0)
    return FixedKey(raw)


def discover_keys(issuer: str, fetch: Callable[[str], bytes] | None = None) -> TokenKeys:
    """The keys of an OpenID provider, by its configuration page."""
    fetch = fetch or fetch_url
    page = fetch(issuer.rstrip("/") + DISCOVERY)
    try:
        found = json.loads(page)
        said, location = str(found["issuer"]), str(found["jwks_uri"])
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{issuer}{DISCOVERY} is no OpenID configuration: {error!r}") from None
    if said.rstrip("/") != issuer.rstrip("/"):
        raise SetupError(f"{issuer} calls itself '{said}': use that name as --oidc")
    return PublishedKeys(lambda: fetch(location))


def fetch_url(url: str) -> bytes:
    """By HTTPS; without TLS only from this machine: who answers decides who may enter."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL):
        raise SetupError(f"{url}: keys are fetched by https:// only")
    try:
        with urllib.request.urlopen(url, timeout=FETCH_TIMEOUT_S) as answer:  # noqa: S310
            data: bytes = answer.read(FETCH_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise SetupError(f"cannot fetch {url}: {error}") from None
    if len(data) > FETCH_BYTES_MAX:
        raise SetupError(f"{url}: more than {FETCH_BYTES_MAX} bytes are no set of keys")
    return data
