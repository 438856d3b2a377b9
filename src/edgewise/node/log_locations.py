"""Parse `--log`: where the logs of an app are, if not in its data directory.

    --log kafka://host:port/shop             all streams of the app, topics `shop-<stream>`
    --log Orders=kafka://host:port/orders    this stream, in exactly this topic
    --log /fast/disk                         all streams, in directories `/fast/disk/<stream>`

An option for one stream goes before one for all. Used by `data_dir` and by `edgewise explain`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edgewise.errors import SetupError
from edgewise.log.locations import parse_kafka_location
from edgewise.plan.nodes import App

OPTIONS_MAX = 1024
SPARK_READS = (
    "Spark reads it through the data source 'edgewise', not its Kafka connector, which counts "
    "records where the engine counts events"
)


@dataclass(frozen=True, slots=True)
class LogLocations:
    """`default` is the location for all streams; '' means the data directory."""

    default: str = ""
    streams: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, options: Iterable[str], app: App) -> LogLocations:
        """SetupError where an option names no location or no stream with a log."""
        default = ""
        streams: dict[str, str] = {}
        known = [s.name for s in (*app.inputs, *app.outputs)]
        for option in list(options)[:OPTIONS_MAX]:
            name, equals, location = option.partition("=")
            if not equals:
                name, location = "", option
            parse_kafka_location(location)  # raises where a Kafka address is none
            if not location or ("://" in location and not location.startswith("kafka://")):
                raise SetupError(
                    f"--log {option}: a log is in a directory or in kafka://host:port/topic"
                )
            if not equals and default:
                raise SetupError(f"--log {option}: the logs of the app are in {default} already")
            if equals and name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
                raise SetupError(f"--log {option}: the app has no stream '{name}'; {hint}")
            if equals:
                streams[name] = location
            else:
                default = location
        return cls(default, streams)

    def locate(self, stream: str, directory: Path) -> str:
        if stream in self.streams:
            return self.streams[stream]
        if not self.default:
            return str(directory)
        join = "-" if parse_kafka_location(self.default)[0] else "/"
        return f"{self.default.rstrip('/')}{join}{stream}"

    def explain(self, app: App) -> list[str]:
        """For `edgewise explain`: logs outside the data directory, and how Spark reads Kafka."""
        lines = []
        for stream in (*app.inputs, *app.outputs):
            location = self.locate(stream.name, Path())
            if location == str(Path()):
                continue
            read = stream in app.inputs and parse_kafka_location(location)[0]
            lines.append(f"  {stream.name}: {location}{f'; {SPARK_READS}' if read else ''}")
        return ["logs outside the data directory:", *lines] if lines else []
