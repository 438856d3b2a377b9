"""`edgewise run` and `edgewise demo`: stand by, serve, and end cleanly.

A second node on the same data directory stands by and takes over when the first one is gone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path

import uvloop

from edgewise.edge.collector import calm
from edgewise.engines.inputs import demand_inputs
from edgewise.errors import EdgewiseError
from edgewise.event.position import Position
from edgewise.ha.driver import Lease, StandbyLoop
from edgewise.ha.election import (
    CaughtUp,
    NodeAction,
    Promote,
    RefuseWrites,
    Replay,
    StepDown,
    WritesRefused,
)
from edgewise.node import apps
from edgewise.node.children import Child
from edgewise.node.config import NodeConfig
from edgewise.node.ends import Ends
from edgewise.node.serve import Serving
from edgewise.node.terminal import Steps

DEMO_APP = Path(__file__).parent / "demo.siddhi"
# Java's second compiler takes a processor at the start and pays off after minutes: not in a demo.
QUICK_START = "-XX:TieredStopAtLevel=1"
WATCH_EVERY_S = 1.0
STANDBY_SAY_S = 0.7  # longer than a free lease takes, so that it is only said when it is true

WhenServing = Callable[[Serving], Awaitable[None]]


class Node:
    """Carries out what the election orders, one order at a time."""

    def __init__(self, config: NodeConfig, when_serving: WhenServing | None = None) -> None:
        self.config = config
        self.steps = Steps()
        self.loaded = apps.load(config.app, config.functions)
        demand_inputs(self.loaded.app)
        Ends.of(self.loaded.app, self.loaded.merges)  # said now, not when the lease is won
        self._when_serving = when_serving
        self._serving: Serving | None = None
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None
        self._reloading = asyncio.Lock()
        self._reloads: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload_soon)

        def obey(action: NodeAction) -> None:
            asyncio.run_coroutine_threadsafe(self._obey(action), loop).result()

        race = StandbyLoop(Lease(self.config.data), lambda: Position(0, 0), obey)
        self._race = race
        race.start()
        loop.call_later(STANDBY_SAY_S, self._say_standby)
        watch = asyncio.create_task(asyncio.to_thread(race.ended.wait))
        stop = asyncio.create_task(self._stop.wait())
        if self.config.watch:
            self._keep(self._watch_file())
        await asyncio.wait({watch, stop}, return_when=asyncio.FIRST_COMPLETED)
        for task in self._reloads:
            task.cancel()
        try:
            await asyncio.to_thread(race.drain)
        finally:
            await self._close()
            stop.cancel()
            await watch

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    def _reload_soon(self) -> None:
        self._keep(self._reload())

    async def _reload(self) -> None:
        """The app file once more. One that cannot be taken changes nothing."""
        async with self._reloading:
            try:
                loaded = apps.load(self.config.app, self.config.functions)
                if self._serving is not None:
                    await self._serving.change(loaded)
            except EdgewiseError as error:
                self.steps.say("app", f"not taken, the one before runs on: {error}")
                return
            self.loaded = loaded
            self.steps.say("app", f"{self.config.app} taken")

    async def _watch_file(self) -> None:
        """The file is read again when its text changes."""
        text = self.loaded.text
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            with suppress(OSError, UnicodeDecodeError):
                found = self.config.app.read_text(encoding="utf-8")
                if found != text:
                    text = found
                    await self._reload()

    async def _obey(self, action: NodeAction) -> None:
        match action:
            case Replay(epoch, _):
                self._serving = Serving(self.config, self.loaded, self.steps)
                await self._serving.open_logs()
                self._race.report(CaughtUp(epoch))
            case Promote():
                assert self._serving is not None
                await self._serving.promote()
                calm()
                if self._when_serving is not None:
                    await self._when_serving(self._serving)
            case RefuseWrites(epoch):
                self.steps.say("node", "lost the lease: stopped writing, standing by")
                await self._close()
                self._race.report(WritesRefused(epoch))
            case StepDown():
                await self._close()

    async def _close(self) -> None:
        serving, self._serving = self._serving, None
        if serving is not None:
            self.steps.say("node", "stopping")
            await serving.close()
            self.steps.say("node", "stopped")

    def _say_standby(self) -> None:
        if self._serving is None and not self._stop.is_set():
            self.steps.say("node", f"another node serves {self.config.data}: standing by")


def run(config: NodeConfig) -> None:
    """Until Ctrl-C."""
    uvloop.run(Node(with_page(config)).run())


def demo(config: NodeConfig) -> None:
    """The built-in pipeline with live data, in a data directory that is gone afterwards."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_START)
    directory = Path(tempfile.mkdtemp(prefix="edgewise-demo-"))
    generator: list[Child] = []

    async def play(serving: Serving) -> None:
        url = f"http://{config.host}:{serving.http_port}/streams/login_stream"
        logins = Child("edgewise.node.logins", [url])
        generator.append(logins)

        async def when_ready() -> None:
            await serving.ready.wait()
            await logins.start()
            serving.steps.say("logins", "a day of logins, about 2,000 events/s, has begun")
            page = f"http://{config.host}:{serving.edge_port}/"
            serving.steps.say("page", f"{page}  (Ctrl-C stops everything)")

        serving.spawn(when_ready())

    async def main() -> None:
        node = Node(with_page(dataclasses.replace(config, app=DEMO_APP, data=directory)), play)
        try:
            await node.run()
        finally:
            for child in generator:
                await child.stop()

    try:
        uvloop.run(main())
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def with_page(config: NodeConfig) -> NodeConfig:
    """The dashboard and the JavaScript client, from the package or from a checkout."""
    packaged = Path(__file__).parent / "assets"
    root = Path(__file__).parents[3]
    web, js = packaged / "web", packaged / "js"
    if not web.is_dir():
        web, js = root / "web", root / "clients" / "js"
    return dataclasses.replace(config, assets=(("/js/", js), ("/", web)))
