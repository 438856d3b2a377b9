"""Translate the types and options of Siddhi's sources and sinks to ours. Pure.

An app that was written for Siddhi names its options as Siddhi does. One table for each type says
what becomes of each name: another name here, or nothing, with the reason. Nothing is dropped
without a word: every option that has no effect gives a `Note`, which `edgewise check` prints as a
warning. A name that is in no table is an error, with the nearest one. Used by `connectors`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from edgewise.gateway.spec import Note


@dataclass(frozen=True, slots=True)
class SiddhiOption:
    """What an option of Siddhi becomes. `reason` is told where it does less here than there."""

    convert: Callable[[str], Mapping[str, str]] = lambda _value: {}
    reason: str = ""
    harmless: tuple[str, ...] = ()  # values, in lower case, that ask for what is done anyway


SiddhiOptions = Mapping[str, SiddhiOption]


def rename_option(ours: str, reason: str = "") -> SiddhiOption:
    return SiddhiOption(lambda value: {ours: value}, reason)


def ignore_option(reason: str, *harmless: str) -> SiddhiOption:
    return SiddhiOption(reason=reason, harmless=harmless)


def _ignore_all(reason: str, *names: str) -> dict[str, SiddhiOption]:
    return dict.fromkeys(names, ignore_option(reason))


def _to_path(uri: str) -> str:
    """`file:/var/a` and `file:///var/a` are `/var/a`."""
    rest = uri.removeprefix("file:")
    return "/" + rest.lstrip("/") if rest.startswith("//") else rest


def _to_format(mode: str) -> Mapping[str, str]:
    return {"format": "whole" if mode.lower().endswith(".full") else "lines"}


def _to_mqtt_url(value: str) -> Mapping[str, str]:
    for theirs, ours in (("tcp://", "mqtt://"), ("ssl://", "mqtts://")):
        if value.startswith(theirs):
            return {"url": ours + value.removeprefix(theirs)}
    return {"url": value}


def _to_qos(value: str) -> Mapping[str, str]:
    return {"qos": value, "delivery": "at-most-once"} if value == "0" else {"qos": value}


def _to_kafka_security(value: str) -> Mapping[str, str]:
    """`security.protocol:SASL_SSL,sasl.mechanism:PLAIN,sasl.jaas.config:...` of Java's client."""
    found = {}
    if protocol := re.search(r"security\.protocol\s*:\s*(\w+)", value):
        found["security"] = protocol[1].lower()
    if mechanism := re.search(r"sasl\.mechanism\s*:\s*([\w-]+)", value):
        found["sasl.mechanism"] = mechanism[1].upper()
    for name in ("username", "password"):
        if login := re.search(rf"""\b{name}\s*=\s*["']?([^"'\s;]+)""", value):
            found[name] = login[1]
    return found


_POOL = "the node has its own threads and connections"
_STORES = "TLS uses the certificate authorities of this machine"
_SERVER = "the node has one server for all sources: see --tls-cert, --jwt-key and --host"
_POSITION = "how far was read is kept in the log, with the events"
_LEFT = "files are left where they are; each is read once"
_DURABLE = "exchanges and queues are declared as durable"
_CLIENT = "settings of Java's client are not those of ours"

