"""Run a node: stand by, become active, and stop cleanly (`edgewise run`, `edgewise demo`).

A second node on the same logs stands by and takes over when the first one ends. The election of
`ha` gives the orders, one at a time; `serve` carries them out. A warm standby has its engine
started, and on Spark its JVM; a cold one starts it after the win and needs no memory before.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path

import uvloop

from edgewise.edge.server.gc_tuning import tune_collector
from edgewise.engines.batch.inputs import require_inputs
from edgewise.errors import EdgewiseError, SetupError, require_package
from edgewise.event.position import Position
from edgewise.ha.election import NodeOrder, OrderDone
from edgewise.ha.fsm import RoleOrder
from edgewise.ha.standby import StandbyLoop
from edgewise.log.locations import open_lease
from edgewise.node.app.load import load as load_app
from edgewise.node.app.sources_sinks import SourcesAndSinks
from edgewise.node.commands.demo_data import DemoDataConfig
from edgewise.node.config import WARM, NodeConfig
from edgewise.node.data_dir import DataDirectory
from edgewise.node.log_locations import LogLocations
from edgewise.node.pages import DEMO, add_page
from edgewise.node.processes.children import Child
from edgewise.node.processes.engine_supervisor import prepare_engine
from edgewise.node.serve import ActiveNode
from edgewise.node.terminal import Terminal
from edgewise.node.upkeep.file_limit import raise_file_limit
from edgewise.spark.masters import Master, parse_settings

DEMO_APP = Path(__file__).parent / "demo.siddhi"
# Java's second compiler uses a processor at the start and pays off after minutes: not in a demo.
DEMO_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
WATCH_EVERY_S = 1.0
# Logs, state and sinks of a node are for its owner only, wherever they are; its children and
# Spark's JVM inherit it.
PRIVATE_UMASK = 0o077
STANDBY_SAY_S = 0.7  # longer than it takes to get a free lease

WhenActive = Callable[[ActiveNode], Awaitable[None]]


class Node:
    """Carries out what the election orders, one order at a time."""

    def __init__(self, config: NodeConfig, when_active: WhenActive | None = None) -> None:
        self.config = config
        self.terminal = Terminal()
        self.loaded = load_app(config.app, config.functions)
        require_inputs(self.loaded.app)
        if config.engine == "spark":
            Master.parse(config.master)
            parse_settings(config.spark_settings, config.packages)
            require_package("pyspark", "say --engine embedded")
            require_java(os.environ)
        # Errors in annotations are reported now, not when the node becomes active.
        SourcesAndSinks.parse(self.loaded.app, self.loaded.merges)
        self._data_dir = DataDirectory(
            config.data, LogLocations.parse(config.log_locations, self.loaded.app)
        )
        self._when_active = when_active
        self._active: ActiveNode | None = None
        self._prepared: Child | None = None  # the engine of a warm standby
        self._stop = asyncio.Event()
        self._failure: EdgewiseError | None = None
        self._reloading = asyncio.Lock()
        self._reload_tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload_soon)

        orders: asyncio.Queue[NodeOrder] = asyncio.Queue()

        def carry_out(order: NodeOrder) -> None:
            loop.call_soon_threadsafe(orders.put_nowait, order)

        self._data_dir.make_private()
        lease = open_lease(self._data_dir.lease_location)
        standby = StandbyLoop(lease, lambda: Position(0, 0), carry_out)
        self._standby = standby
        carrying_out = asyncio.create_task(self._carry_out_orders(orders))
        standby.start()
        loop.call_later(STANDBY_SAY_S, self._say_standby)
        ended = asyncio.create_task(asyncio.to_thread(standby.ended.wait))
        stop = asyncio.create_task(self._stop.wait())
        if self.config.watch:
            self._start_task(self._watch_file())
        await asyncio.wait({ended, stop}, return_when=asyncio.FIRST_COMPLETED)
        for task in self._reload_tasks:
            task.cancel()
        try:
            await asyncio.to_thread(standby.stop)
        finally:
            carrying_out.cancel()
            await self._close()
            stop.cancel()
            await ended
        if self._failure is not None:
            raise self._failure

    def _stop_with(self, error: EdgewiseError) -> None:
        self._failure = error
        self._stop.set()

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._reload_tasks.add(task)
        task.add_done_callback(self._reload_tasks.discard)

    def _reload_soon(self) -> None:
        self._start_task(self._reload())

    async def _reload(self) -> None:
        """Load the app file again. Where it cannot be used, the old version keeps running."""
        async with self._reloading:
            try:
                loaded = load_app(self.config.app, self.config.functions)
                if self._active is not None:
                    await self._active.change_app(loaded)
            except EdgewiseError as error:
                self.terminal.say("app", f"not changed, the old version keeps running: {error}")
                return
            self.loaded = loaded
            if self._prepared is not None:
                await self._prepare_engine()
            self.terminal.say("app", f"{self.config.app} loaded again")

    async def _watch_file(self) -> None:
        """Reload the app when the text of its file changes."""
        text = self.loaded.text
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            with suppress(OSError, UnicodeDecodeError):
                found = self.config.app.read_text(encoding="utf-8")
                if found != text:
                    text = found
                    await self._reload()

    async def _carry_out_orders(self, orders: asyncio.Queue[NodeOrder]) -> None:
        """One after the other; the loop that gives them renews the lease meanwhile."""
        while True:
            order = await orders.get()
            try:
                await self._carry_out(order.order)
                self._standby.report(OrderDone(order.order, order.epoch))
            except Exception as error:  # noqa: BLE001 - raised again by `StandbyLoop.stop`
                self._standby.fail(error)
                return

    async def _carry_out(self, order: RoleOrder) -> None:
        match order:
            case RoleOrder.BOOT:
                pass  # the app was loaded and checked before
            case RoleOrder.SYNC:
                if self.config.standby == WARM:
                    await self._prepare_engine()
            case RoleOrder.SWITCH:
                prepared, self._prepared = self._prepared, None
                self._active = ActiveNode(
                    self.config, self.loaded, self.terminal, self._stop_with, prepared
                )
                self._active.role_status = lambda: self._standby.status
                await self._active.open_logs()
            case RoleOrder.ACTIVATE:
                assert self._active is not None
                await self._active.promote()
                tune_collector()
                if self._when_active is not None:
                    await self._when_active(self._active)
            case RoleOrder.FENCE:
                self.terminal.say("node", "lost the lease: stopped writing, standing by")
                await self._close()
            case RoleOrder.STOP:
                await self._close()

    async def _prepare_engine(self) -> None:
        """Not waited for: a node that is alone takes the lease at once."""
        await self._stop_prepared()
        config = self.config.bound_logs(self._data_dir, self.loaded.app)
        self._prepared = await prepare_engine(config, self._data_dir.engine_log)

    async def _stop_prepared(self) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            await prepared.stop()

    async def _close(self) -> None:
        await self._stop_prepared()
        active, self._active = self._active, None
        if active is not None:
            self.terminal.say("node", "stopping")
            await active.close()
            self.terminal.say("node", "stopped")

    def _say_standby(self) -> None:
        if self._active is None and not self._stop.is_set():
            self.terminal.say(
                "node", f"another node is active on {self._data_dir.lease_location}: standing by"
            )


def run(config: NodeConfig) -> None:
    """Run until Ctrl-C."""
    os.umask(PRIVATE_UMASK)
    raise_file_limit()
    uvloop.run(Node(add_page(config)).run())


def demo(config: NodeConfig) -> None:
    """Run the built-in app with live data, in a data directory that is removed afterwards."""
    os.umask(PRIVATE_UMASK)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", DEMO_JAVA_OPTIONS)
    directory = Path(tempfile.mkdtemp(prefix="edgewise-demo-"))
    senders: list[Child] = []

    async def start_demo_data(active: ActiveNode) -> None:
        url = f"http://{config.host}:{active.http_port}/streams/login_stream"
        sender = Child("edgewise.node.commands.demo_data", DemoDataConfig(url))
        senders.append(sender)

        async def when_ready() -> None:
            await active.engine.ready.wait()
            await sender.start()
            active.terminal.say("logins", "sending about 2,000 logins per second")
            page = f"http://{config.host}:{active.edge_port}/"
            active.terminal.say("page", f"{page}  (Ctrl-C stops everything)")

        active.spawn(when_ready())

    async def main() -> None:
        node = Node(
            add_page(dataclasses.replace(config, app=DEMO_APP, data=directory), DEMO),
            start_demo_data,
        )
        try:
            await node.run()
        finally:
            for child in senders:
                await child.stop()

    try:
        uvloop.run(main())
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def require_java(environment: Mapping[str, str]) -> None:
    """SetupError where Spark would find no Java; it would say so in a page of its own errors."""
    home = environment.get("JAVA_HOME", "")
    java = Path(home) / "bin" / "java" if home else None
    if java.is_file() if java else shutil.which("java", path=environment.get("PATH", "")):
        return
    where = f"{java} does not exist" if java else "there is no `java` on the PATH"
    raise SetupError(
        f"Spark needs Java 17 or later and {where}: install a JDK or set JAVA_HOME, or run with "
        "--engine embedded"
    )
