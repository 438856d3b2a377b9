"""What one node runs for one app: logs, doors, engine, edge. `ha` orders, this obeys.

Replay    open the logs; the edge reads back the current values of its topics
Promote   open the doors, start the engine
StepDown  close the doors, stop the engine, close the logs
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from edgewise.edge.feed import Feed
from edgewise.edge.server import Edge
from edgewise.edge.sink import TopicSink
from edgewise.errors import LogError, LogLocked, SetupError
from edgewise.event.arrow import SYSTEM_COUNT, record_batch
from edgewise.event.event import Kind
from edgewise.gateway.dedup import DedupWriter
from edgewise.gateway.doors import Sink, Source, sink_class, source_class
from edgewise.gateway.drain import FileCursor
from edgewise.gateway.http import HttpDoor
from edgewise.gateway.stats import DoorStats
from edgewise.log.api import CLOCK_NONE, LogReader, LogWriter
from edgewise.log.patient import PatientReader
from edgewise.log.places import open_reader, open_writer
from edgewise.node import apps
from edgewise.node.archiver import Archiver
from edgewise.node.changes import unlike
from edgewise.node.children import STEADY_S, Child, backoff_s
from edgewise.node.config import NodeConfig, WallClock
from edgewise.node.defaults import defaults_of
from edgewise.node.edges import EdgeProcesses, demand_free
from edgewise.node.ends import Ends
from edgewise.node.homes import Homes
from edgewise.node.layout import Layout
from edgewise.node.merges import register_aggregates
from edgewise.node.metrics import engine_metrics
from edgewise.node.rates import Rates
from edgewise.node.silence import Silence
from edgewise.node.terminal import Steps
from edgewise.node.watch import ERROR_CHARS_MAX, Watch
from edgewise.plan.nodes import Stream

RATES_EVERY_S = 0.5
MARK_EVERY_S = 1.0  # an idle stream still carries time
LINGER_S, LINGER_POLL_S = 5.0, 0.5  # how long the last writer may take to end


class Serving:
    """Everything between Promote and StepDown. Methods belong to the event loop."""

    def __init__(self, config: NodeConfig, loaded: apps.LoadedApp, steps: Steps) -> None:
        self.config = config
        self.app = loaded.app
        self.ends = Ends.of(loaded.app, loaded.merges)
        self.steps = steps
        self.layout = Layout(config.data, Homes.of(config.homes, loaded.app))
        self.writers: dict[str, LogWriter] = {}
        self.door: HttpDoor | None = None
        config.validate()
        self.archiver = Archiver(config.archive, self.layout.directories(loaded.app))
        self.edge = Edge(config.edge_config())
        register_aggregates(self.edge.fanout.merges, loaded.merges)
        self.edge.serve_all(loaded.answers)
        self.watch = Watch()
        self._edges = EdgeProcesses(self.edge, config.edge_processes, steps)
        self.feeds: list[Feed] = []
        self._fed: list[tuple[tuple[str, TopicSink], Feed]] = []
        self._changing = False  # the engine ends because the app is another now
        self.ready = asyncio.Event()
        self._others: list[Source | Sink] = []
        self._engine: Child | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False
        self.http_port = self.edge_port = 0

    async def open_logs(self) -> None:
        for stream in self.app.outputs:  # made here, so that the edge may tail them at once
            (await self._open_log(stream)).close()
        for stream in self.app.inputs:
            self.writers[stream.name] = await self._open_log(stream)
        self.steps.say("log", str(self.config.data))
        for stream in (*self.app.inputs, *self.app.outputs):
            place = self.layout.place(stream.name)
            if place != str(self.layout.log(stream.name)):
                self.steps.say("log", f"{stream.name} lives in {place}")
        host, port = self.config.edge_host or self.config.host, self.config.edge_port
        share = self.config.edge_processes > 1
        if share:
            demand_free(host, port)
        self.edge_port = await self.edge.start(host, port, share_port=share)
        await self._edges.start()
        for topic in self.ends.topics:
            self._feed(topic)

    def _feed(self, topic: tuple[str, TopicSink]) -> None:
        stream, sink = topic
        feed = Feed(self.edge, PatientReader(open_reader(self.layout.place(stream))), sink)
        feed.start()
        self.feeds.append(feed)
        self._fed.append((topic, feed))

    async def change(self, loaded: apps.LoadedApp) -> None:
        """Other queries behind the same doors. SetupError where that is not all that changed.

        Nothing is lost: what comes while the engine starts again waits in the log.
        """
        ends = Ends.of(loaded.app, loaded.merges)
        if why := unlike((self.app, self.ends), (loaded.app, ends), self.config.engine):
            raise SetupError(why)
        known = {s.name for s in self.app.streams}
        self.layout = Layout(self.config.data, Homes.of(self.config.homes, loaded.app))
        self.archiver = Archiver(self.config.archive, self.layout.directories(loaded.app))
        for stream in loaded.app.outputs:
            if stream.name not in known:
                (await self._open_log(stream)).close()
        self.app, self.ends = loaded.app, ends
        for topic, feed in [(t, f) for t, f in self._fed if t not in ends.topics]:
            feed.stop()
            self.feeds.remove(feed)
            self._fed.remove((topic, feed))
        fed = [topic for topic, _ in self._fed]
        for topic in ends.topics:
            if topic not in fed:
                self._feed(topic)
        self._changing = True
        if self._engine is not None:
            self._engine.ask_to_end()

    async def _open_log(self, stream: Stream) -> LogWriter:
        """The lease is ours, so whoever still writes has lost it: the engine of a node that was
        killed ends by itself, and one that hangs is fenced.
        """
        log, defaults = self.layout.place(stream.name), defaults_of(stream)
        deadline = time.monotonic() + LINGER_S
        while time.monotonic() < deadline:
            try:
                return await asyncio.to_thread(
                    open_writer, log, stream.schema, self.config.log, defaults=defaults
                )
            except LogLocked as error:
                self.steps.say("log", f"waiting for the last writer to end: {error}")
                await asyncio.sleep(LINGER_POLL_S)
        self.steps.say("log", f"took {log} over from a writer that hangs")
        return await asyncio.to_thread(
            open_writer, log, stream.schema, self.config.log, defaults=defaults, take_over=True
        )

    async def promote(self) -> None:
        doors = await asyncio.to_thread(self._door_writers)
        self.door = HttpDoor(doors, WallClock(), self.config.door_config(self.ends.sources))
        self.door.more_metrics = lambda: (
            engine_metrics(self.watch.topic()) + self.archiver.metrics()
        )
        self.http_port = await self.door.start(self.config.host, self.config.http_port)
        scheme = "https" if self.config.tls else "http"
        for name in self.writers:
            url = f"{scheme}://{self.config.host}:{self.http_port}/streams/{name}"
            self.steps.say("ingest", url)
        await self._open_other_doors(doors)
        edge_host = self.config.edge_host or self.config.host
        self.steps.say("edge", f"{scheme}://{edge_host}:{self.edge_port}/")
        self.edge.publish("$sys/app", {"name": self.app.name}, offset=0, at_us=0)
        self.spawn(self._keep_engine(), self._publish_rates(), self._carry_time())
        self.spawn(self._watch_doors(), self._tidy())
        self.spawn(*self._edges.keep(self._edge_arguments()))

    def _door_writers(self) -> dict[str, LogWriter]:
        """The input logs as doors see them: where ids are declared, each is appended once."""
        doors: dict[str, LogWriter] = dict(self.writers)
        for stream, dedup in self.ends.dedup.items():
            reader = open_reader(self.layout.place(stream))
            known = DedupWriter.open(self.writers[stream], reader, dedup)
            reader.close()
            doors[stream] = known
            self.steps.say(
                "dedup", f"{stream} by {dedup.attribute}: {known.remembered} ids of the log known"
            )
        return doors

    async def _open_other_doors(self, writers: dict[str, LogWriter]) -> None:
        schemas = {s.name: s.schema for s in self.app.streams}
        for source in self.ends.sources:
            if source.type != "http":
                door = source_class(source.type)(
                    source, schemas[source.stream], writers[source.stream], WallClock()
                )
                await door.start()
                self._others.append(door)
                self._list(f"{source.type} to {source.stream}", door.stats)
                self.steps.say("source", f"{source.type} to {source.stream}")
        for number, sink in enumerate(self.ends.sinks):
            reader = PatientReader(open_reader(self.layout.place(sink.stream)))
            cursor = FileCursor(self.layout.cursor(sink.stream, number))
            out = sink_class(sink.type)(sink, schemas[sink.stream], reader, cursor)
            await out.start()
            self._others.append(out)
            self._list(f"{sink.stream} to {sink.type}", out.stats)
            self.steps.say("sink", f"{sink.stream} to {sink.type}")

    def _list(self, name: str, stats: DoorStats) -> None:
        """For the page of metrics, which the HTTP door has."""
        assert self.door is not None
        same = sum(known.split(" #")[0] == name for known in self.door.others)
        self.door.others[f"{name} #{same + 1}" if same else name] = stats

    async def close(self) -> None:
        """In the order of the flow: what is acknowledged is in the log before it closes."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.door is not None:
            await self.door.stop()
        for other in self._others:
            await other.stop()
        if self._engine is not None:
            await self._engine.stop()
        for feed in self.feeds:
            feed.stop()
        await self._edges.stop()
        await self.edge.stop()
        for writer in self.writers.values():
            writer.close()

    def spawn(self, *coroutines: Any) -> None:
        for coroutine in coroutines:
            task = asyncio.create_task(coroutine, name=coroutine.__qualname__)
            task.add_done_callback(self._tell_failure)
            self._tasks.append(task)

    def _tell_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.steps.say("node", f"{task.get_name()} failed: {task.exception()!r}")

    async def _keep_engine(self) -> None:
        """A failing engine is started again, later each time, and says why."""
        failures = 0
        while not self._closed:
            began = time.monotonic()
            self._engine = Child(
                "edgewise.node.engine", self._engine_arguments(), self.layout.engine_noise
            )
            await self._engine.start()
            code = await self._engine.messages(self._hear)
            await self._engine.stop()
            self.watch.restart()
            if self._changing:
                self._changing, failures = False, 0
                continue
            failures = 1 if time.monotonic() - began > STEADY_S else failures + 1
            wait = backoff_s(failures)
            self.steps.say(
                "engine",
                f"ended with code {code} (see {self.layout.engine_noise}); "
                f"starting again in {wait:g} s",
            )
            await asyncio.sleep(wait)

    def _edge_arguments(self) -> list[str]:
        config = self.config
        words = [str(config.app), "--data", str(config.data)]
        words += ["--host", config.edge_host or config.host, "--port", str(self.edge_port)]
        words += ["--jwt-key", str(config.jwt_key)] if config.jwt_key else []
        words += ["--revoked", str(config.revoked)] if config.revoked else []
        words += ["--tls", *map(str, config.tls)] if config.tls else []
        for prefix, directory in config.assets:
            words += ["--asset", prefix, str(directory)]
        lists = {
            "--origin": config.origins,
            "--trusted-proxy": config.trusted_proxies,
            "--log": self.layout.homes.words(),
            "--functions": config.functions,
        }
        for flag, values in lists.items():
            for value in values:
                words += [flag, value]
        return words

    def _engine_arguments(self) -> list[str]:
        config = self.config
        return [
            str(config.app),
            *("--data", str(config.data), "--engine", config.engine),
            *("--master", config.master, "--partitions", str(config.partitions)),
            *("--trigger", str(config.trigger_ms), "--state", config.state),
            *("--retain-bytes", str(config.log.retain_bytes)),
            *("--retain-ms", str(config.log.retain_ms)),
            *(word for home in self.layout.homes.words() for word in ("--log", home)),
            *(word for name in config.functions for word in ("--functions", name)),
        ]

    def _hear(self, message: dict[str, Any]) -> None:
        if "step" in message:
            self.steps.say(self.config.engine, message["step"])
        if "failed" in message:
            self.watch.failed = str(message["failed"])[:ERROR_CHARS_MAX]
            self.steps.say("engine", f"failed: {message['failed']}")
        if "progress" in message:
            now_us = WallClock().now_us()
            self.watch.hear(message["progress"])
            self.edge.publish("$sys/engine", self.watch.topic(), offset=now_us, at_us=now_us)
            line = self.watch.line(time.monotonic())
            if line:
                self.steps.say(self.config.engine, line)
        if message.get("ready"):
            self.ready.set()

    async def _publish_rates(self) -> None:
        rates = Rates()
        while True:
            await asyncio.sleep(RATES_EVERY_S)
            assert self.door is not None
            rows_out = sum(feed.rows for feed in self.feeds)
            now_us = WallClock().now_us()
            value = rates.update(now_us, self.door.stats.accepted_total, rows_out)
            self.edge.publish("$sys/rates", value, offset=rates.count, at_us=now_us)

    async def _watch_doors(self) -> None:
        """A door that stopped by itself or waits is told once; the others go on."""
        told: set[int] = set()
        while True:
            await asyncio.sleep(MARK_EVERY_S)
            for door in self._others:
                if door.stats.failed and id(door) not in told:
                    told.add(id(door))
                    self.steps.say("door", f"{type(door).__name__}: {door.stats.failed}")
                elif not door.stats.failed and id(door) in told:
                    told.remove(id(door))
                    self.steps.say("door", f"{type(door).__name__} goes on")

    async def _carry_time(self) -> None:
        """A stream that falls silent still moves time, at the pace of ours, so timers fire."""
        readers = {n: open_reader(self.layout.place(n)) for n in self.writers}
        now_s = time.monotonic()
        silences = {n: Silence(w.head.offset, now_s) for n, w in self.writers.items()}
        try:
            while True:
                await asyncio.sleep(MARK_EVERY_S)
                for name, writer in self.writers.items():
                    by_ms = silences[name].lasts_ms(writer.head.offset, time.monotonic())
                    if by_ms:
                        await asyncio.to_thread(_mark_next, writer, readers[name], by_ms)
                        silences[name].marked(writer.head.offset)
        finally:
            for reader in readers.values():
                reader.close()

    async def _tidy(self) -> None:
        """Retention of the logs we write, and old ledgers of all logs to Parquet."""
        while True:
            await asyncio.sleep(self.config.tidy_every_s)
            now_ms = WallClock().now_us() // 1000
            for writer in self.writers.values():
                with suppress(LogError):  # a broker that is away is told by the doors
                    await asyncio.to_thread(writer.retain, now_ms)
            if self.config.archive.wanted:
                await asyncio.to_thread(self.archiver.run, now_ms)


def _mark_next(writer: LogWriter, reader: LogReader, by_ms: int) -> None:
    """While a disk is full or a broker away no event can come either: time stands still."""
    with suppress(LogError):
        clock = reader.clock(writer.head.offset)
        if clock != CLOCK_NONE:
            mark(writer, clock + by_ms)


def mark(writer: LogWriter, ts: int) -> None:
    """Time moved to `ts`, nothing happened."""
    columns: list[list[Any]] = [[None]] * (len(writer.schema) - SYSTEM_COUNT)
    at_us = WallClock().now_us()
    writer.append(record_batch(writer.schema, [ts], [at_us], [int(Kind.MARK)], columns))
