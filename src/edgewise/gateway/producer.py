"""Parse the idempotency key of a request: producer and sequence. Pure.

    Idempotency-Key: sensor-7/42     producer `sensor-7`, its append number 42; numbers only grow
    Idempotency-Key: 1b9d6bcd-bbfd   any other text: this one request, remembered like a producer

With a key, sending again is harmless: the log remembers its last producers, up to
`LogConfig.producers_max`, and a request with a known key appends nothing and gets the answer it
got the first time. Used by `http`, `websocket` and `openapi`.
"""

from __future__ import annotations

from typing import NamedTuple

KEY_CHARS_MAX = 128
SEQUENCE_MAX = 2**63 - 1


class IdempotencyKey(NamedTuple):
    """Both are empty (`''` and -1) where a request has no key."""

    producer: str = ""
    sequence: int = -1


def parse_idempotency_key(key: str) -> IdempotencyKey:
    """ValueError, with a sentence for the sender, where the key is not valid."""
    if not key:
        return IdempotencyKey()
    if len(key) > KEY_CHARS_MAX:
        raise ValueError(f"longer than {KEY_CHARS_MAX} characters")
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise ValueError("printable ASCII characters only, no space at its ends")
    name, slash, number = key.rpartition("/")
    if not slash or not number.isdigit():
        return IdempotencyKey(f"key:{key}", 0)
    if not name:
        raise ValueError("a producer's name is missing before the '/'")
    sequence = int(number)
    if sequence > SEQUENCE_MAX:
        raise ValueError(f"the sequence is larger than {SEQUENCE_MAX}")
    return IdempotencyKey(name, sequence)
