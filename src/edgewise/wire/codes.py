"""Number the reasons a session ends or a request fails; the range alone decides about retry.

| range       | carried by | the client                                              |
|-------------|------------|---------------------------------------------------------|
| 3000 - 3499 | CLOSE      | connects again with back-off and resumes                |
| 3500 - 3999 | CLOSE      | stops: trying again would fail the same way             |
| 4000 - 4499 | ERROR      | may repeat the same request later                       |
| 4500 - 4999 | ERROR      | must not repeat the request unchanged                   |

SPEC.md prints this table; a test keeps the two equal.
"""

from __future__ import annotations

import enum


class ProtocolCode(enum.IntEnum):
    """Numbers are the protocol, names are ours."""

    SHUTDOWN = 3000
    OVERLOADED = 3001
    IDLE = 3002
    HANDSHAKE_TIMEOUT = 3003
    UNREADABLE = 3004
    TOKEN_EXPIRED = 3005
    LOST = 3006

    BAD_FRAME = 3500
    FRAME_TOO_LARGE = 3501
    HELLO_EXPECTED = 3502
    VERSION_UNKNOWN = 3503
    UNAUTHENTICATED = 3504
    TOO_MANY_SESSIONS = 3505
    DONE = 3506

    BUSY = 4000
    QUEUE_FULL = 4001
    NO_ANSWER = 4002

    BAD_SELECTOR = 4500
    BAD_PATH = 4501
    FORBIDDEN = 4502
    TOO_MANY_SUBSCRIPTIONS = 4503
    TOO_MANY_TOPICS = 4504
    NOT_FOUND = 4505
    BAD_VALUE = 4506
    DUPLICATE_ID = 4507


MEANING: dict[ProtocolCode, str] = {
    ProtocolCode.SHUTDOWN: "the server goes away",
    ProtocolCode.OVERLOADED: "the server takes no new sessions now",
    ProtocolCode.IDLE: "nothing was heard from the client for too long",
    ProtocolCode.HANDSHAKE_TIMEOUT: "no HELLO arrived in time",
    ProtocolCode.UNREADABLE: "the client asks for answers but does not read them",
    ProtocolCode.TOKEN_EXPIRED: "the token ran out; connect with a new one",
    ProtocolCode.LOST: "the transport broke (never sent, only reported by clients)",
    ProtocolCode.BAD_FRAME: "bytes that are no frame, or a frame that is not allowed here",
    ProtocolCode.FRAME_TOO_LARGE: "a frame above the limit in WELCOME",
    ProtocolCode.HELLO_EXPECTED: "the first frame must be HELLO",
    ProtocolCode.VERSION_UNKNOWN: "a protocol version the server does not speak",
    ProtocolCode.UNAUTHENTICATED: "no token, or one that does not verify",
    ProtocolCode.TOO_MANY_SESSIONS: "this principal has all the sessions it may have",
    ProtocolCode.DONE: "the client said goodbye",
    ProtocolCode.BUSY: "the server cannot do this now",
    ProtocolCode.QUEUE_FULL: "the queue of a topic that may not be conflated is full",
    ProtocolCode.NO_ANSWER: "nobody answered the request in time",
    ProtocolCode.BAD_SELECTOR: "a selector that does not parse",
    ProtocolCode.BAD_PATH: "a path that does not parse",
    ProtocolCode.FORBIDDEN: "the principal may not do this with this path",
    ProtocolCode.TOO_MANY_SUBSCRIPTIONS: "the session has all the subscriptions it may have",
    ProtocolCode.TOO_MANY_TOPICS: "the selection or the tree has all the topics it may have",
    ProtocolCode.NOT_FOUND: "no such topic, subscription or request handler",
    ProtocolCode.BAD_VALUE: "a value that this topic does not take",
    ProtocolCode.DUPLICATE_ID: "an id that is still in use",
}


def may_retry(code: int) -> bool:
    """Whether a client whose session was closed with `code` should connect again.

    Anything outside the table (a proxy's close, a lost network) is worth another try.
    """
    return not 3500 <= code < 4000
