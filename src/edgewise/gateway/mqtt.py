"""Connect to MQTT 3.1.1 and 5 brokers, as a source and as a sink.

The broker gets its acknowledgement only when the log has the message. With QoS 1 that is the
PUBACK; with QoS 2 the PUBREC, because from then on the broker need not keep the message. The
client library sends both as soon as it has read a message; `_Client` holds them back. The session
is persistent: what arrives at the broker while we are away is delivered later. Loaded by
`connectors`.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from edgewise.errors import SetupError
from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import BODY_BYTES_MAX
from edgewise.gateway.renderers import build_renderer
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.source_writer import SETTLE_S, SourceWriter
from edgewise.gateway.spec import MapSpec, SinkSpec, SourceSpec
from edgewise.log.api import LogReader, LogWriter

IN_FLIGHT_MAX = 1000  # messages of one source on their way to the disk
CONNECT_S = 5.0
CONFIRM_S = 10.0
RECONNECT_S = (1, 30)
SESSION_S = 7 * 24 * 3600
TOPICS_MAX = 256
_VERSIONS = {"3.1.1": paho.MQTTv311, "5": paho.MQTTv5}
_PORTS = {"mqtt": 1883, "mqtts": 8883}


class _Client(paho.Client):
    """Calls `arrived` before a message is acknowledged; `acknowledge` then does that."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.arrived: Callable[[paho.MQTTMessage], None] | None = None
        self._held_mid = 0

    def acknowledge(self, mid: int, qos: int) -> None:
        if qos == 1:
            super()._send_puback(mid)
        elif qos == 2:
            super()._send_pubrec(mid)

    def _send_puback(self, mid: int) -> MQTTErrorCode:
        if self.arrived is None:
            return super()._send_puback(mid)
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _send_pubrec(self, mid: int) -> MQTTErrorCode:
        if self.arrived is None:
            return super()._send_pubrec(mid)
        self._held_mid = mid
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _handle_publish(self) -> MQTTErrorCode:
        self._held_mid = 0
        result = super()._handle_publish()
        if self._held_mid and self.arrived is not None:
            self.arrived(self._in_messages[self._held_mid])
        return result


class MqttSource:
    """What arrives while one append is on its way to the disk forms the next one."""

    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self._options = spec.options
        self._qos = int(spec.options["qos"])
        self._topics = [t.strip() for t in spec.options["topic"].split(",")][:TOPICS_MAX]
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats
        self._client = _build_client(spec.options, f"edgewise-{spec.stream}")
        self._client.arrived = self._arrived
        self._client.on_message = self._on_message
        self._client.on_connect = self._on_connect
        self._messages: deque[paho.MQTTMessage] = deque()
        self._woken = False  # the loop knows that messages wait
        self._wake = asyncio.Event()
        self._held: set[int] = set()  # messages read and not yet acknowledged
        self._task: asyncio.Task[None] | None = None
        self._room = threading.BoundedSemaphore(IN_FLIGHT_MAX)
        self._stopping = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._subscribed = asyncio.Event()
        self._client.on_subscribe = self._on_subscribe

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await _connect(self._client, self._options)
        self._task = self._ingest.supervise(asyncio.create_task(self._run()))
        try:
            await asyncio.wait_for(self._subscribed.wait(), CONNECT_S)
        except TimeoutError:
            await self.stop()
            raise SetupError(
                f"{self._options['url']} did not accept a subscription to "
                f"'{self._options['topic']}' within {CONNECT_S:g} s"
            ) from None

    async def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=SETTLE_S)
            self._task.cancel()
        await self._ingest.close()
        await asyncio.to_thread(_disconnect, self._client)

    # --- in the thread of the client

    def _on_connect(self, client: Any, _data: Any, _flags: Any, reason: Any, _p: Any) -> None:
        if not reason.is_failure:
            client.subscribe([(topic, self._qos) for topic in self._topics])

    def _on_subscribe(self, _c: Any, _data: Any, _mid: Any, reasons: Any, _p: Any) -> None:
        if self._loop is not None and not any(r.is_failure for r in reasons):
            self._loop.call_soon_threadsafe(self._subscribed.set)

    def _on_message(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        if message.qos < 2:  # with QoS 2 this is the PUBREL of a message that was read already
            self._arrived(message)

    def _arrived(self, message: paho.MQTTMessage) -> None:
        while not self._room.acquire(timeout=0.1):
            if self._stopping.is_set():
                return
        if self._stopping.is_set() or self._loop is None:
            return
        self._messages.append(message)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake.set)

    # --- in the event loop

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await self._wake.wait()
            self._wake.clear()
            self._woken = False  # before reading: a message that arrives now wakes the loop again
            while self._messages and not self._stopping.is_set():
                await self._append(self._take_batch())

    def _take_batch(self) -> list[paho.MQTTMessage]:
        """The messages that arrived, up to a limit, without those already in flight."""
        batch: list[paho.MQTTMessage] = []
        size = 0
        while self._messages and size < BODY_BYTES_MAX:
            message = self._messages.popleft()
            if message.dup and message.mid in self._held:
                self._room.release()
                continue  # sent again after a broken connection; the first one is on its way
            if message.qos:
                self._held.add(message.mid)
            batch.append(message)
            size += len(message.payload)
        return batch

    async def _append(self, batch: list[paho.MQTTMessage]) -> None:
        events = self._ingest.read_each(bytes(message.payload) for message in batch)
        if events is not None:
            await self._ingest.append(events)
        for message in batch:  # in the order of arrival, as the protocol demands
            self._room.release()
            self._held.discard(message.mid)
            self._client.acknowledge(message.mid, message.qos)


