"""Open a log by its location: a directory, or `kafka://host:port/topic`.

The Kafka client is imported only where a location names a broker, so that commands on files start
quickly. Nodes, engines and `edgewise log` use it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from edgewise.errors import LogError, name_missing_extra
from edgewise.event.schema import Schema
from edgewise.log.api import DEFAULTS, LogConfig, LogReader
from edgewise.log.copy_log import ResumableLogWriter
from edgewise.log.file_lease import FileLease
from edgewise.log.lease import Lease
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter


def parse_kafka_location(location: str) -> tuple[str, str]:
    """Broker and topic of a location in Kafka; ('', '') for a directory."""
    parts = urlsplit(location)
    if parts.scheme != "kafka":
        return "", ""
    topic = parts.path.strip("/")
    if not parts.netloc or not topic or "/" in topic:
        raise LogError(f"{location}: a log on Kafka is written kafka://host:port/topic")
    return parts.netloc, topic


def parse_broker(location: str) -> str:
    """The broker of `kafka://host:port` without a topic, '' for anything else."""
    parts = urlsplit(location)
    return parts.netloc if parts.scheme == "kafka" and not parts.path.strip("/") else ""


def anchor_location(location: str) -> str:
    """The same place from any working directory; '' and URIs stay as they are."""
    if not location or "://" in location:
        return location
    return str(Path(location).absolute())


def open_reader(location: str) -> LogReader:
    broker, topic = parse_kafka_location(location)
    if broker:
        with name_missing_extra():
            from edgewise.log.kafka_reader import KafkaReader

        return KafkaReader.open(broker, topic)
    return SegmentReader.open(Path(location))


def open_writer(
    location: str,
    schema: Schema,
    config: LogConfig = DEFAULTS,
    *,
    defaults: dict[str, Any] | None = None,
    take_over: bool = False,
) -> ResumableLogWriter:
    """`defaults` are of attributes that the log does not have yet. `take_over` is for the
    holder of the lease: a writer that is still alive is fenced.
    """
    options: dict[str, Any] = {"defaults": defaults, "take_over": take_over}
    broker, topic = parse_kafka_location(location)
    if broker:
        with name_missing_extra():
            from edgewise.log.kafka_writer import KafkaWriter

        return KafkaWriter.open(broker, topic, schema, config, **options)
    return SegmentWriter.open(Path(location), schema, config, **options)


def open_lease(location: str) -> Lease:
    """The lease that protects the logs at a location: a directory, or `kafka://host:port/prefix`.

    No stream has a dot in its name, so the topic of the lease is none of its logs.
    """
    broker, prefix = parse_kafka_location(location)
    if broker:
        from edgewise.log.kafka_lease import KafkaLease

        return KafkaLease(broker, f"{prefix}.lease")
    return FileLease(Path(location))
