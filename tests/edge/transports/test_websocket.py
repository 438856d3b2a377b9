import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from edgewise.edge.topics.change_queue import EncodedRun, TopicChange
from edgewise.edge.transports.websocket import PACKED_MAX, Packer, WebSocket, pack


def add_connection(limit=100_000):
    client, server = ClientProtocol(parse_uri("ws://h/ws"), max_size=None), WebSocket(limit)
    client.send_request(client.connect())
    assert server.receive(b"".join(client.data_to_send())) == []
    for data in server.data_to_send():
        client.receive_data(data)
    client.events_received()
    assert server.accepted
    return client, server


@given(st.lists(st.integers(0, 70_000), max_size=4))
def test_packed_frames_are_what_a_websocket_client_reads(sizes):
    client, _ = add_connection()
    messages = [bytes([i % 256]) * size for i, size in enumerate(sizes)]
    client.receive_data(pack(messages))
    assert [bytes(e.data) for e in client.events_received()] == messages


RUNS = [(b"a",), (b"b",), (b"a", b"b"), (b"b", b"a"), (b"a" * 300,)]
HEAD = TopicChange(1, 0, 1, 0, value=b"", arrived=b"")


@given(st.lists(st.sampled_from([*RUNS, *(EncodedRun(frames, HEAD) for frames in RUNS)])))
def test_what_goes_to_many_clients_in_turn_is_packed_once_and_rightly(turns):
    packer = Packer()
    for frames in turns:
        assert packer(frames) == pack(frames)
        assert packer(frames) is packer(frames) or (type(frames) is tuple and len(frames) > 1)
        assert packer([*frames, b"c"]) == pack([*frames, b"c"])


def test_the_bytes_of_a_bounded_number_of_runs_are_kept():
    packer = Packer()
    for i in range(3 * PACKED_MAX):
        run = EncodedRun([b"%d" % i], HEAD)
        assert packer(run) is packer(run) == pack(run)
    assert len(packer._runs) == PACKED_MAX


def test_fragments_are_joined_and_text_is_noticed():
    client, server = add_connection()
    client.send_frame(Frame(Opcode.BINARY, b"ab", fin=False))
    client.send_frame(Frame(Opcode.CONT, b"cd", fin=True))
    assert server.receive(b"".join(client.data_to_send())) == [b"abcd"]
    client.send_text(b"hello")
    assert server.receive(b"".join(client.data_to_send())) == []
    assert server.bad_text


def test_parts_that_bring_nothing_keep_nothing():
    client, server = add_connection()
    client.send_frame(Frame(Opcode.BINARY, b"a", fin=False))
    for _ in range(1000):
        client.send_frame(Frame(Opcode.CONT, b"", fin=False))
    assert server.receive(b"".join(client.data_to_send())) == []
    assert len(server._parts) == 1
    client.send_frame(Frame(Opcode.CONT, b"b", fin=True))
    assert server.receive(b"".join(client.data_to_send())) == [b"ab"]


def test_a_message_above_the_limit_ends_the_connection():
    client, server = add_connection(limit=10)
    client.send_binary(b"x" * 11)
    assert server.receive(b"".join(client.data_to_send())) == []
    assert server.too_large == 11
    client.send_binary(b"x")
    assert server.receive(b"".join(client.data_to_send())) == []


def test_close_carries_code_and_reason():
    client, server = add_connection()
    server.close(3000, "bye " * 100)
    client.receive_data(b"".join(server.data_to_send()))
    assert client.close_rcvd.code == 3000


@given(st.data())
def test_any_frames_in_any_cuts_are_what_the_library_alone_would_read(data):
    """The quick way and the library agree, message by message."""
    client, server = add_connection(limit=1000)
    sent = []
    for _ in range(data.draw(st.integers(0, 6))):
        body = data.draw(st.binary(max_size=300))
        how = data.draw(st.sampled_from(["whole", "parts", "ping"]))
        if how == "whole":
            client.send_binary(body)
        elif how == "parts":
            client.send_frame(Frame(Opcode.BINARY, body[:5], fin=False))
            client.send_ping(b"between")
            client.send_frame(Frame(Opcode.CONT, body[5:], fin=True))
        else:
            client.send_ping(body[:100])
        if how != "ping":
            sent.append(body)
    stream = b"".join(client.data_to_send())
    got = []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        got += server.receive(stream[:cut])
        stream = stream[cut:]
    assert got == sent
    assert not server.over


@pytest.mark.parametrize(
    "data",
    [
        b"\x82\x05hello",  # not masked
        b"\xc2\x80\0\0\0\0",  # an extension bit nobody asked for
        b"\x83\x80\0\0\0\0",  # an opcode that does not exist
        b"\x80\x80\0\0\0\0",  # a continuation of nothing
        b"\x82\xff" + (2**62).to_bytes(8, "big") + b"\0\0\0\0",  # longer than allowed
    ],
)
def test_frames_that_are_wrong_end_the_connection(data):
    _, server = add_connection(limit=1000)
    assert server.receive(data) == []
    assert server.over or server.too_large