class MqttSink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self._options = spec.options
        self._qos = int(spec.options["qos"])
        self._retain = spec.options["retain"] == "true"
        self._topic = build_renderer(MapSpec("text", {"template": spec.options["topic"]}), schema)
        self._producer = spec.stream if spec.options["version"] == "5" else ""
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats
        self._client = _build_client(spec.options, f"edgewise-{spec.stream}-sink")

    async def start(self) -> None:
        await _connect(self._client, self._options)
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()
        await asyncio.to_thread(_disconnect, self._client)

    async def _deliver(self, messages: list[Message]) -> None:
        await asyncio.to_thread(self._publish, messages)

    def _publish(self, messages: list[Message]) -> None:
        if not self._client.is_connected():
            raise Undelivered("the connection to the broker is broken")
        sent = []
        for message in messages:
            topic = self._topic(0, message.row).decode()
            try:
                info = self._client.publish(
                    topic,
                    message.payload,
                    self._qos,
                    self._retain,
                    _build_key(self._producer, message.offset) if self._producer else None,
                )
            except ValueError as error:
                raise Undelivered(f"topic '{topic}': {error}") from None
            sent.append(info)
        for info in sent:
            try:
                info.wait_for_publish(CONFIRM_S)
            except (RuntimeError, ValueError) as error:
                raise Undelivered(str(error)) from None
            if not info.is_published():
                raise Undelivered(f"the broker confirmed nothing for {CONFIRM_S:g} s")


def _build_key(producer: str, sequence: int) -> Properties:
    """What a receiver drops repeats by: a sequence is never used again, and only grows."""
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    properties.UserProperty = [("producer", producer), ("sequence", str(sequence))]
    return properties


def _build_client(options: Mapping[str, str], name: str) -> _Client:
    is_version_5 = options["version"] == "5"
    client = _Client(
        CallbackAPIVersion.VERSION2,
        client_id=options["client.id"] or name,
        protocol=_VERSIONS[options["version"]],
        clean_session=None if is_version_5 else False,
    )
    if options["username"]:
        client.username_pw_set(options["username"], options["password"] or None)
    if urlsplit(options["url"]).scheme == "mqtts":
        client.tls_set_context(ssl.create_default_context(cafile=options["ca"] or None))
    client.reconnect_delay_set(*RECONNECT_S)
    client.max_queued_messages_set(IN_FLIGHT_MAX * 4)
    return client


async def _connect(client: _Client, options: Mapping[str, str]) -> None:
    """Returns when the broker accepted the connection; the client reconnects by itself."""
    loop = asyncio.get_running_loop()
    accepted: asyncio.Future[Any] = loop.create_future()
    chained: Any = client.on_connect

    def on_connect(c: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        loop.call_soon_threadsafe(_set_reason, accepted, reason)
        if chained is not None:
            chained(c, data, flags, reason, properties)

    client.on_connect = on_connect
    url = urlsplit(options["url"])
    arguments: dict[str, Any] = {}
    if options["version"] == "5":
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = SESSION_S
        arguments = {"clean_start": False, "properties": properties}
    try:
        port = url.port or _PORTS[url.scheme]
        await asyncio.to_thread(
            client.connect, url.hostname or "", port, keepalive=30, **arguments
        )
        client.loop_start()
        reason = await asyncio.wait_for(accepted, CONNECT_S)
    except (OSError, TimeoutError) as error:
        await asyncio.to_thread(_disconnect, client)
        raise SetupError(f"no MQTT broker at {options['url']}: {error or 'no answer'}") from error
    if reason.is_failure:
        await asyncio.to_thread(_disconnect, client)
        raise SetupError(f"the broker at {options['url']} refused the connection: {reason}")


def _set_reason(accepted: asyncio.Future[Any], reason: Any) -> None:
    if not accepted.done():
        accepted.set_result(reason)


def _disconnect(client: _Client) -> None:
    client.disconnect()
    client.loop_stop()
