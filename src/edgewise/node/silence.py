"""How long a stream has been silent, so that its time goes on at the pace of ours. Pure."""

from __future__ import annotations


class Silence:
    """Of one stream: `head` is where its log ends, times are of a clock that never goes back.

    Whatever the moments at which it is asked, the answers add up to what has passed: time does not
    fall behind on a machine that is slow to ask.
    """

    def __init__(self, head: int, now_s: float) -> None:
        self._head, self._since_s = head, now_s

    def lasts_ms(self, head: int, now_s: float) -> int:
        """Since it was asked last; 0 when something came since."""
        if head != self._head:
            self._head, self._since_s = head, now_s
            return 0
        by_ms = int((now_s - self._since_s) * 1000)
        self._since_s += by_ms / 1000
        return by_ms

    def marked(self, head: int) -> None:
        """The log ends behind our own mark."""
        self._head = head
