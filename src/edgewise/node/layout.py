"""Where things live in a data directory. Nobody else joins these paths.

<data>/log/<stream>/        segment files of a stream, unless its log lives elsewhere (`homes`)
<data>/checkpoint/<app>/    offsets and kernel state of an app
<data>/sinks/               how far each sink has delivered
<data>/scratch/             Spark's shuffle files; safe to delete while nothing runs
<data>/lease                who may write here
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgewise.log.places import broker_and_topic
from edgewise.node.homes import Homes
from edgewise.plan.nodes import App

RETAIN_EVERY_S = 60.0  # how often each owner of a log lets old segments go


@dataclass(frozen=True, slots=True)
class Layout:
    data: Path
    homes: Homes = Homes()

    def place(self, stream: str) -> str:
        """Where its log lives, as `log.places` opens it; faults always here, with the engine."""
        if stream.startswith(("!", "$")):  # no names for a topic
            return str(self.log(stream))
        return self.homes.place(stream, self.log(stream))

    def log(self, stream: str) -> Path:
        return self.data / "log" / stream

    def directories(self, app: App) -> dict[str, Path]:
        """The logs of an app that live in files, by stream."""
        places = {s.name: self.place(s.name) for s in (*app.inputs, *app.outputs)}
        return {n: Path(place) for n, place in places.items() if not broker_and_topic(place)[0]}

    def checkpoint(self, app: str) -> Path:
        return self.data / "checkpoint" / app

    def cursor(self, stream: str, number: int) -> Path:
        return self.data / "sinks" / f"{stream}.{number}"

    @property
    def scratch(self) -> Path:
        return self.data / "scratch"

    @property
    def engine_noise(self) -> Path:
        return self.data / "engine.log"
