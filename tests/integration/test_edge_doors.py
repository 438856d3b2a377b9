"""Who gets in: tokens of every algorithm, a certificate, pages of other origins, and no key."""

import json
import socket
import ssl
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.integration.test_edge_walk import APP, WAIT_S, awaited, until, updates
from tests.support.certificate import certificate
from tests.support.node_process import NodeProcess

from edgewise.client.aio import connect
from edgewise.edge.access.auth import JwtVerifier
from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.errors import ProtocolError
from edgewise.node.commands.publish_tail import tail
from edgewise.wire.codes import ProtocolCode

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SECRET = "a secret that is long enough for everyone"


def token(key, algorithm, seconds=60, **claims):
    return jwt.encode({"sub": "p", "exp": time.time() + seconds, **claims}, key, algorithm)


def keys(folder):
    """A verifying key in a file and a signing key, by algorithm."""
    made = {"HS256": (SECRET, SECRET)}
    for algorithm, private in (
        ("RS256", rsa.generate_private_key(public_exponent=65537, key_size=2048)),
        ("EdDSA", ed25519.Ed25519PrivateKey.generate()),
    ):
        public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        made[algorithm] = (public.decode(), private)
    for algorithm, (verifying, _) in made.items():
        (folder / algorithm).write_text(verifying)
    return {algorithm: signing for algorithm, (_, signing) in made.items()}


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "EdDSA"])
def test_a_token_opens_what_it_says_and_no_more(tmp_path, algorithm):
    signing = keys(tmp_path)[algorithm]
    verifier = JwtVerifier((tmp_path / algorithm).read_bytes())

    async def scenario():
        edge = Edge(EdgeConfig(verifier=verifier, sweep_ms=20))
        port = await edge.start()
        url = f"ws://127.0.0.1:{port}/ws"
        edge.publish("open/a", {"v": 1}, offset=0, at_us=1)
        edge.publish("shut/a", {"v": 1}, offset=0, at_us=1)
        mine = token(signing, algorithm, read=["open/#"], publish=["open/+"])
        async with connect(url, token=mine) as client:
            (update,) = await updates(client.subscribe("#"), lambda _: True)
            assert update.path == "open/a"
            await client.publish("open/b", {"v": 2})
            for work in (client.publish("shut/a", {}), client.request("double/x", 1)):
                with pytest.raises(ProtocolError) as refused:
                    await work
                assert refused.value.code == ProtocolCode.FORBIDDEN
        asked = []

        def renewed():
            asked.append(1)
            return token(signing, algorithm, 1.2 if len(asked) == 1 else 60, read=["#"])

        async with connect(url, token=renewed) as client:
            await client.opened.wait()
            await until(lambda: len(asked) > 1 and client.state == "open")
        async with connect(url, token=mine[:-4] + "AAAA") as client:
            await client.settled()
            assert client.error.code == ProtocolCode.UNAUTHENTICATED
        await edge.stop()

    awaited(scenario)


def test_a_house_with_a_key_and_a_certificate(tmp_path):
    keys(tmp_path)
    cert, key = certificate(tmp_path)
    revoked = tmp_path / "revoked"
    revoked.write_text("")
    (tmp_path / "app.siddhi").write_text(APP)
    node = NodeProcess(
        *("run", tmp_path / "app.siddhi", "--data", tmp_path / "data", "--engine", "embedded"),
        *("--http-port", "0", "--edge-port", "0", "--edge-host", "0.0.0.0"),
        *("--jwt-key", tmp_path / "HS256", "--revoked", revoked),
        *("--tls-cert", cert, "--tls-key", key, "--origin", "https://app.example"),
    )
    try:
        port = int(node.said(r"edge +https://0\.0\.0\.0:(\d+)/")[1])
        url = f"wss://127.0.0.1:{port}/ws"
        mine = token(SECRET, "HS256", read=["$sys/#"])

        async def scenario():
            for transport in ("websocket", "sse", "poll"):
                async with connect(url, token=mine, ca=cert, transports=(transport,)) as client:
                    await updates(client.subscribe("$sys/edge"), lambda _: True)
            async with connect(url, token=mine, ca=cert) as client:
                await client.opened.wait()
                revoked.write_text("p\n")
                await until(lambda: client.state == "closed")
                assert client.error.code == ProtocolCode.UNAUTHENTICATED
            revoked.write_text("")

        awaited(scenario)
        (line,) = tail(url, "$sys/edge", 1, mine, cert)
        assert json.loads(line)["topic"] == "$sys/edge"
        with pytest.raises(ProtocolError, match="token"):
            next(tail(url, "$sys/edge", 1, "", cert))
        assert handshake(port, cert, "https://evil.example") == 403
        assert handshake(port, cert, "https://app.example") == 101
    finally:
        node.stop()


def handshake(port, ca, origin):
    """The status a page of that origin sees."""
    trust = ssl.create_default_context(cafile=ca)
    with (
        socket.create_connection(("127.0.0.1", port)) as raw,
        trust.wrap_socket(raw, server_hostname="127.0.0.1") as sock,
    ):
        sock.sendall(
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: {origin}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        return int(sock.recv(1000).split(b" ")[1])


def test_off_loopback_without_a_key_nothing_starts(tmp_path):
    (tmp_path / "app.siddhi").write_text(APP)
    node = NodeProcess(
        *("run", tmp_path / "app.siddhi", "--data", tmp_path / "data", "--engine", "embedded"),
        *("--http-port", "0", "--edge-port", "0", "--edge-host", "0.0.0.0"),
    )
    assert node.process.wait(WAIT_S) == 2
    node.said("can be reached from outside")
