"""The original beside us: random apps played on both, and what is not the same.

The peer is `bench/peers/siddhi/Play.java` on siddhi-core; one process plays all jobs.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.conformance.compare import same_rows
from tests.conformance.engines import Rows, _kind
from tests.conformance.random_apps import START, case

from edgewise.engines.embedded import InMemoryEngine
from edgewise.event.event import EventKind
from edgewise.lang import compile_app

LINGER_MS = 200  # time moves on after the last event, so that every timer fires
PEER_SECONDS_MAX = 600
ARRAY_MAX = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """One app with its events; `watched` is the query or stream whose rows count.

    With `arrays` events of one stream that follow each other are sent together, as one chunk at
    the time of the last.
    """

    name: str
    app: str
    events: list[tuple[str, int, list[Any]]]
    watched: str
    arrays: bool = False

    @property
    def chunks(self) -> list[tuple[str, list[tuple[int, list[Any]]]]]:
        found: list[tuple[str, list[tuple[int, list[Any]]]]] = []
        for stream, ts, data in self.events:
            if self.arrays and found and found[-1][0] == stream and len(found[-1][1]) < ARRAY_MAX:
                found[-1][1].append((ts, data))
            else:
                found.append((stream, [(ts, data)]))
        return [(stream, [(chunk[-1][0], data) for _, data in chunk]) for stream, chunk in found]

    @property
    def job(self) -> dict[str, Any]:
        steps: list[dict[str, Any]] = [
            {"stream": stream, "events": chunk}
            if self.arrays
            else {"stream": stream, "ts": chunk[0][0], "data": chunk[0][1]}
            for stream, chunk in self.chunks
        ]
        steps.append({"ts": self.events[-1][1] + LINGER_MS})
        watch = {"queries": ["q"], "streams": []}
        if self.watched == "O":
            watch = {"queries": [], "streams": ["O"]}
        return {"app": self.app, "start": START, "steps": steps, **watch}


def trial(family: str, seed: int, *, arrays: bool = False) -> Trial:
    text, events = case(family, random.Random(f"{family} {seed}"))
    name = f"{family} {seed}{' in arrays' if arrays else ''}"
    return Trial(name, text, events, "q" if "@info" in text else "O", arrays)


def ours(trial: Trial) -> Rows:
    app = compile_app(trial.app).app
    engine = InMemoryEngine(app, taps=["q"] if trial.watched == "q" else [], start=START)
    for stream, chunk in trial.chunks:
        if trial.arrays:
            engine.send_chunk(stream, chunk)
        else:
            engine.send(stream, *chunk[0])
    engine.advance(trial.events[-1][1] + LINGER_MS)
    name = "@q" if trial.watched == "q" else "O"
    if trial.watched == "q":
        query = next(q for q in app.queries if q.name == "q")
        kinds = [_kind(i.expr.type) for i in query.select.items]
    else:
        kinds = [_kind(a.type) for a in app.stream("O").schema.attributes]
    rows = Rows(current_at=[], expired_at=[], kinds=kinds)
    for row in engine.kernel.take():
        if row.stream == name:
            kind = row.kind if trial.watched == "q" else EventKind.CURRENT
            rows.add(list(row.data), kind, row.clock)
    return rows


def theirs(classpath: str, trials: Iterable[Trial]) -> list[dict[str, Any]]:
    lines = "".join(json.dumps(t.job) + "\n" for t in trials)
    done = subprocess.run(
        ["java", "-Xmx600m", "-cp", classpath, "Play"],
        input=lines, capture_output=True, text=True, check=True, timeout=PEER_SECONDS_MAX,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def _same(
    trial: Trial, due: list[int], data: list[Any], seen: list[Any], kinds: list[str | None]
) -> bool:
    """In order; of several keys whose timers are due together the order is nobody's wish."""
    if not trial.app.endswith("end;"):
        return same_rows(data, seen, kinds, ordered=True)
    at = {moment: [i for i, m in enumerate(due) if m == moment] for moment in due}
    return all(
        same_rows([data[i] for i in where], [seen[i] for i in where], kinds, ordered=False)
        for where in at.values()
    )


def difference(trial: Trial, answer: dict[str, Any]) -> str:
    """What is not the same, or ''."""
    if "error" in answer:
        return f"{trial.name}: the peer refuses it: {answer['error']}\n{trial.app}"
    rows = ours(trial)
    for kind, seen, moments in (
        ("current", rows.current, rows.current_at),
        ("expired", rows.expired, rows.expired_at),
    ):
        expected = [r for r in answer["rows"] if r[1] == kind]
        data, due = [r[3] for r in expected], [r[2] for r in expected]
        if due != moments or not _same(trial, due, data, seen or [], rows.kinds):
            theirs = list(zip(due, data, strict=True))
            found = list(zip(moments or (), seen or (), strict=True))
            return f"{trial.name}: {kind}\n{trial.app}\n  theirs {theirs}\n  ours   {found}"
    return ""
