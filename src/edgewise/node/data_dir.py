"""Say where things are in a data directory. No other module joins these paths.

<data>/log/<stream>/        segment files of a stream, unless `log_locations` says otherwise
<data>/scratch/             Spark's shuffle files; safe to delete while nothing runs
<data>/engine.log           what the engine process wrote to stderr since its last start
<shared>/checkpoint/<app>/  offsets and kernel state of an app
<shared>/sinks/             how far each sink has delivered
<shared>/lease/             which node may write the logs

`shared` is the directory of `--log DIR`, else the data directory: the node that takes the logs
over needs the checkpoint that belongs to them, and the lease protects both.
"""

from __future__ import annotations

import shutil
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from edgewise.log.api import LogConfig
from edgewise.log.locations import parse_kafka_location
from edgewise.node.log_locations import LogLocations
from edgewise.plan.nodes import App

OWNER_ONLY = 0o700
RETAIN_EVERY_S = 60.0  # how often each writer of a log removes old segments


@dataclass(frozen=True, slots=True)
class DataDirectory:
    data: Path
    locations: LogLocations = LogLocations()

    def log_location(self, stream: str) -> str:
        """The location of its log, as `log.locations` opens it; faults are never in Kafka."""
        if stream.startswith(("!", "$")) and self.shared == self.data:  # no names for a topic
            return str(self.log_directory(stream))
        return self.locations.locate(stream, self.log_directory(stream))

    def log_directory(self, stream: str) -> Path:
        return self.data / "log" / stream

    def log_directories(self, app: App) -> dict[str, Path]:
        """The logs of an app that are files, by stream."""
        locations = {s.name: self.log_location(s.name) for s in (*app.inputs, *app.outputs)}
        return {n: Path(at) for n, at in locations.items() if not _is_kafka(at)}

    @property
    def shared(self) -> Path:
        """What every node of the app must reach, unless the logs are in Kafka."""
        default = self.locations.default
        return self.data if not default or _is_kafka(default) else Path(default)

    @property
    def lease_location(self) -> str:
        """With the logs, as `log.locations.open_lease` opens it."""
        return self.locations.default or str(self.data)

    def is_protected(self, stream: str) -> bool:
        """Whether the lease protects the log of this stream; else its writer is never fenced."""
        own = self.locations.streams.get(stream)
        return own is None or Path(own).resolve().is_relative_to(self.shared.resolve())

    def checkpoint(self, app: str) -> Path:
        return self.shared / "checkpoint" / app

    def cursor(self, stream: str, number: int) -> Path:
        return self.shared / "sinks" / f"{stream}.{number}"

    def make_private(self) -> str:
        """Create the data directory for its owner only; a line where it was open to others."""
        self.data.mkdir(OWNER_ONLY, parents=True, exist_ok=True)
        mode = stat.S_IMODE(self.data.stat().st_mode)
        if mode == OWNER_ONLY:
            return ""
        try:
            self.data.chmod(OWNER_ONLY)
        except PermissionError:
            return f"{self.data} belongs to another user and others may read it ({mode:o})"
        return f"{self.data} is for its owner only now; its mode was {mode:o}"

    def bound_retention(self, app: App, log: LogConfig, disk_share: float) -> LogConfig:
        """Limit the bytes of each log, so that all logs in files have this share of the disk."""
        logs = len(self.log_directories(app))
        if log.retain_bytes or not disk_share or not logs:
            return log
        disk_bytes = shutil.disk_usage(self.data).total
        return replace(log, retain_bytes=int(disk_bytes * disk_share / logs))

    @property
    def scratch(self) -> Path:
        return self.data / "scratch"

    @property
    def engine_log(self) -> Path:
        return self.data / "engine.log"


def _is_kafka(location: str) -> bool:
    return bool(parse_kafka_location(location)[0])


def describe_retention(log: LogConfig) -> str:
    """For the terminal: what each log keeps."""
    limits = []
    if log.retain_ms:
        limits.append(f"{log.retain_ms / 3_600_000:g} hours")
    if log.retain_bytes:
        limits.append(f"{log.retain_bytes // 1024**2:,} MB")
    if not limits:
        return "each log keeps everything"
    return f"each log keeps {' and at most '.join(limits)} (--retain-hours, --retain-mb)"
