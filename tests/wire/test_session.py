import pytest

from edgewise.errors import ProtocolError
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.session import TRANSITIONS, PeerSide, SessionGrammar, State


def pair():
    return SessionGrammar(PeerSide.CLIENT), SessionGrammar(PeerSide.SERVER)


def carry(sender, receiver):
    return [receiver.receive(data) for data in sender.data_to_send()]


def test_a_conversation_from_hello_to_close():
    client, server = pair()
    client.send(frames.Hello(1))
    assert carry(client, server) == [frames.Hello(1)]
    server.send(frames.Welcome(1, "s", 0))
    carry(server, client)
    assert (client.state, server.state) == (State.OPEN, State.OPEN)
    server.end(ProtocolCode.SHUTDOWN, "bye")
    carry(server, client)
    assert client.close == server.close == frames.Close(3000, "bye")
    assert client.state is server.state is State.CLOSED


def test_the_first_frame_must_be_hello():
    server = SessionGrammar(PeerSide.SERVER)
    with pytest.raises(ProtocolError) as caught:
        server.receive(codec.encode(frames.Ping(1)))
    assert caught.value.code == ProtocolCode.HELLO_EXPECTED
    assert server.close.code == ProtocolCode.HELLO_EXPECTED


def test_an_illegal_frame_closes_and_later_frames_are_dropped():
    server = SessionGrammar(PeerSide.SERVER)
    server.receive(codec.encode(frames.Hello(1)))
    with pytest.raises(ProtocolError):
        server.receive(codec.encode(frames.Hello(1)))
    assert server.receive(codec.encode(frames.Ping(1))) is None
    assert len(server.data_to_send()) == 1
    server.send(frames.Pong(1))
    assert server.data_to_send() == []


def test_nothing_leads_out_of_closed():
    assert all(not states[State.CLOSED] for states in TRANSITIONS.values())