_HTTP_SOURCE: SiddhiOptions = {
    "receiver.url": SiddhiOption(
        lambda value: {"path": urlsplit(value).path.rstrip("/")},
        "only its path is taken: host and port are those of the node (--host, --http-port)",
    ),
    "basic.auth.enabled": ignore_option("the node checks tokens instead: see --jwt-key", "false"),
    **_ignore_all(
        _SERVER, "worker.count", "socket.idle.timeout", "ssl.verify.client", "ssl.protocol",
        "tls.store.type", "ssl.configurations", "request.size.validation.configurations",
        "header.validation.configurations", "server.bootstrap.configurations",
        "trace.log.enabled",
    ),
}  # fmt: skip
_HTTP_SINK: SiddhiOptions = {
    "publisher.url": rename_option("url"),
    "basic.auth.username": rename_option("username"),
    "basic.auth.password": rename_option("password"),
    **_ignore_all(
        _STORES, "https.truststore.file", "https.truststore.password", "https.keystore.file",
        "https.keystore.password", "https.keystore.key.password", "ssl.protocol",
        "tls.store.type", "ssl.configurations", "ssl.verification.disabled",
        "hostname.verification.enabled",
    ),
    **_ignore_all(
        "no token is fetched: say authorization='Bearer ...'", "oauth.username",
        "oauth.password", "consumer.key", "consumer.secret", "body.consumer.key",
        "body.consumer.secret", "token.url", "refresh.token",
    ),
    **_ignore_all(
        "rows are sent without a proxy", "proxy.host", "proxy.port", "proxy.username",
        "proxy.password",
    ),
    **_ignore_all(
        _POOL, "socket.idle.timeout", "chunk.disabled", "blocking.io",
        "client.bootstrap.configurations",
        "max.pool.active.connections", "min.pool.idle.connections", "max.pool.idle.connections",
        "executor.service.threads", "min.evictable.idle.time", "time.between.eviction.runs",
        "max.wait.time", "test.on.borrow", "test.while.idle", "exhausted.action",
    ),
}  # fmt: skip
_KAFKA_SHARED: SiddhiOptions = {
    "bootstrap.servers": rename_option("servers"),
    "is.binary.message": ignore_option(
        "the mapping decides: @map(type='binary' or 'avro')", "false"
    ),
    "optional.configuration": SiddhiOption(
        _to_kafka_security, "only protocol and log-in are taken: " + _CLIENT
    ),
}
_KAFKA_SOURCE: SiddhiOptions = {
    **_KAFKA_SHARED,
    "topic.list": rename_option("topic"),
    "threading.option": ignore_option("one reader takes all partitions", "single.thread"),
    "partition.no.list": ignore_option("all partitions of the topic are read"),
    "seq.enabled": ignore_option(_POSITION, "false"),
    **_ignore_all(
        _POSITION, "group.id", "topic.offsets.map", "enable.offsets.commit",
        "enable.async.commit",
    ),
}  # fmt: skip
_KAFKA_SINK: SiddhiOptions = {
    **_KAFKA_SHARED,
    "partition.no": ignore_option("the key of the record chooses its partition"),
    "sequence.id": ignore_option("rows are written in transactions, each once"),
    "is.synchronous": ignore_option("rows are confirmed before the next ones are sent", "true"),
}
_FILE_SOURCE: SiddhiOptions = {
    "file.uri": SiddhiOption(lambda value: {"path": _to_path(value)}),
    "dir.uri": SiddhiOption(lambda value: {"path": _to_path(value).rstrip("/") + "/*"}),
    "tailing": SiddhiOption(lambda value: {"follow": value.lower()}),
    "mode": SiddhiOption(
        _to_format, "files are read line by line, or whole as text", ("line", "text.full")
    ),
    "action.after.process": ignore_option(_LEFT, "keep", "none"),
    "action.after.failure": ignore_option(_LEFT, "keep", "none"),
    **_ignore_all(_LEFT, "move.after.process", "move.if.exist.mode", "move.after.failure"),
    **_ignore_all("a line is an event", "begin.regex", "end.regex"),
    **_ignore_all(
        "say it in the mapping: @map(type='csv', header='true')", "header.present",
        "header.line.count", "read.only.header", "read.only.trailer", "skip.trailer",
    ),
    **_ignore_all(
        "files are watched all the time", "file.polling.interval", "dir.polling.interval",
        "timeout", "file.read.wait.timeout", "cron.expression",
    ),
    **_ignore_all("the size of reads is fixed", "buffer.size"),
    **_ignore_all("only files of this machine are read", "file.system.options"),
}  # fmt: skip
_FILE_SINK: SiddhiOptions = {
    "file.uri": SiddhiOption(lambda value: {"path": _to_path(value)}),
    "append": ignore_option("rows are appended, each once", "true"),
    "add.line.separator": ignore_option("each row is a line", "true"),
    "file.system.options": ignore_option("only files of this machine are written"),
}
_MQTT: SiddhiOptions = {
    "url": SiddhiOption(_to_mqtt_url),
    "quality.of.service": SiddhiOption(_to_qos),
    "clean.session": ignore_option("the session is kept, so that nothing is lost", "false"),
    **_ignore_all("the client has its own", "keep.alive", "connection.timeout"),
}
_RABBITMQ: SiddhiOptions = {
    "uri": rename_option("url"),
    "exchange.name": rename_option("exchange"),
    "routing.key": rename_option("key"),
    **dict.fromkeys(("exchange.durable.enabled",), ignore_option(_DURABLE, "true")),
    **dict.fromkeys(("exchange.autodelete.enabled",), ignore_option(_DURABLE, "false")),
    "headers": ignore_option("headers of messages are neither read nor written"),
    "heartbeat": ignore_option("the client has its own"),
    **_ignore_all(
        "say amqps:// in the url; " + _STORES, "tls.enabled", "tls.truststore.path",
        "tls.truststore.password", "tls.truststore.type", "tls.version",
    ),
}  # fmt: skip
_RABBITMQ_SOURCE: SiddhiOptions = {
    **_RABBITMQ,
    "queue.name": rename_option("queue"),
    "queue.durable.enabled": ignore_option(_DURABLE, "true"),
    **dict.fromkeys(
        ("queue.exclusive.enabled", "queue.autodelete.enabled"), ignore_option(_DURABLE, "false")
    ),
    "auto.ack": ignore_option("a message is acknowledged when the log has it", "false"),
    "consumer.threadpool.size": ignore_option(_POOL),
}
_RABBITMQ_SINK: SiddhiOptions = {
    **_RABBITMQ,
    "delivery.mode": ignore_option("messages are persistent", "2"),
    **_ignore_all(
        "properties of messages are set by the node: persistent, with the offset as their id",
        "content.type", "content.encoding", "priority", "correlation.id", "reply.to",
        "expiration", "message.id", "timestamp", "user.id", "app.id",
    ),
}  # fmt: skip
_HTTP_CALL: SiddhiOptions = {
    **_HTTP_SINK,
    **_ignore_all("answers are events", "downloading.enabled", "download.path"),
}
_HTTP_ANSWER: SiddhiOptions = {
    "allow.streaming.responses": ignore_option("an answer is read whole", "false"),
}
_TCP_SINK: SiddhiOptions = {
    "sync": ignore_option("rows are sent in their order, and wait for a slow receiver"),
    **_ignore_all(_POOL, "tcp.no.delay", "keep.alive", "worker.threads"),
}
_EMAIL_SINK: SiddhiOptions = {
    "attachments": ignore_option("messages have no attachments"),
    "connection.pool.size": ignore_option(_POOL),
    "mail.smtp.starttls.enable": rename_option("starttls"),
}
_JMS: SiddhiOptions = {
    "destination": rename_option("address"),
    "provider.url": SiddhiOption(
        lambda value: {"url": f"amqp://{urlsplit(value).hostname or 'localhost'}:5672"},
        "is read as AMQP 1.0, on port 5672 of the same host: say url='amqp://...' for another",
    ),
    **_ignore_all(
        "brokers are spoken to in AMQP 1.0; there is no JNDI", "factory.initial",
        "connection.factory.jndi.name", "connection.factory.type", "connection.factory.nature",
    ),
    **_ignore_all(
        "say them in url='amqp://user:password@host:5672'", "connection.username",
        "connection.password",
    ),
    **_ignore_all(
        _POOL, "worker.count", "retry.interval", "retry.count", "use.receiver",
        "polling.interval",
    ),
    **_ignore_all(
        "the broker's node says whether it keeps messages", "subscription.durable",
        "transport.jms.subscriptiondurable", "transport.jms.durablesubscribername",
    ),
}  # fmt: skip
_CDC: SiddhiOptions = {
    "operation": ignore_option("new values of polling.column are seen", "insert"),
    **_ignore_all("the driver is chosen by the address", "jdbc.driver.name"),
    **_ignore_all(_POOL, "pool.properties", "jndi.resource", "datasource.name"),
    **_ignore_all(
        "rows are read in the order of polling.column", "wait.on.missed.record",
        "missed.record.waiting.timeout", "cron.expression",
    ),
    **_ignore_all(
        "of mode='listening'", "connector.properties", "database.server.id",
        "database.server.name", "plugin.name",
    ),
}  # fmt: skip
_WEBSOCKET: SiddhiOptions = {
    "idle.timeout": ignore_option("a connection is kept open", "-1"),
    **_ignore_all(_STORES, "truststore.path", "truststore.password"),
}
_ON_ERROR = SiddhiOption(
    lambda value: {"on.error": "log" if value.lower() == "log" else "wait"},
    "is done as 'wait': rows that cannot be delivered stay in the log and are sent again",
    ("wait", "log"),
)

