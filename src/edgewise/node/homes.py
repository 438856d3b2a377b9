"""Where the logs of an app live: in its data directory, or where `--log` says.

    --log kafka://host:port/shop             all streams of the app, topics `shop-<stream>`
    --log Orders=kafka://host:port/orders    this stream, in exactly this topic
    --log /fast/disk                         all streams, in directories `/fast/disk/<stream>`

A word for one stream counts before one for all.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edgewise.errors import SetupError
from edgewise.log.places import broker_and_topic
from edgewise.plan.nodes import App

WORDS_MAX = 1024
SPARK_READS = (
    "Spark reads it through the data source 'edgewise', not its Kafka connector, which counts "
    "records where the engine counts events"
)


@dataclass(frozen=True, slots=True)
class Homes:
    """`everywhere` is '' for the data directory."""

    everywhere: str = ""
    streams: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, words: Iterable[str], app: App) -> Homes:
        """SetupError where a word names no place or no stream with a log."""
        everywhere = ""
        streams: dict[str, str] = {}
        known = [s.name for s in (*app.inputs, *app.outputs)]
        for word in list(words)[:WORDS_MAX]:
            name, equals, place = word.partition("=")
            if not equals:
                name, place = "", word
            broker_and_topic(place)  # raises where a Kafka address is none
            if not place or ("://" in place and not place.startswith("kafka://")):
                raise SetupError(
                    f"--log {word}: a log lives in a directory or in kafka://host:port/topic"
                )
            if not equals and everywhere:
                raise SetupError(f"--log {word}: the logs of the app live in {everywhere} already")
            if equals and name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
                raise SetupError(f"--log {word}: the app has no stream '{name}'; {hint}")
            if equals:
                streams[name] = place
            else:
                everywhere = place
        return cls(everywhere, streams)

    def place(self, stream: str, default: Path) -> str:
        if stream in self.streams:
            return self.streams[stream]
        if not self.everywhere:
            return str(default)
        join = "-" if broker_and_topic(self.everywhere)[0] else "/"
        return f"{self.everywhere.rstrip('/')}{join}{stream}"

    def words(self) -> list[str]:
        """What `of` understands again, for another process."""
        return [*filter(None, [self.everywhere]), *(f"{s}={p}" for s, p in self.streams.items())]

    def lines(self, app: App) -> list[str]:
        """For `explain`: logs that live elsewhere, and how Spark reads those in Kafka."""
        said = []
        for stream in (*app.inputs, *app.outputs):
            place = self.place(stream.name, Path())
            if place == str(Path()):
                continue
            read = stream in app.inputs and broker_and_topic(place)[0]
            said.append(f"  {stream.name}: {place}{f'; {SPARK_READS}' if read else ''}")
        return ["logs outside the data directory:", *said] if said else []
