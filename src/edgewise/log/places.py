"""Where a log lives, as a person writes it: a directory, or `kafka://host:port/topic`."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from edgewise.errors import LogError
from edgewise.event.schema import Schema
from edgewise.log.api import DEFAULTS, LogConfig, LogReader
from edgewise.log.segment import SegmentReader, SegmentWriter
from edgewise.log.transfer import ResumableWriter


def broker_and_topic(address: str) -> tuple[str, str]:
    """('', '') for a directory."""
    parts = urlsplit(address)
    if parts.scheme != "kafka":
        return "", ""
    topic = parts.path.strip("/")
    if not parts.netloc or not topic or "/" in topic:
        raise LogError(f"{address}: a log on Kafka is written kafka://host:port/topic")
    return parts.netloc, topic


def bare_broker(address: str) -> str:
    """The broker of `kafka://host:port` without a topic, '' for anything else."""
    parts = urlsplit(address)
    return parts.netloc if parts.scheme == "kafka" and not parts.path.strip("/") else ""


def open_reader(address: str) -> LogReader:
    broker, topic = broker_and_topic(address)
    if broker:
        from edgewise.log.kafka import KafkaReader

        return KafkaReader.open(broker, topic)
    return SegmentReader.open(Path(address))


def open_writer(
    address: str,
    schema: Schema,
    config: LogConfig = DEFAULTS,
    *,
    defaults: dict[str, Any] | None = None,
    take_over: bool = False,
) -> ResumableWriter:
    """`defaults` are of attributes that the log does not have yet. `take_over` is for those who
    hold the lease: a writer that still lives is fenced.
    """
    more: dict[str, Any] = {"defaults": defaults, "take_over": take_over}
    broker, topic = broker_and_topic(address)
    if broker:
        from edgewise.log.kafka import KafkaWriter

        return KafkaWriter.open(broker, topic, schema, config, **more)
    return SegmentWriter.open(Path(address), schema, config, **more)