SIDDHI_SOURCES: Mapping[str, SiddhiOptions] = {
    "http": _HTTP_SOURCE,
    "kafka": _KAFKA_SOURCE,
    "file": _FILE_SOURCE,
    "mqtt": _MQTT,
    "amqp": _RABBITMQ_SOURCE,
    "amqp1": _JMS,
    "cdc": _CDC,
    "http-call-response": _HTTP_ANSWER,
    "websocket": _WEBSOCKET,
}
SIDDHI_SINKS: Mapping[str, SiddhiOptions] = {
    "http": _HTTP_SINK,
    "kafka": _KAFKA_SINK,
    "file": _FILE_SINK,
    "mqtt": {**_MQTT, "message.retain": rename_option("retain")},
    "amqp": _RABBITMQ_SINK,
    "amqp1": _JMS,
    "email": _EMAIL_SINK,
    "http-call": _HTTP_CALL,
    "tcp": _TCP_SINK,
    "websocket": _WEBSOCKET,
}
_BROKERS = {"rabbitmq": "amqp", "jms": "amqp1"}
SOURCE_ALIASES: Mapping[str, str] = {**_BROKERS, "http-response": "http-call-response"}
SINK_ALIASES: Mapping[str, str] = {**_BROKERS, "http-request": "http-call"}

