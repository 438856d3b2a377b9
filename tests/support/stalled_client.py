"""Subscribe to everything and never read: the client that must not slow down the others."""

import socket
from urllib.parse import urlsplit

import msgspec
from websockets.client import ClientProtocol
from websockets.uri import parse_uri

RECEIVE_BUFFER_BYTES = 4096  # so that the server notices soon


def asleep(url: str) -> socket.socket:
    """Speaks by the rules of src/edgewise/wire/SPEC.md, until it falls asleep."""
    address = urlsplit(url)
    sleeper = socket.socket()
    sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    sleeper.connect((address.hostname, address.port))
    protocol = ClientProtocol(parse_uri(f"ws://{address.netloc}/ws"))
    protocol.send_request(protocol.connect())
    sleeper.sendall(b"".join(protocol.data_to_send()))
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += sleeper.recv(1)
    protocol.receive_data(answer)
    assert protocol.handshake_exc is None, protocol.handshake_exc
    for frame in ([1, 1], [3, 1, "#"], [3, 2, "$sys/#"]):  # HELLO, SUBSCRIBE
        protocol.send_binary(msgspec.msgpack.encode(frame))
    sleeper.sendall(b"".join(protocol.data_to_send()))
    return sleeper
