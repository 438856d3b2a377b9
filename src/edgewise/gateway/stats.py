"""What a door counts, and how Prometheus reads it. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from edgewise.log.api import Appended

APPEND_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


@dataclass(slots=True)
class DoorStats:
    """Counters of one door since it opened; they only grow, except what is in flight."""

    accepted: Counter[str] = field(default_factory=Counter)  # events, by stream
    duplicates: Counter[str] = field(default_factory=Counter)  # events the log had already
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # requests, stream and why
    bytes_in: int = 0
    bytes_in_flight: int = 0
    appends: Counter[int] = field(default_factory=Counter)  # by index of bucket
    append_seconds: float = 0.0
    failed: str = ""  # why the door stopped by itself; empty while it works

    def appended(self, seconds: float) -> None:
        self.appends[bisect_left(APPEND_BUCKETS_S, seconds)] += 1
        self.append_seconds += seconds

    def took(self, stream: str, count: int, got: Appended) -> int:
        """Counts the events of one answered append; answers how many the log had already."""
        known = count if got.duplicate else count - (got.end - got.first)
        self.accepted[stream] += count - known
        if known:
            self.duplicates[stream] += known
        return known

    @property
    def accepted_total(self) -> int:
        return sum(self.accepted.values())

    @property
    def refused_total(self) -> int:
        return sum(self.refused.values())


def prometheus(stats: DoorStats, door: str) -> str:
    """The text exposition format, version 0.0.4."""
    return "".join(f"{line}\n" for line in _lines(stats, f'door="{_escape(door)}"'))


def _lines(stats: DoorStats, door: str) -> Iterator[str]:
    yield "# HELP edgewise_gateway_events_total Events in the log, by stream."
    yield "# TYPE edgewise_gateway_events_total counter"
    for stream, count in sorted(stats.accepted.items()):
        yield f'edgewise_gateway_events_total{{{door},stream="{_escape(stream)}"}} {count}'
    yield "# HELP edgewise_gateway_duplicates_total Events sent again that the log had already."
    yield "# TYPE edgewise_gateway_duplicates_total counter"
    for stream, count in sorted(stats.duplicates.items()):
        yield f'edgewise_gateway_duplicates_total{{{door},stream="{_escape(stream)}"}} {count}'
    yield "# HELP edgewise_gateway_refused_total Requests refused, by stream and reason."
    yield "# TYPE edgewise_gateway_refused_total counter"
    for (stream, code), count in sorted(stats.refused.items()):
        labels = f'{door},stream="{_escape(stream)}",reason="{_escape(code)}"'
        yield f"edgewise_gateway_refused_total{{{labels}}} {count}"
    yield "# HELP edgewise_gateway_bytes_total Bytes of bodies received."
    yield "# TYPE edgewise_gateway_bytes_total counter"
    yield f"edgewise_gateway_bytes_total{{{door}}} {stats.bytes_in}"
    yield "# HELP edgewise_gateway_failed 1 when the door stopped by itself."
    yield "# TYPE edgewise_gateway_failed gauge"
    yield f"edgewise_gateway_failed{{{door}}} {int(bool(stats.failed))}"
    yield "# HELP edgewise_gateway_in_flight_bytes Bytes received and not yet durable."
    yield "# TYPE edgewise_gateway_in_flight_bytes gauge"
    yield f"edgewise_gateway_in_flight_bytes{{{door}}} {stats.bytes_in_flight}"
    yield "# HELP edgewise_gateway_append_seconds Time of one durable append to a log."
    yield "# TYPE edgewise_gateway_append_seconds histogram"
    below = 0
    for index, bound in enumerate(APPEND_BUCKETS_S):
        below += stats.appends[index]
        yield f'edgewise_gateway_append_seconds_bucket{{{door},le="{bound}"}} {below}'
    below += stats.appends[len(APPEND_BUCKETS_S)]
    yield f'edgewise_gateway_append_seconds_bucket{{{door},le="+Inf"}} {below}'
    yield f"edgewise_gateway_append_seconds_sum{{{door}}} {stats.append_seconds:.6f}"
    yield f"edgewise_gateway_append_seconds_count{{{door}}} {below}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
