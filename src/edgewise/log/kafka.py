"""The home of the log in Kafka: the same contract, kept by a broker."""

from __future__ import annotations

from edgewise.log.kafka_reader import KafkaReader
from edgewise.log.kafka_writer import KafkaWriter

__all__ = ["KafkaReader", "KafkaWriter"]
