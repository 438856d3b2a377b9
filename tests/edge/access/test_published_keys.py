import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.token_keys import jwk, key_set, sign

from edgewise.edge.access.auth import JwtVerifier
from edgewise.edge.access.published_keys import (
    DISCOVERY,
    REFRESH_S,
    PublishedKeys,
    discover_keys,
    fetch_url,
    open_keys,
)
from edgewise.errors import ProtocolError, SetupError


def test_a_new_key_is_found_without_a_restart_and_an_outage_keeps_the_old_ones():
    first, second = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    listed, now_s, fetches = [jwk(first, "ES256", "k1")], [0.0], []

    def fetch():
        fetches.append(1)
        if not listed:
            raise SetupError("the provider is away")
        return key_set(*listed)

    keys = PublishedKeys(fetch, now_s=lambda: now_s[0])
    verifier = JwtVerifier(keys)
    listed.append(jwk(second, "ES256", "k2"))
    for _ in range(5):
        with pytest.raises(ProtocolError):
            verifier.verify(sign(second, "ES256", "k2"))
    assert len(fetches) == 1, "tokens with names nobody knows do not make us fetch"
    now_s[0] += 31
    with pytest.raises(ProtocolError):
        verifier.verify(sign(second, "ES256", "k2"))
    keys.refreshing.join()
    assert verifier.verify(sign(second, "ES256", "k2")).name == "ada"
    listed.clear()
    now_s[0] += REFRESH_S + 1
    verifier.verify(sign(first, "ES256", "k1"))
    keys.refreshing.join()
    assert len(fetches) == 3
    assert verifier.verify(sign(first, "ES256", "k1")).name == "ada"


@pytest.fixture
def provider():
    key = ec.generate_private_key(ec.SECP256R1())

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self):
            here = f"http://127.0.0.1:{self.server.server_port}"
            pages = {
                DISCOVERY: json.dumps({"issuer": here, "jwks_uri": f"{here}/keys"}).encode(),
                "/keys": key_set(jwk(key, "ES256", "k")),
            }
            found = pages.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, *_args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", key
    server.shutdown()
    server.server_close()
    thread.join()


def test_keys_are_found_by_their_address_and_by_their_provider(provider, tmp_path):
    issuer, key = provider
    token = sign(key, "ES256", "k")
    file = tmp_path / "keys.json"
    file.write_bytes(fetch_url(f"{issuer}/keys"))
    for keys in (discover_keys(issuer), open_keys(f"{issuer}/keys"), open_keys(str(file))):
        assert JwtVerifier(keys).verify(token).name == "ada"
    with pytest.raises(SetupError, match="cannot fetch"):
        open_keys(f"{issuer}/nothing")
    with pytest.raises(SetupError, match="https:// only"):
        open_keys("http://login.example/keys")
    with pytest.raises(SetupError, match="calls itself"):
        discover_keys("https://other.example", lambda _url: fetch_url(issuer + DISCOVERY))
    with pytest.raises(SetupError, match="no OpenID configuration"):
        discover_keys("https://other.example", lambda _url: b"{}")
