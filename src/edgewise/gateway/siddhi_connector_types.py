"""Declare the options of sources and sinks that come from Siddhi: HTTP calls, TCP, e-mail. Pure.

A continuation of `connector_types`, which adds these rows to its tables; kept apart so that each
file stays a page or two. Options are under our names; `siddhi_options` translates Siddhi's.
"""

from __future__ import annotations

import re
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
from edgewise.gateway.spec import BadSpec, Option
from edgewise.stores.spec import BadStore, convert_jdbc

HTTP_ROWS_MAX = 500  # in one request of the HTTP sink
LINES = ("json", "csv", "text", "xml", "keyvalue")  # mappings whose payloads are text
_BOOL = ("true", "false")
_HTTP: Options = {
    "url": Option("where to post to, http:// or https://", None),
    "key": Option("prefix of the idempotency key; default: the stream"),
    "authorization": Option("value of the Authorization header"),
    "username": Option("of basic authentication, with password"),
    "password": Option("of basic authentication, with username"),
    "method": Option("of the request, such as POST, PUT or PATCH", "POST"),
    "headers": Option("further headers: \"'Name:value','Other:value'\""),
    "rows": Option("most rows of one request, 1 to 500", "500"),
}


def _check_rows(options: Mapping[str, str]) -> None:
    if not options["rows"].isdigit() or not 1 <= int(options["rows"]) <= HTTP_ROWS_MAX:
        raise BadSpec(f"rows='{options['rows']}' must be 1 to {HTTP_ROWS_MAX}", "rows")


def _check_method(options: Mapping[str, str]) -> None:
    if not options["method"].isalpha():
        raise BadSpec(f"method='{options['method']}' must be letters, such as POST", "method")


_check_http = check_all(check_url("http", "https"), _check_method, _check_rows)
HTTP_SINK = ConnectorType(
    "edgewise.gateway.http_sink:HttpSink", _HTTP, (LEAST, MOST, ONCE), _check_http, LINES
)


def _check_port(options: Mapping[str, str]) -> None:
    if not options["port"].isdigit() or int(options["port"]) > 65535:
        raise BadSpec(f"port='{options['port']}' must be 0 to 65535", "port")


def _check_status(options: Mapping[str, str]) -> None:
    try:
        re.compile(options["http.status.code"])
    except re.error as error:
        raise BadSpec(f"http.status.code: {error}", "http.status.code") from None


def _check_email(options: Mapping[str, str]) -> None:
    _check_port(options)
    for name in ("ssl.enable", "auth", "starttls"):
        if options[name].lower() not in _BOOL:
            raise BadSpec(f"{name}='{options[name]}' must be true or false", name)
    if not (options["to"] or options["cc"] or options["bcc"]):
        raise BadSpec("an e-mail needs a receiver: to='...'", "to")


_WEBSOCKET: Options = {
    "url": Option("ws://host:port/path, or wss://", None),
    "sub.protocol": Option("names with commas between"),
    "headers": Option("of the handshake: \"'Name:value','Other:value'\""),
}
_check_websocket = check_url("ws", "wss", example="host:port/path")


def _check_polling(options: Mapping[str, str]) -> None:
    try:
        url, _ = convert_jdbc(options["url"])
    except BadStore as error:
        raise BadSpec(f"url: {error}", "url") from None
    if not url:
        raise BadSpec(f"url='{options['url']}': H2 is a library of Java, not a server", "url")
    if not re.fullmatch(r"\d+(\.\d+)?", options["polling.interval"]):
        raise BadSpec(
            f"polling.interval='{options['polling.interval']}' must be seconds", "polling.interval"
        )


SIDDHI_SOURCE_TYPES: Mapping[str, ConnectorType] = {
    "cdc": ConnectorType(
        "edgewise.gateway.cdc:CdcSource",
        {
            "url": Option("jdbc:postgresql://host/db, or as SQLAlchemy has it", None),
            "username": Option("of the database"),
            "password": Option("of the database"),
            "table.name": Option("whose new rows are events", None),
            "polling.column": Option("grows with each row: a whole number or a timestamp", None),
            "polling.interval": Option("seconds between two looks", "1"),
            "mode": Option("'polling'; for 'listening' let Debezium write to Kafka", "polling"),
        },
        (ONCE, LEAST),
        check_all(
            _check_polling,
            check_choices({"mode": ("polling",)}),
            check_not_empty("table.name", "table"),
            check_not_empty("polling.column", "column"),
        ),
        ("json", "keyvalue"),
        default_map="keyvalue",
    ),
    "http-call-response": ConnectorType(
        "edgewise.gateway.http_call:HttpCallSource",
        {
            "sink.id": Option("of the sink 'http-call' whose answers are read", None),
            "http.status.code": Option("which answers: a pattern such as '200' or '4\\d+'", "200"),
        },
        (LEAST, ONCE),
        check_all(check_not_empty("sink.id", "sink"), _check_status),
    ),
    "tcp": ConnectorType(
        "edgewise.gateway.tcp:TcpSource",
        {
            "context": Option("channel of the messages; default: <app>/<stream>"),
            "host": Option("address to listen on", "127.0.0.1"),
            "port": Option("shared by all TCP sources that name it", "9892"),
        },
        (MOST,),
        _check_port,
        default_map="binary",
    ),
    "websocket": ConnectorType(
        "edgewise.gateway.websocket_client:WebSocketSource", _WEBSOCKET, (MOST,), _check_websocket
    ),
}
SIDDHI_SINK_TYPES: Mapping[str, ConnectorType] = {
    "email": ConnectorType(
        "edgewise.gateway.smtp:EmailSink",
        {
            "address": Option("of the sender", None),
            "to": Option("receivers with commas between; {{attribute}} is filled in"),
            "cc": Option("as to"),
            "bcc": Option("as to; not named in the message"),
            "subject": Option("{{attribute}} is filled in", None),
            "host": Option("the SMTP server", "smtp.gmail.com"),
            "port": Option("of the server", "465"),
            "ssl.enable": Option("TLS from the first byte", "true"),
            "starttls": Option("TLS after a greeting, for ssl.enable='false'", "false"),
            "auth": Option("log in with username and password", "true"),
            "username": Option("where the server asks for one"),
            "password": Option("where the server asks for one"),
            "content.type": Option("'text/plain' or 'text/html'", "text/plain"),
        },
        (LEAST, MOST),
        _check_email,
        LINES,
    ),
    "http-call": ConnectorType(
        "edgewise.gateway.http_call:HttpCallSink",
        {**_HTTP, "sink.id": Option("joins it to its sources 'http-call-response'", None)},
        (LEAST, ONCE),
        check_all(_check_http, check_not_empty("sink.id", "sink")),
        LINES,
    ),
    "tcp": ConnectorType(
        "edgewise.gateway.tcp:TcpSink",
        {"url": Option("tcp://host:port/context of a TCP source", None)},
        (MOST,),
        check_url("tcp", example="host:port/context"),
        default_map="binary",
    ),
    "websocket": ConnectorType(
        "edgewise.gateway.websocket_client:WebSocketSink", _WEBSOCKET, (MOST,), _check_websocket
    ),
}
