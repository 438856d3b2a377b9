"""Send logins to the demo's node: a day of them, played fast.

One second is one minute of event time, so the ten-minute window of the query slides in ten seconds
and a day passes in twenty-four minutes. People log in more by day than by night; now and then
somebody tries passwords from one address. A child process of `edgewise demo`.
"""

from __future__ import annotations

import http.client
import math
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from edgewise.node.processes.children import exit_with_parent, read_config

SPEED = 60  # seconds of event time per second
EVENTS_PER_S = 2_000
BATCHES_PER_S = 20
ADDRESSES = 60_000  # so many that no ordinary one reaches ten logins in ten minutes
BURST_EVERY_S = (6.0, 12.0)
BURST_LASTS_S = (3.0, 7.0)
BURST_LOGINS_PER_S = 12
BURST_NETWORKS = ("192.0.2", "198.51.100", "203.0.113")  # reserved for documentation
DAY_MS = 24 * 3600 * 1000
RETRY_S = 0.2
CITIES = (
    "amsterdam", "athens", "berlin", "bogota", "cairo", "chennai", "dublin", "hanoi", "helsinki",
    "istanbul", "jakarta", "kyoto", "lagos", "lima", "lisbon", "london", "madrid", "manila",
    "mexico-city", "milan", "montreal", "mumbai", "nairobi", "oslo", "paris", "prague", "quito",
    "riga", "rome", "santiago", "seoul", "shanghai", "singapore", "sofia", "sydney", "tallinn",
    "tokyo", "toronto", "vienna", "warsaw",
)  # fmt: skip


class LoginGenerator:
    """The same seed and the same times give the same logins."""

    def __init__(self, seed: int, midnight_ms: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 a game, not a secret
        self._midnight_ms = midnight_ms
        self._bursts: list[tuple[str, str, float]] = []  # address, city, end
        self._next_burst_s = 3.0

    def event_time_ms(self, elapsed_s: float) -> int:
        return self._midnight_ms + int(elapsed_s * 1000) * SPEED

    def logins(self, elapsed_s: float, lasting_s: float) -> Iterator[tuple[int, str, str]]:
        """(event time, address, city) of all logins in this interval, in order."""
        self._plan_bursts(elapsed_s)
        ordinary = self._round_randomly(EVENTS_PER_S * traffic_level(elapsed_s) * lasting_s)
        logins = [self._pick_login() for _ in range(ordinary)]
        for ip, city, _ in self._bursts:
            logins += [(ip, city)] * self._round_randomly(BURST_LOGINS_PER_S * lasting_s)
        self._random.shuffle(logins)
        for index, (ip, city) in enumerate(logins):
            moment = elapsed_s + lasting_s * index / len(logins)
            yield self.event_time_ms(moment), ip, city

    def _plan_bursts(self, elapsed_s: float) -> None:
        self._bursts = [b for b in self._bursts if b[2] > elapsed_s]
        while self._next_burst_s <= elapsed_s:
            ip = f"{self._random.choice(BURST_NETWORKS)}.{self._random.randint(1, 254)}"
            city = self._random.choice(CITIES)
            self._bursts.append((ip, city, elapsed_s + self._random.uniform(*BURST_LASTS_S)))
            self._next_burst_s += self._random.uniform(*BURST_EVERY_S)

    def _round_randomly(self, expected: float) -> int:
        whole = int(expected)
        return whole + (self._random.random() < expected - whole)

    def _pick_login(self) -> tuple[str, str]:
        who = self._random.randrange(ADDRESSES)
        return f"10.{who >> 16}.{who >> 8 & 255}.{who & 255}", CITIES[who % len(CITIES)]


def traffic_level(elapsed_s: float) -> float:
    """How many log in at this time: 1 on average over the day, least at four in the morning."""
    hour = elapsed_s * SPEED / 3600 % 24
    return 1 + 0.15 * math.sin((hour - 10) / 24 * 2 * math.pi)


class EventSender:
    """Posts batches to the ingest endpoint over one connection."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._path = parts.path
        self._connection: http.client.HTTPConnection | None = None

    def send(self, body: bytes) -> bool:
        """True when the events are durable; False where it should be tried again later."""
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


def send_logins(url: str, seed: int) -> None:
    """Until the process ends. A batch that was not accepted is sent again."""
    now = time.time()
    generator = LoginGenerator(seed, int(now * 1000) // DAY_MS * DAY_MS)
    sender = EventSender(url)
    started_s = time.monotonic()
    lasting = 1 / BATCHES_PER_S
    encode = msgspec.json.encode
    for tick in range(sys.maxsize):
        elapsed = tick * lasting
        behind = time.monotonic() - started_s - elapsed
        if behind < 0:
            time.sleep(-behind)
        body = b"\n".join(
            encode({"ts": ts, "data": {"ip": ip, "cityId": city}})
            for ts, ip, city in generator.logins(elapsed, lasting)
        )
        while not sender.send(body):
            time.sleep(RETRY_S)


@dataclass(frozen=True, slots=True)
class DemoDataConfig:
    url: str  # of the stream
    seed: int = 1


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    config = read_config(DemoDataConfig)
    exit_with_parent()
    send_logins(config.url, config.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
