"""Frame WebSocket messages for one connection.

Handshake and receiving are the sans-I/O protocol of the `websockets` library; sending puts two
bytes in front of a ready frame. One message is one frame of the wire protocol. A server's frames
are unmasked and uncompressed, so the same bytes serve every client; deltas do what compression
would. Connections use it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import Protocol, Side, State
from websockets.server import ServerProtocol

from edgewise.edge.topics.change_queue import EncodedRun

try:
    from websockets.speedups import apply_mask
except ImportError:  # the library without its C part
    from websockets.utils import apply_mask

_PLAIN = 0x82  # FIN, no extension bits, binary
_SMALL = [bytes((0x82, size)) for size in range(126)]
_MEDIUM = struct.Struct("!BBH").pack
_LARGE = struct.Struct("!BBQ").pack


PACKED_MAX = 32  # runs whose bytes are kept, each as long as one write


class Packer:
    """Many frames for one write. What goes to many clients is packed once."""

    __slots__ = ("_last", "_packed", "_runs")

    def __init__(self) -> None:
        self._last: object = None
        self._packed = b""
        self._runs: dict[int, tuple[EncodedRun, bytes]] = {}

    def __call__(self, frames: Sequence[bytes]) -> bytes:
        if type(frames) is EncodedRun:
            return self._pack_run(frames)
        if len(frames) > 1:
            return pack(frames)
        if frames[0] is not self._last:
            self._last, self._packed = frames[0], pack(frames)
        return self._packed

    def _pack_run(self, run: EncodedRun) -> bytes:
        known = self._runs.get(id(run))
        if known is None:
            if len(self._runs) >= PACKED_MAX:
                del self._runs[next(iter(self._runs))]
            known = self._runs[id(run)] = (run, pack(run))
        return known[1]


def pack(frames: Sequence[bytes]) -> bytes:
    parts: list[bytes] = []
    for frame in frames:
        size = len(frame)
        if size < 126:
            parts.append(_SMALL[size])
        elif size < 65536:
            parts.append(_MEDIUM(0x82, 126, size))
        else:
            parts.append(_LARGE(0x82, 127, size))
        parts.append(frame)
    return b"".join(parts)


class WebSocket:
    """Bytes in, messages out, bytes to send.

    The library judges the handshake and every frame that is not plain. A plain one (whole, binary,
    masked, not too long), which is nearly each, is only unmasked: that is five times quicker. So
    most connections need no object of the library after their handshake, and have none.
    """

    def __init__(self, message_bytes_max: int) -> None:
        self._protocol: Protocol | None = ServerProtocol(max_size=message_bytes_max)
        self._out: list[bytes] = []  # of a protocol that did its part
        self._bytes_max = message_bytes_max
        self._parts: bytearray | None = None  # of a message in several frames
        self._rest = b""
        self._plain = False  # open, and between two messages
        self.accepted = False
        self.bad_text = False
        self.too_large = 0  # bytes announced for one frame, above the limit; the rest is not read
        self.judged = False  # the library saw something: it may have bytes to send

    @property
    def over(self) -> bool:
        """Closed or failed: nothing may be written but `data_to_send`."""
        return self._protocol is not None and self._protocol.state is not State.OPEN

    def receive(self, data: bytes) -> list[bytes]:
        """Whole binary messages."""
        if self._plain:
            # One plain frame per read is what a client in conversation sends.
            end = len(data)
            if end > 6 and data[0] == _PLAIN:
                short = data[1]
                if short - 0x80 == end - 6 < 126:
                    return [apply_mask(data[6:], data[2:6])]
                if short == 0xFE and (data[2] << 8 | data[3]) == end - 8 <= self._bytes_max:
                    return [apply_mask(data[8:], data[4:8])]
        return self._receive_any(data)

    def _receive_any(self, data: bytes) -> list[bytes]:
        messages: list[bytes] = []
        if self.too_large:
            return messages
        if not self.accepted:
            head, end, data = data.partition(b"\r\n\r\n")
            self._judge(head + end, messages)
            if not self.accepted:
                return messages
        if self._rest:
            data = self._rest + data
        at = 0
        while at < len(data) and not self.over:
            start, size = _extent(data, at)
            if size > self._bytes_max:
                # Not for the library to judge: our own code names the limit to the client.
                self.too_large = size
                return messages
            if start + size > len(data):
                break
            frame = data[at : start + size]
            if frame[0] == _PLAIN and frame[1] & 0x80:
                if self._parts is not None:
                    self._judge(frame, messages)
                else:
                    messages.append(
                        apply_mask(frame[start - at :], frame[start - at - 4 : start - at])
                    )
            else:
                self._judge(frame, messages)
            at = start + size
        self._rest = data[at:]
        idle = not self._rest and self._parts is None and not self.over
        self._plain = idle and self._bytes_max >= 126
        return messages

    def data_to_send(self) -> list[bytes]:
        """Handshake, pongs and closes; an empty item means: end the stream."""
        self.judged = False
        out, self._out = self._out, []
        return out if self._protocol is None else out + self._protocol.data_to_send()

    def close(self, code: int, reason: str) -> None:
        self._plain = False
        protocol = self._library()
        if protocol.state is State.OPEN:
            protocol.send_close(code, reason.encode()[:120].decode(errors="ignore"))

    def release(self) -> None:
        """Nothing comes any more. The library's protocol and its parser refer to each other, and
        so do what went wrong and the trace of it.
        """
        protocol, self._protocol = self._protocol, None
        if protocol is None:
            return
        self._out += protocol.data_to_send()
        protocol.parser.close()
        wrong: BaseException | None = protocol.handshake_exc or protocol.parser_exc
        while wrong is not None:
            wrong.__traceback__ = None
            wrong = wrong.__cause__ or wrong.__context__

    def _library(self) -> Protocol:
        if self._protocol is None:
            self._protocol = Protocol(Side.SERVER, max_size=self._bytes_max)
        return self._protocol

    def _judge(self, data: bytes, messages: list[bytes]) -> None:
        self.judged = True
        protocol = self._library()
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Request):
                assert isinstance(protocol, ServerProtocol), "a request is the first thing"
                response = protocol.accept(event)
                self.accepted = response.status_code == 101
                protocol.send_response(response)
                if self.accepted:
                    self.release()
            elif isinstance(event, Frame):
                self._frame(event, messages)

    def _frame(self, frame: Frame, messages: list[bytes]) -> None:
        if frame.opcode is Opcode.TEXT:
            self.bad_text = True
            return
        if frame.opcode is Opcode.BINARY:
            self._parts = bytearray()
        elif frame.opcode is not Opcode.CONT or self._parts is None:
            return
        # The protocol object bounds the sum of the parts by max_size.
        self._parts += frame.data
        if frame.fin:
            messages.append(bytes(self._parts))
            self._parts = None


def _extent(data: bytes, at: int) -> tuple[int, int]:
    """Where the payload of the frame at `at` starts and how long it is.

    What is not there yet counts as further away than any data: the caller waits for more.
    """
    if len(data) - at < 2:
        return len(data) + 1, 0
    size, start = data[at + 1] & 0x7F, at + 2
    if size >= 126:
        wide = 2 if size == 126 else 8
        if len(data) - start < wide:
            return len(data) + 1, 0
        size = int.from_bytes(data[start : start + wide], "big")
        start += wide
    return start + (4 if data[at + 1] & 0x80 else 0), size
