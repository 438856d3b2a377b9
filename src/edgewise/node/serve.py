"""Run the parts of an active node: logs, sources, sinks, engine and edge of one app.

The election of `ha` decides when; `run` calls, by order:

    SWITCH       open_logs()  open the logs; the edge reads the current values of its topics
    ACTIVATE     promote()    start sources, sinks and the engine
    FENCE, STOP  close()      stop them in the order of the flow, close the logs
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from edgewise.edge.server.log_feed import LogFeed, wait_caught_up
from edgewise.edge.server.server import Edge
from edgewise.edge.topics.topic_sink import TopicSink
from edgewise.engines.batch.outputs import FAULTS
from edgewise.errors import EdgewiseError, LogError, LogLocked, SetupError
from edgewise.gateway.connectors import Connector, load_sink_class, load_source_class
from edgewise.gateway.dedup import DedupWriter
from edgewise.gateway.http import IngestServer
from edgewise.gateway.query_endpoint import QueryEndpoint
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.stats import ConnectorStats
from edgewise.ha.fsm import Role
from edgewise.ha.status import RoleStatus, assume_active, describe_role, format_metrics
from edgewise.log.api import LogWriter
from edgewise.log.locations import open_reader, open_writer
from edgewise.log.retrying_reader import RetryingReader
from edgewise.node.app import extensions
from edgewise.node.app.app_topic import APP_TOPIC, describe_app
from edgewise.node.app.attribute_defaults import read_defaults
from edgewise.node.app.declared_merges import register_aggregates
from edgewise.node.app.load import LoadedApp
from edgewise.node.app.sources_sinks import SourcesAndSinks, check_live_change
from edgewise.node.commands.query import answer_query
from edgewise.node.config import NodeConfig, WallClock
from edgewise.node.data_dir import DataDirectory, describe_retention
from edgewise.node.log_locations import LogLocations
from edgewise.node.processes.children import Child
from edgewise.node.processes.edge_pool import EdgePool, require_free_port
from edgewise.node.processes.engine_supervisor import EngineSupervisor
from edgewise.node.terminal import Terminal
from edgewise.node.upkeep.archiver import Archiver
from edgewise.node.upkeep.file_limit import watch_file_limit
from edgewise.node.upkeep.health import ClockWatch, HealthMonitor, RecentIncrease, measure_disk
from edgewise.node.upkeep.idle_clock import IdleTicker
from edgewise.node.upkeep.metrics import Rates, render_engine_metrics
from edgewise.plan.nodes import Stream

RATES_EVERY_S = 0.5
CONNECTORS_EVERY_S = 1.0  # how often failures of sources and sinks are looked for
# How long to wait for the writer of the last node to end before it is fenced; and how long where
# it cannot be fenced: a broker takes 6 s to notice that a client has died.
LAST_WRITER_S, LAST_WRITER_POLL_S, UNPROTECTED_WRITER_S = 0.6, 0.1, 10.0


class ActiveNode:
    """All parts of a node that has the lease. Methods belong to the event loop."""

    def __init__(
        self,
        config: NodeConfig,
        loaded: LoadedApp,
        terminal: Terminal,
        stop: Callable[[EdgewiseError], None] = lambda _error: None,
        prepared: Child | None = None,
    ) -> None:
        """`stop` ends the node, after an error that no retry can help; `prepared` is the engine
        that it started as a standby.
        """
        config.validate()
        self.app = loaded.app
        self.declared = SourcesAndSinks.parse(loaded.app, loaded.merges)
        self.terminal = terminal
        self.data_dir = DataDirectory(
            config.data, LogLocations.parse(config.log_locations, loaded.app)
        )
        if line := self.data_dir.make_private():
            terminal.say("data", line)
        self.config = config = config.bound_logs(self.data_dir, loaded.app)
        self.writers: dict[str, LogWriter] = {}
        self.role_status: Callable[[], RoleStatus] = assume_active  # `run` sets it
        self.ingest: IngestServer | None = None
        self.archiver = Archiver(config.archive, self.data_dir.log_directories(loaded.app))
        self.edge = Edge(config.edge_config())
        register_aggregates(self.edge.fanout.merges, loaded.merges)
        self.edge.serve_all(loaded.answers)
        self.engine = EngineSupervisor(
            config,
            self.data_dir.engine_log,
            terminal,
            partial(self._publish_now, "$sys/engine"),
            stop,
            prepared=prepared,
        )
        self.health = HealthMonitor(self._examine_parts)
        self._disk = measure_disk(config.data)
        self._full_appends, self._clock_watch = RecentIncrease(), ClockWatch()
        self._edge_pool = EdgePool(self.edge, config.edge_processes, terminal)
        self.feeds: list[tuple[str, TopicSink, LogFeed]] = []
        self._connectors: list[Connector] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.http_port = self.edge_port = 0

    async def open_logs(self) -> None:
        # Output logs are created here, so that the edge can read them at once; and all logs are
        # taken from an engine of the last node that hangs, its log of faults too.
        await self._open_writers((*self.app.inputs, *self.app.outputs, FAULTS))
        for stream in (*self.app.outputs, FAULTS):
            self.writers.pop(stream.name).close()
        self.terminal.say("log", f"{self.config.data}, {describe_retention(self.config.log)}")
        for stream in (*self.app.inputs, *self.app.outputs):
            location = self.data_dir.log_location(stream.name)
            if location != str(self.data_dir.log_directory(stream.name)):
                self.terminal.say("log", f"{stream.name} is in {location}")
        host, port = self.config.edge_host or self.config.host, self.config.edge_port
        share = self.config.edge_processes > 1
        if share:
            require_free_port(host, port)
        # It listens last: a client finds the current values, and never goes back to older ones.
        await self.edge.attach_loop()
        for name, sink in self.declared.topics:
            self._start_feed(name, sink)
        await wait_caught_up(feed for _, _, feed in self.feeds)
        self.edge_port = await self.edge.start(host, port, share_port=share)
        await self._edge_pool.start()

    def _start_feed(self, stream: str, sink: TopicSink) -> None:
        reader = RetryingReader(open_reader(self.data_dir.log_location(stream)))
        feed = LogFeed(self.edge, reader, sink)
        feed.start()
        self.feeds.append((stream, sink, feed))

    async def change_app(self, loaded: LoadedApp) -> None:
        """Run other queries with the same sources and sinks. SetupError where more changed.

        Nothing is lost: events that come while the engine starts again wait in the log.
        """
        declared = SourcesAndSinks.parse(loaded.app, loaded.merges)
        old, new = (self.app, self.declared), (loaded.app, declared)
        if why := check_live_change(old, new):
            raise SetupError(why)
        known = {s.name for s in self.app.streams}
        self.data_dir = DataDirectory(
            self.config.data, LogLocations.parse(self.config.log_locations, loaded.app)
        )
        self.archiver = Archiver(self.config.archive, self.data_dir.log_directories(loaded.app))
        for stream in loaded.app.outputs:
            if stream.name not in known:
                (await self._open_log(stream)).close()
        self.app, self.declared = loaded.app, declared
        for entry in [e for e in self.feeds if e[:2] not in declared.topics]:
            entry[2].stop()
            self.feeds.remove(entry)
        running = [entry[:2] for entry in self.feeds]
        for name, sink in declared.topics:
            if (name, sink) not in running:
                self._start_feed(name, sink)
        self._publish_app()
        self.engine.restart()

    def _publish_app(self) -> None:
        self._publish_now(APP_TOPIC, describe_app(self.app, self.declared, self.config.engine))

    async def _open_writers(self, streams: Sequence[Stream]) -> None:
        """All at once: waiting for writers that hang takes as long as for one."""
        opened = await asyncio.gather(*map(self._open_log, streams), return_exceptions=True)
        for stream, writer in zip(streams, opened, strict=True):
            if not isinstance(writer, BaseException):
                self.writers[stream.name] = writer
        for result in opened:
            if isinstance(result, BaseException):
                raise result

    async def _open_log(self, stream: Stream) -> LogWriter:
        """Open it for writing, and fence a writer that hangs.

        The lease is ours, so any other writer has lost it: the engine of a node that was killed
        ends by itself within moments. A log that the lease does not protect is never taken from
        its writer.
        """
        log, defaults = self.data_dir.log_location(stream.name), read_defaults(stream)
        protected = self.data_dir.is_protected(stream.name)
        deadline = time.monotonic() + (LAST_WRITER_S if protected else UNPROTECTED_WRITER_S)
        waiting = False
        while True:
            try:
                return await asyncio.to_thread(
                    open_writer, log, stream.schema, self.config.log, defaults=defaults
                )
            except LogLocked as error:
                if time.monotonic() >= deadline:
                    if not protected:
                        raise
                    break
                if not waiting:
                    self.terminal.say("log", f"waiting for the last writer to end: {error}")
                waiting = True
                await asyncio.sleep(LAST_WRITER_POLL_S)
        self.terminal.say("log", f"{log}: fenced a writer that does not end")
        return await asyncio.to_thread(
            open_writer, log, stream.schema, self.config.log, defaults=defaults, take_over=True
        )

    async def promote(self) -> None:
        config = self.config
        writers = await asyncio.to_thread(self._wrap_writers)
        self.ingest = IngestServer(
            writers, WallClock(), config.ingest_config(self.declared.sources)
        )
        self.ingest.extra_metrics = lambda: (
            render_engine_metrics(self.engine.status.to_topic())
            + self.archiver.metrics()
            + format_metrics(self.role_status())
        )
        self.ingest.health = self._describe_health
        self.ingest.queries = QueryEndpoint(self._answer_query)
        self.ingest.check_disk = lambda: (self._disk.problem, self._disk.pause_s)
        self.http_port = await self.ingest.start(config.host, config.http_port)
        scheme = "https" if config.tls else "http"
        for name in self.writers:
            url = f"{scheme}://{config.host}:{self.http_port}/streams/{name}"
            self.terminal.say("ingest", url)
        await self._start_connectors(writers)
        edge_host = config.edge_host or config.host
        self.terminal.say("edge", f"{scheme}://{edge_host}:{self.edge_port}/")
        self._publish_app()
        locations = {name: self.data_dir.log_location(name) for name in self.writers}
        self.spawn(self.engine.run(), IdleTicker(self.writers, locations).run())
        self.spawn(self._publish_rates(), self._report_connectors(), self._clean_up())
        self.spawn(self._publish_role())
        self.spawn(
            self.health.run(
                partial(self._publish_now, "$sys/health"), partial(self.terminal.say, "health")
            )
        )
        self.spawn(watch_file_limit(partial(self.terminal.say, "limit")))
        self.spawn(
            *self._edge_pool.keep(replace(config, edge_host=edge_host, edge_port=self.edge_port))
        )

    def _wrap_writers(self) -> dict[str, LogWriter]:
        """The writers for sources: where a stream declares dedup, each id is appended once."""
        writers: dict[str, LogWriter] = dict(self.writers)
        for stream, dedup in self.declared.dedup.items():
            reader = open_reader(self.data_dir.log_location(stream))
            writer = DedupWriter.open(self.writers[stream], reader, dedup)
            reader.close()
            writers[stream] = writer
            self.terminal.say(
                "dedup",
                f"{stream} by {dedup.attribute}: {writer.remembered} ids read from its log",
            )
        return writers

    async def _start_connectors(self, writers: dict[str, LogWriter]) -> None:
        schemas = {s.name: s.schema for s in self.app.streams}
        for spec in self.declared.sources:
            if spec.type == "http":
                continue
            source = load_source_class(spec.type)(
                spec, schemas[spec.stream], writers[spec.stream], WallClock()
            )
            await source.start()
            self._add_connector("source", f"{spec.type} to {spec.stream}", source)
        for number, sink_spec in enumerate(self.declared.sinks):
            stream = sink_spec.stream
            reader = RetryingReader(open_reader(self.data_dir.log_location(stream)))
            cursor = FileCursor(self.data_dir.cursor(stream, number))
            sink = load_sink_class(sink_spec.type)(sink_spec, schemas[stream], reader, cursor)
            await sink.start()
            self._add_connector("sink", f"{stream} to {sink_spec.type}", sink)

    def _add_connector(self, kind: str, name: str, connector: Connector) -> None:
        assert self.ingest is not None
        self._connectors.append(connector)
        self._add_stats(self.ingest.connectors, name, connector.stats)
        self.terminal.say(kind, name)

    @staticmethod
    def _add_stats(listed: dict[str, ConnectorStats], name: str, stats: ConnectorStats) -> None:
        same = sum(known.split(" #")[0] == name for known in listed)
        listed[f"{name} #{same + 1}" if same else name] = stats

    async def close(self) -> None:
        """In the order of the flow: what was acknowledged is in the log before it closes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.ingest is not None:
            await self.ingest.stop()
        for connector in self._connectors:
            await connector.stop()
        await self.engine.stop()
        for _, _, feed in self.feeds:
            feed.stop()
        await self._edge_pool.stop()
        await self.edge.stop()
        for writer in self.writers.values():
            writer.close()

    def spawn(self, *coroutines: Any) -> None:
        for coroutine in coroutines:
            task = asyncio.create_task(coroutine, name=coroutine.__qualname__)
            task.add_done_callback(self._report_failure)
            self._tasks.append(task)

    def _report_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.terminal.say("node", f"{task.get_name()} failed: {task.exception()!r}")

    def _publish_now(self, path: str, value: dict[str, Any]) -> None:
        now_us = WallClock().now_us()
        self.edge.publish(path, value, offset=now_us, at_us=now_us)

    def _examine_parts(self, now_s: float) -> dict[str, str]:
        """Why each part does not work; '' where it does."""
        assert self.ingest is not None
        self._disk = measure_disk(self.config.data)
        refused = self.ingest.stats.refused
        full = sum(n for (_, code), n in refused.items() if code in {"full", "log"})
        role = self.role_status().role
        parts = {
            "engine": self.engine.status.describe_problem(now_s, self.config.stall_s),
            "log": "events were refused: it takes nothing, see the part disk and the log file"
            if self._full_appends.check(full, now_s)
            else "",
            "disk": self._disk.problem,
            "lease": "" if role is Role.ACTIVE else f"the role is {role.name.lower()}",
            "edge": "; ".join(f"{n}: {f.error}" for n, _, f in self.feeds if f.error is not None),
            "clock": self._clock_watch.describe(time.time(), now_s),
        }
        return parts | {name: s.failed for name, s in self.ingest.connectors.items()}

    def _describe_health(self, detailed: bool) -> tuple[bool, bytes]:
        report = self.health.report
        body = report.to_dict(detailed=detailed) | describe_role(self.role_status())
        return report.ready, msgspec.json.encode(body)

    def _answer_query(self, text: str) -> bytes:
        """In a thread: it reads the state that the engine saved last."""
        functions = extensions.find(self.config.functions).functions
        checkpoint = self.data_dir.checkpoint(self.app.name)
        return answer_query(self.app, text, checkpoint, functions).encode()

    async def _publish_rates(self) -> None:
        rates = Rates()
        while True:
            await asyncio.sleep(RATES_EVERY_S)
            assert self.ingest is not None
            rows_out = sum(feed.rows for _, _, feed in self.feeds)
            now_us = WallClock().now_us()
            value = rates.update(now_us, self.ingest.stats.accepted_total, rows_out)
            self.edge.publish("$sys/rates", value, offset=rates.count, at_us=now_us)

    async def _publish_role(self) -> None:
        status: RoleStatus | None = None
        while True:
            if status != self.role_status():
                status = self.role_status()
                self._publish_now("$sys/ha", describe_role(status))
            await asyncio.sleep(RATES_EVERY_S)

    async def _report_connectors(self) -> None:
        """Say once when a source or sink stops by itself or waits, and when it goes on."""
        failed: set[int] = set()
        while True:
            await asyncio.sleep(CONNECTORS_EVERY_S)
            for number, connector in enumerate(self._connectors):
                name, reason = type(connector).__name__, connector.stats.failed
                if reason and number not in failed:
                    failed.add(number)
                    self.terminal.say("node", f"{name}: {reason}")
                elif not reason and number in failed:
                    failed.remove(number)
                    self.terminal.say("node", f"{name} goes on")

    async def _clean_up(self) -> None:
        """Apply retention to the input logs, and move old ledgers of all logs to Parquet."""
        while True:
            await asyncio.sleep(self.config.clean_up_every_s)
            now_ms = WallClock().now_us() // 1000
            for writer in self.writers.values():
                with suppress(LogError):  # sources report a broker that is away
                    await asyncio.to_thread(writer.retain, now_ms)
            if self.config.archive.wanted:
                await asyncio.to_thread(self.archiver.run, now_ms)
