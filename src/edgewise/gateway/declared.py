"""What our own doors declare: options, what they can promise, what goes together. Pure.

`edgewise check` reads this and nothing else: the class that talks, and the client library that it
needs, is loaded when a node opens the door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from edgewise.gateway.spec import BadSpec, Guarantee, Option

Options = Mapping[str, Option]
Check = Callable[[Mapping[str, str]], None]

_MOST, _LEAST, _ONCE = (
    Guarantee.AT_MOST_ONCE,
    Guarantee.AT_LEAST_ONCE,
    Guarantee.EFFECTIVELY_ONCE,
)


@dataclass(frozen=True, slots=True)
class Declared:
    """`check` raises BadSpec where complete options cannot work together."""

    where: str  # "module:class"
    options: Options
    guarantees: tuple[Guarantee, ...]  # the first is the default
    check: Check
    maps: tuple[str, ...] = ()  # types of mappings; none: all


def _url(*schemes: str, example: str = "host") -> Check:
    def check(options: Mapping[str, str]) -> None:
        url = urlsplit(options["url"])
        if url.scheme not in schemes or not url.hostname:
            wanted = " or ".join(f"{scheme}://{example}" for scheme in schemes)
            raise BadSpec(f"url='{options['url']}' must be {wanted}", "url")

    return check


def _choices(known: Mapping[str, tuple[str, ...]]) -> Check:
    def check(options: Mapping[str, str]) -> None:
        for name, values in known.items():
            if options[name] not in values:
                one = ", ".join(values)
                raise BadSpec(f"{name}='{options[name]}' must be one of: {one}", name)

    return check


def _needs(option: str, what: str) -> Check:
    def check(options: Mapping[str, str]) -> None:
        if not options[option]:
            raise BadSpec(f"{option}='' names no {what}", option)

    return check


def _all(*checks: Check) -> Check:
    def check(options: Mapping[str, str]) -> None:
        for each in checks:
            each(options)

    return check


# --- MQTT

_MQTT: Options = {
    "url": Option("mqtt://host:port, or mqtts://host:port for TLS", None),
    "qos": Option("'0', '1' or '2'", "1"),
    "version": Option("'3.1.1' or '5'", "3.1.1"),
    "client.id": Option("names the session at the broker; default: edgewise-<stream>"),
    "username": Option("for brokers that ask"),
    "password": Option("for brokers that ask"),
    "ca": Option("file with the broker's certificate authority, for mqtts"),
}


def _lossy(options: Mapping[str, str]) -> None:
    if options["qos"] == "0" and options["delivery"] != _MOST.value:
        raise BadSpec("qos='0' can lose messages: say delivery='at-most-once', or qos='1'", "qos")


_check_mqtt = _all(
    _url("mqtt", "mqtts", example="host:port"),
    _choices({"version": ("3.1.1", "5"), "qos": ("0", "1", "2")}),
    _lossy,
)

# --- Kafka

_KAFKA: Options = {
    "servers": Option("host:port of one or more brokers, with commas between", None),
    "topic": Option("the topic", None),
}


def _servers(options: Mapping[str, str]) -> None:
    for server in options["servers"].split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise BadSpec(f"servers='{options['servers']}' must be host:port", "servers")


_check_kafka = _all(_servers, _needs("topic", "topic"))

# --- AMQP

_AMQP_URL = Option("amqp://user:password@host:5672/vhost, or amqps://", None)
_AMQP1: Options = {
    "url": Option("amqp://user:password@host:5672, or amqps:// for TLS", None),
    "address": Option("the node of the broker, as it names it, such as '/amq/queue/logins'", None),
    "ca": Option("file with the broker's certificate authority, for amqps"),
}
_check_amqp = _url("amqp", "amqps")
_check_amqp1 = _all(_check_amqp, _needs("address", "node of the broker"))

# --- ZeroMQ

_ZEROMQ_URL = Option("such as tcp://127.0.0.1:5555 or ipc:///run/events", None)
_MODES = ("connect", "bind")

# --- files and HTTP

_LINES = ("json", "csv", "text")


def _one_file(options: Mapping[str, str]) -> None:
    if not options["path"] or options["path"].endswith("/"):
        raise BadSpec(f"path='{options['path']}' is no file", "path")


SOURCES: Mapping[str, Declared] = {
    "amqp": Declared(
        "edgewise.gateway.amqp:AmqpSource",
        {
            "url": _AMQP_URL,
            "queue": Option("a durable queue; it is declared where it is not there", None),
            "exchange": Option(
                "bind the queue to this exchange, a topic exchange where it is new"
            ),
            "key": Option("routing key of the binding", "#"),
        },
        (_LEAST, _MOST),
        _check_amqp,
    ),
    "amqp1": Declared("edgewise.gateway.amqp1:Amqp1Source", _AMQP1, (_LEAST, _MOST), _check_amqp1),
    "file": Declared(
        "edgewise.gateway.file:FileSource",
        {
            "path": Option("a file, or a pattern such as '/var/log/*.json'", None),
            "follow": Option("'true' waits for more lines and files, 'false' ends", "true"),
            "from": Option("'start' or 'end': where to begin in a file never read", "start"),
            "format": Option("'lines' or 'parquet'", "lines"),
        },
        (_ONCE, _LEAST),
        _choices(
            {
                "follow": ("true", "false"),
                "from": ("start", "end"),
                "format": ("lines", "parquet"),
            }
        ),
        _LINES,
    ),
    "kafka": Declared(
        "edgewise.gateway.kafka:KafkaSource",
        {
            **_KAFKA,
            "from": Option("'start' or 'end': where to begin in a partition never read", "start"),
        },
        (_ONCE, _LEAST),
        _all(_check_kafka, _choices({"from": ("start", "end")})),
    ),
    "mqtt": Declared(
        "edgewise.gateway.mqtt:MqttSource",
        {
            **_MQTT,
            "topic": Option(
                "filters with commas between; '$share/group/filter' shares the load", None
            ),
        },
        (_LEAST, _MOST),
        _check_mqtt,
    ),
    "zeromq": Declared(
        "edgewise.gateway.zeromq:ZeroMqSource",
        {
            "url": _ZEROMQ_URL,
            "socket": Option("'sub' or 'pull'", "sub"),
            "mode": Option("'connect' or 'bind'", "connect"),
            "topic": Option("for sub: prefixes of the first frame, with commas between"),
        },
        (_MOST,),
        _choices({"socket": ("sub", "pull"), "mode": _MODES}),
    ),
}
SINKS: Mapping[str, Declared] = {
    "amqp": Declared(
        "edgewise.gateway.amqp:AmqpSink",
        {
            "url": _AMQP_URL,
            "exchange": Option(
                "a durable topic exchange; it is declared where it is not there", None
            ),
            "key": Option("routing key; {{attribute}} is filled from the event", "#"),
        },
        (_LEAST, _MOST),
        _check_amqp,
    ),
    "amqp1": Declared(
        "edgewise.gateway.amqp1:Amqp1Sink",
        {
            **_AMQP1,
            "subject": Option("of the message; {{attribute}} is filled from the event"),
        },
        (_LEAST, _MOST),
        _check_amqp1,
    ),
    "file": Declared(
        "edgewise.gateway.file_sink:FileSink",
        {"path": Option("the file; it is created, with its directory, where it is new", None)},
        (_ONCE,),
        _one_file,
        _LINES,
    ),
    "http": Declared(
        "edgewise.gateway.webhook:HttpSink",
        {
            "url": Option("where to post to, http:// or https://", None),
            "key": Option("prefix of the idempotency key; default: the stream"),
            "authorization": Option("value of the Authorization header"),
        },
        (_LEAST, _MOST, _ONCE),
        _url("http", "https"),
        _LINES,
    ),
    "kafka": Declared(
        "edgewise.gateway.kafka:KafkaSink",
        {**_KAFKA, "key": Option("key of the record; {{attribute}} is filled from the event")},
        (_ONCE, _LEAST),
        _check_kafka,
    ),
    "mqtt": Declared(
        "edgewise.gateway.mqtt:MqttSink",
        {
            **_MQTT,
            "topic": Option("where to publish; {{attribute}} is filled from the event", None),
            "retain": Option("'true' lets the broker keep the last message of a topic", "false"),
        },
        (_LEAST, _MOST),
        _check_mqtt,
    ),
    "zeromq": Declared(
        "edgewise.gateway.zeromq:ZeroMqSink",
        {
            "url": _ZEROMQ_URL,
            "socket": Option("'pub' or 'push'", "pub"),
            "mode": Option("'connect' or 'bind'", "bind"),
            "topic": Option("for pub: the first frame of every message"),
        },
        (_MOST,),
        _choices({"socket": ("pub", "push"), "mode": _MODES}),
    ),
}
