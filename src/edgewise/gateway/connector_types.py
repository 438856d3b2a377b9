"""Declare the options, guarantees and checks of the built-in sources and sinks. Pure.

`edgewise check` reads this table and nothing else: the class that runs, and the client library it
needs, is loaded when a node starts the source or sink. Used by `connectors`.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.gateway.connector_checks import (
    LEAST,
    MOST,
    ONCE,
    ConnectorType,
    Options,
    check_all,
    check_choices,
    check_not_empty,
    check_url,
)
from edgewise.gateway.siddhi_connector_types import (
    HTTP_SINK,
    LINES,
    SIDDHI_SINK_TYPES,
    SIDDHI_SOURCE_TYPES,
)
from edgewise.gateway.spec import BadSpec, Option

# --- MQTT

_MQTT: Options = {
    "url": Option("mqtt://host:port, or mqtts://host:port for TLS", None),
    "qos": Option("'0', '1' or '2'", "1"),
    "version": Option("'3.1.1' or '5'", "3.1.1"),
    "client.id": Option("names the session at the broker; default: edgewise-<stream>"),
    "username": Option("where the broker asks for one"),
    "password": Option("where the broker asks for one"),
    "ca": Option("file with the broker's certificate authority, for mqtts"),
}


def _check_qos(options: Mapping[str, str]) -> None:
    if options["qos"] == "0" and options["delivery"] != MOST.value:
        raise BadSpec("qos='0' can lose messages: say delivery='at-most-once', or qos='1'", "qos")


def _check_mqtt_once(options: Mapping[str, str]) -> None:
    if options["delivery"] == ONCE.value and options["version"] != "5":
        raise BadSpec(
            "delivery='effectively-once' needs version='5': its user properties 'producer' and "
            "'sequence' are what the receiver drops repeats by",
            "delivery",
        )


_check_mqtt = check_all(
    check_url("mqtt", "mqtts", example="host:port"),
    check_choices({"version": ("3.1.1", "5"), "qos": ("0", "1", "2")}),
    _check_qos,
)

# --- Kafka

_KAFKA: Options = {
    "servers": Option("host:port of one or more brokers, with commas between", None),
    "topic": Option("the topic; a source takes several with commas between", None),
    "security": Option("'plaintext', 'ssl', 'sasl_plaintext' or 'sasl_ssl'", "plaintext"),
    "sasl.mechanism": Option("'PLAIN', 'SCRAM-SHA-256' or 'SCRAM-SHA-512'", "PLAIN"),
    "username": Option("of SASL, with password"),
    "password": Option("of SASL, with username"),
    "ca": Option("file with the brokers' certificate authority; default: those of this machine"),
    "certificate": Option("file with the client's own certificate, where the brokers ask for one"),
    "key.file": Option("file with the private key of the certificate"),
}
_KAFKA_CHOICES = {
    "security": ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
    "sasl.mechanism": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
}


def _check_servers(options: Mapping[str, str]) -> None:
    for server in options["servers"].split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise BadSpec(f"servers='{options['servers']}' must be host:port", "servers")


def _check_login(options: Mapping[str, str]) -> None:
    if options["security"].startswith("sasl") and not options["username"]:
        raise BadSpec(f"security='{options['security']}' needs username and password", "username")


_check_kafka = check_all(
    _check_servers, check_not_empty("topic", "topic"), check_choices(_KAFKA_CHOICES), _check_login
)

# --- AMQP

_AMQP_URL = Option("amqp://user:password@host:5672/vhost, or amqps://", None)
_AMQP1: Options = {
    "url": Option("amqp://user:password@host:5672, or amqps:// for TLS", None),
    "address": Option("the node of the broker, as it names it, such as '/amq/queue/logins'", None),
    "ca": Option("file with the broker's certificate authority, for amqps"),
}
_EXCHANGE_TYPE = Option("of an exchange that is new: topic, direct, fanout or headers", "topic")
_check_amqp = check_url("amqp", "amqps")
_check_exchange_type = check_choices({"exchange.type": ("topic", "direct", "fanout", "headers")})


def _check_queue(options: Mapping[str, str]) -> None:
    if not options["queue"] and not options["exchange"]:
        raise BadSpec("'amqp' needs the option 'queue' or 'exchange' to read from", "queue")


_check_amqp1 = check_all(_check_amqp, check_not_empty("address", "node of the broker"))

# --- ZeroMQ

_ZEROMQ_URL = Option("such as tcp://127.0.0.1:5555 or ipc:///run/events", None)
_MODES = ("connect", "bind")

# --- files, the node's log, streams in memory

PRIORITIES = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL", "TRACE", "OFF")


def _check_priority(options: Mapping[str, str]) -> None:
    if options["priority"].upper() not in PRIORITIES:
        one = ", ".join(PRIORITIES)
        raise BadSpec(f"priority='{options['priority']}' must be one of: {one}", "priority")


_IN_MEMORY: Options = {"topic": Option("joins sinks to the sources of the same topic", None)}


def _check_file_path(options: Mapping[str, str]) -> None:
    if not options["path"] or options["path"].endswith("/"):
        raise BadSpec(f"path='{options['path']}' is no file", "path")


SOURCES: Mapping[str, ConnectorType] = {
    **SIDDHI_SOURCE_TYPES,
    "amqp": ConnectorType(
        "edgewise.gateway.amqp:AmqpSource",
        {
            "url": _AMQP_URL,
            "queue": Option(
                "a durable queue, declared where it is not there; default: edgewise-<stream>, "
                "where an exchange is named"
            ),
            "exchange": Option("bind the queue to this exchange"),
            "exchange.type": _EXCHANGE_TYPE,
            "key": Option("routing key of the binding", "#"),
        },
        (LEAST, MOST),
        check_all(_check_amqp, _check_exchange_type, _check_queue),
    ),
    "amqp1": ConnectorType(
        "edgewise.gateway.amqp1:Amqp1Source", _AMQP1, (LEAST, MOST), _check_amqp1
    ),
    "file": ConnectorType(
        "edgewise.gateway.file:FileSource",
        {
            "path": Option("a file, or a pattern such as '/var/log/*.json'", None),
            "follow": Option("'true' waits for more lines and files, 'false' ends", "true"),
            "from": Option("'start' or 'end': where to begin in a file never read", "start"),
            "format": Option("'lines', 'whole' (a file is one payload) or 'parquet'", "lines"),
        },
        (ONCE, LEAST),
        check_choices(
            {
                "follow": ("true", "false"),
                "from": ("start", "end"),
                "format": ("lines", "whole", "parquet"),
            }
        ),
        LINES,
    ),
    "inMemory": ConnectorType(
        "edgewise.gateway.in_memory:InMemorySource",
        _IN_MEMORY,
        (ONCE,),
        check_not_empty("topic", "topic"),
        default_map="passThrough",
    ),
    "kafka": ConnectorType(
        "edgewise.gateway.kafka:KafkaSource",
        {
            **_KAFKA,
            "from": Option("'start' or 'end': where to begin in a partition never read", "start"),
        },
        (ONCE, LEAST),
        check_all(_check_kafka, check_choices({"from": ("start", "end")})),
    ),
    "mqtt": ConnectorType(
        "edgewise.gateway.mqtt:MqttSource",
        {
            **_MQTT,
            "topic": Option(
                "filters with commas between; '$share/group/filter' shares the load", None
            ),
        },
        (LEAST, MOST),
        _check_mqtt,
    ),
    "zeromq": ConnectorType(
        "edgewise.gateway.zeromq:ZeroMqSource",
        {
            "url": _ZEROMQ_URL,
            "socket": Option("'sub' or 'pull'", "sub"),
            "mode": Option("'connect' or 'bind'", "connect"),
            "topic": Option("for sub: prefixes of the first frame, with commas between"),
        },
        (MOST,),
        check_choices({"socket": ("sub", "pull"), "mode": _MODES}),
    ),
}
SINKS: Mapping[str, ConnectorType] = {
    **SIDDHI_SINK_TYPES,
    "amqp": ConnectorType(
        "edgewise.gateway.amqp:AmqpSink",
        {
            "url": _AMQP_URL,
            "exchange": Option("a durable exchange; it is declared where it is not there", None),
            "exchange.type": _EXCHANGE_TYPE,
            "key": Option("routing key; {{attribute}} is filled from the event", "#"),
        },
        (LEAST, MOST),
        check_all(_check_amqp, _check_exchange_type),
    ),
    "amqp1": ConnectorType(
        "edgewise.gateway.amqp1:Amqp1Sink",
        {
            **_AMQP1,
            "subject": Option("of the message; {{attribute}} is filled from the event"),
        },
        (LEAST, MOST),
        _check_amqp1,
    ),
    "file": ConnectorType(
        "edgewise.gateway.file_sink:FileSink",
        {"path": Option("the file; it is created, with its directory, where it is new", None)},
        (ONCE,),
        _check_file_path,
        LINES,
    ),
    "http": HTTP_SINK,
    "inMemory": ConnectorType(
        "edgewise.gateway.in_memory:InMemorySink",
        _IN_MEMORY,
        (ONCE,),
        check_not_empty("topic", "topic"),
        default_map="passThrough",
    ),
    "kafka": ConnectorType(
        "edgewise.gateway.kafka:KafkaSink",
        {**_KAFKA, "key": Option("key of the record; {{attribute}} is filled from the event")},
        (ONCE, LEAST),
        _check_kafka,
    ),
    "log": ConnectorType(
        "edgewise.gateway.log_sink:LogSink",
        {
            "prefix": Option("begins each line; default: the stream"),
            "priority": Option(
                "DEBUG, INFO, WARN, ERROR, FATAL, TRACE; OFF prints nothing", "INFO"
            ),
        },
        (LEAST, MOST),
        _check_priority,
        default_map="passThrough",
    ),
    "mqtt": ConnectorType(
        "edgewise.gateway.mqtt:MqttSink",
        {
            **_MQTT,
            "topic": Option("where to publish; {{attribute}} is filled from the event", None),
            "retain": Option("'true' lets the broker keep the last message of a topic", "false"),
        },
        (LEAST, MOST, ONCE),
        check_all(_check_mqtt, _check_mqtt_once),
    ),
    "zeromq": ConnectorType(
        "edgewise.gateway.zeromq:ZeroMqSink",
        {
            "url": _ZEROMQ_URL,
            "socket": Option("'pub' or 'push'", "pub"),
            "mode": Option("'connect' or 'bind'", "bind"),
            "topic": Option("for pub: the first frame of every message"),
        },
        (MOST,),
        check_choices({"socket": ("pub", "push"), "mode": _MODES}),
    ),
}