# Known in Siddhi, not connected here: what to use instead.
_REQUESTS = "requests and answers of one exchange have no connector here"
_OWN = "there is no connector for it; write one: docs/how-to/extend/source-or-sink-plugin.md"
_UNCONNECTED: Mapping[str, str] = {
    "cdc": "say mode='polling' and polling.column, or let Debezium write the changes to Kafka and "
    "read its topic with type='kafka'",
    "ibmmq": "a broker that speaks AMQP 1.0 is read and written with type='amqp1'",
    "websocket-server": "publishers use the node's WebSocket, readers type='topic'",
    "sse-server": "browsers read type='topic'",
    "prometheus": "the node's own metrics are at /metrics",
    "kafkaMultiDC": "name each cluster in a source or sink of type='kafka'",
    **dict.fromkeys(
        (
            "http-request", "http-response", "http-service", "http-service-response",
            "grpc-call", "grpc-call-response",
            "grpc-service", "grpc-service-response", "kafka-replay-request",
            "kafka-replay-response",
        ),
        _REQUESTS,
    ),
    **dict.fromkeys(
        (
            "azuredatalake", "elasticsearch", "email", "fileeventlistener",
            "google-cloud-storage", "googlepubsub", "grpc", "hl7", "nats", "s3", "snmp", "sqs",
            "sse", "twitter", "websubhub", "wso2event",
        ),
        _OWN,
    ),
}  # fmt: skip


def explain_unconnected(kind: str) -> str:
    """What to use instead of a type that Siddhi has and Edgewise has not; '' for all others."""
    return _UNCONNECTED.get(kind, "")


def list_unconnected() -> tuple[str, ...]:
    return tuple(sorted(_UNCONNECTED))


def translate_options(
    given: Mapping[str, str], table: SiddhiOptions, ours: Mapping[str, object]
) -> tuple[dict[str, str], tuple[Note, ...]]:
    """The options under our names, and what is to be told about them.

    Names that neither side knows stay, for the check that refuses them. An option under our name
    wins over Siddhi's name for it.
    """
    table = {"on.error": _ON_ERROR, **table} if "recovery" in ours else table
    options: dict[str, str] = {}
    notes: list[Note] = []
    for name, value in given.items():
        known = table.get(name)
        if known is None:
            options[name] = value
            continue
        for our_name, converted in known.convert(value).items():
            options[our_name] = options.get(our_name) or converted
        if known.reason and value.lower() not in known.harmless:
            effect = "" if known.convert(value) else "has no effect: "
            notes.append(Note(name, f"{name}='{value}' {effect}{known.reason}"))
    return options, tuple(notes)
