"""A day of logins, played fast: the demo's world.

One second of ours is one minute of theirs, so the ten-minute window of the query slides in ten
seconds and a day passes in twenty-four minutes. People log in more by day than by night; now and
then somebody tries passwords from one address as fast as the door lets them.
"""

from __future__ import annotations

import argparse
import http.client
import math
import random
import signal
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from edgewise.node.children import end_with_parent

SPEED = 60  # seconds of event time in one second of ours
EVENTS_PER_S = 2_000
BATCHES_PER_S = 20
ADDRESSES = 60_000  # so many that no honest one reaches ten logins in ten minutes
BURST_EVERY_S = (6.0, 12.0)
BURST_LASTS_S = (3.0, 7.0)
BURST_LOGINS_PER_S = 12
STRANGERS = ("192.0.2", "198.51.100", "203.0.113")  # nobody's: kept for documentation
DAY_MS = 24 * 3600 * 1000
RETRY_S = 0.2
CITIES = (
    "amsterdam", "athens", "berlin", "bogota", "cairo", "chennai", "dublin", "hanoi", "helsinki",
    "istanbul", "jakarta", "kyoto", "lagos", "lima", "lisbon", "london", "madrid", "manila",
    "mexico-city", "milan", "montreal", "mumbai", "nairobi", "oslo", "paris", "prague", "quito",
    "riga", "rome", "santiago", "seoul", "shanghai", "singapore", "sofia", "sydney", "tallinn",
    "tokyo", "toronto", "vienna", "warsaw",
)  # fmt: skip


class Day:
    """Time and chance are arguments: the same seed and the same seconds give the same logins."""

    def __init__(self, seed: int, midnight_ms: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 a game, not a secret
        self._midnight_ms = midnight_ms
        self._bursts: list[tuple[str, str, float]] = []  # address, city, end
        self._next_burst_s = 3.0

    def event_time_ms(self, elapsed_s: float) -> int:
        return self._midnight_ms + int(elapsed_s * 1000) * SPEED

    def logins(self, elapsed_s: float, lasting_s: float) -> Iterator[tuple[int, str, str]]:
        """(event time, address, city) of everything in that stretch of our time, in order."""
        self._plan_bursts(elapsed_s)
        honest = self._count(EVENTS_PER_S * daylight(elapsed_s) * lasting_s)
        made = [self._somebody() for _ in range(honest)]
        for ip, city, _ in self._bursts:
            made += [(ip, city)] * self._count(BURST_LOGINS_PER_S * lasting_s)
        self._dice.shuffle(made)
        for index, (ip, city) in enumerate(made):
            moment = elapsed_s + lasting_s * index / len(made)
            yield self.event_time_ms(moment), ip, city

    def _plan_bursts(self, elapsed_s: float) -> None:
        self._bursts = [b for b in self._bursts if b[2] > elapsed_s]
        while self._next_burst_s <= elapsed_s:
            ip = f"{self._dice.choice(STRANGERS)}.{self._dice.randint(1, 254)}"
            city = self._dice.choice(CITIES)
            self._bursts.append((ip, city, elapsed_s + self._dice.uniform(*BURST_LASTS_S)))
            self._next_burst_s += self._dice.uniform(*BURST_EVERY_S)

    def _count(self, expected: float) -> int:
        whole = int(expected)
        return whole + (self._dice.random() < expected - whole)

    def _somebody(self) -> tuple[str, str]:
        who = self._dice.randrange(ADDRESSES)
        return f"10.{who >> 16}.{who >> 8 & 255}.{who & 255}", CITIES[who % len(CITIES)]


def daylight(elapsed_s: float) -> float:
    """How busy it is: 1 on average over the day, least at four in the morning."""
    hour = elapsed_s * SPEED / 3600 % 24
    return 1 + 0.15 * math.sin((hour - 10) / 24 * 2 * math.pi)


class Sender:
    """Posts batches through the HTTP door, one connection, and keeps trying while it is closed."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._path = parts.path
        self._connection: http.client.HTTPConnection | None = None

    def send(self, body: bytes) -> bool:
        """True when the door took it; False when it should be tried again later."""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=5)
            self._connection.request(
                "POST", self._path, body, {"Content-Type": "application/x-ndjson"}
            )
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            self._connection = None
            return False
        return answer.status == http.HTTPStatus.OK


def play(url: str, seed: int) -> None:
    """Until told to stop. A batch the door did not take is sent again, so nothing is lost."""
    now = time.time()
    day = Day(seed, int(now * 1000) // DAY_MS * DAY_MS)
    sender = Sender(url)
    began = time.monotonic()
    lasting = 1 / BATCHES_PER_S
    encode = msgspec.json.encode
    for tick in range(sys.maxsize):
        elapsed = tick * lasting
        behind = time.monotonic() - began - elapsed
        if behind < 0:
            time.sleep(-behind)
        body = b"\n".join(
            encode({"ts": ts, "data": {"ip": ip, "cityId": city}})
            for ts, ip, city in day.logins(elapsed, lasting)
        )
        while not sender.send(body):
            time.sleep(RETRY_S)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="edgewise.node.logins")
    parser.add_argument("url")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    end_with_parent()
    play(arguments.url, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
