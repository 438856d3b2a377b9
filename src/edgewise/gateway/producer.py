"""Who sends, and its how-manieth append this is: what makes sending again harmless. Pure.

    Idempotency-Key: sensor-7/42     producer `sensor-7`, its append number 42; numbers only grow
    Idempotency-Key: 1b9d6bcd-bbfd   any other text: this one request, remembered like a producer

The log remembers its last producers up to a limit (`LogConfig.producers_max`); within it a request
that is sent again appends nothing and gets the answer it got the first time.
"""

from __future__ import annotations

from typing import NamedTuple

KEY_CHARS_MAX = 128
SEQUENCE_MAX = 2**63 - 1


class Producer(NamedTuple):
    name: str = ""
    sequence: int = -1


def producer_of(key: str) -> Producer:
    """ValueError, with a sentence for the sender, where the key cannot be one."""
    if not key:
        return Producer()
    if len(key) > KEY_CHARS_MAX:
        raise ValueError(f"longer than {KEY_CHARS_MAX} characters")
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise ValueError("printable ASCII characters only, no space at its ends")
    name, slash, number = key.rpartition("/")
    if not slash or not number.isdigit():
        return Producer(f"key:{key}", 0)
    if not name:
        raise ValueError("a producer's name is missing before the '/'")
    sequence = int(number)
    if sequence > SEQUENCE_MAX:
        raise ValueError(f"the sequence is larger than {SEQUENCE_MAX}")
    return Producer(name, sequence)
