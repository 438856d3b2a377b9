"""Count what a source or sink does, and render the counts for Prometheus. Pure.

Used by every source and sink, and by the `/metrics` page of `http`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from edgewise.log.api import Appended

APPEND_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


@dataclass(slots=True)
class ConnectorStats:
    """Counters of one source or sink since it started; only the bytes in flight go down."""

    accepted: Counter[str] = field(default_factory=Counter)  # events, by stream
    duplicates: Counter[str] = field(default_factory=Counter)  # events the log had already
    refused: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # requests, by stream and reason
    bytes_in: int = 0
    bytes_in_flight: int = 0
    appends: Counter[int] = field(default_factory=Counter)  # by index of bucket
    append_seconds: float = 0.0
    failed: str = ""  # why it stopped by itself or waits; empty while it works

    def observe_append(self, seconds: float) -> None:
        self.appends[bisect_left(APPEND_BUCKETS_S, seconds)] += 1
        self.append_seconds += seconds

    def count_appended(self, stream: str, count: int, got: Appended) -> int:
        """Count the events of one append; returns how many of them the log already had."""
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


def render_prometheus(connectors: Mapping[str, ConnectorStats]) -> str:
    """The text exposition format, version 0.0.4; `connectors` are sources and sinks by name."""
    lines: list[str] = []
    for name, kind, about, samples in _METRICS:
        lines += (f"# HELP {name} {about}", f"# TYPE {name} {kind}")
        for connector, stats in connectors.items():
            label = f'connector="{_escape(connector)}"'
            lines += (f"{name}{sample}" for sample in samples(stats, label))
    return "".join(f"{line}\n" for line in lines)


def _by_stream(counts: Counter[str], connector: str) -> Iterator[str]:
    for stream, count in sorted(counts.items()):
        yield f'{{{connector},stream="{_escape(stream)}"}} {count}'


def _refused(stats: ConnectorStats, connector: str) -> Iterator[str]:
    for (stream, code), count in sorted(stats.refused.items()):
        yield f'{{{connector},stream="{_escape(stream)}",reason="{_escape(code)}"}} {count}'


def _appends(stats: ConnectorStats, connector: str) -> Iterator[str]:
    below = 0
    for index, bound in enumerate(APPEND_BUCKETS_S):
        below += stats.appends[index]
        yield f'_bucket{{{connector},le="{bound}"}} {below}'
    below += stats.appends[len(APPEND_BUCKETS_S)]
    yield f'_bucket{{{connector},le="+Inf"}} {below}'
    yield f"_sum{{{connector}}} {stats.append_seconds:.6f}"
    yield f"_count{{{connector}}} {below}"


# Name, kind, help text, and the samples of one source or sink.
_METRICS: tuple[tuple[str, str, str, Callable[[ConnectorStats, str], Iterable[str]]], ...] = (
    (
        "edgewise_gateway_events_total",
        "counter",
        "Events in the log (sources) or delivered (sinks), by stream.",
        lambda stats, connector: _by_stream(stats.accepted, connector),
    ),
    (
        "edgewise_gateway_duplicates_total",
        "counter",
        "Events sent again that the log already had.",
        lambda stats, connector: _by_stream(stats.duplicates, connector),
    ),
    (
        "edgewise_gateway_refused_total",
        "counter",
        "Requests refused, by stream and reason.",
        _refused,
    ),
    (
        "edgewise_gateway_bytes_total",
        "counter",
        "Bytes of bodies received.",
        lambda stats, connector: [f"{{{connector}}} {stats.bytes_in}"],
    ),
    (
        "edgewise_gateway_failed",
        "gauge",
        "1 while a source or sink is stopped by an error or waits for its log.",
        lambda stats, connector: [f"{{{connector}}} {int(bool(stats.failed))}"],
    ),
    (
        "edgewise_gateway_in_flight_bytes",
        "gauge",
        "Bytes received and not yet durable.",
        lambda stats, connector: [f"{{{connector}}} {stats.bytes_in_flight}"],
    ),
    (
        "edgewise_gateway_append_seconds",
        "histogram",
        "Time of one durable append to a log.",
        _appends,
    ),
)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
