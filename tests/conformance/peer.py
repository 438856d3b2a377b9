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

from edgewise.engines.embedded import Embedded
from edgewise.event.event import Kind
from edgewise.lang import compile_app

LINGER_MS = 200  # time moves on after the last event, so that every timer fires
PEER_SECONDS_MAX = 600


@dataclass(frozen=True, slots=True)
class Trial:
    """One app with its events; `watched` is the query or stream whose rows count."""

    name: str
    app: str
    events: list[tuple[str, int, list[Any]]]
    watched: str

    @property
    def job(self) -> dict[str, Any]:
        steps: list[dict[str, Any]] = [
            {"stream": s, "ts": ts, "data": data} for s, ts, data in self.events
        ]
        steps.append({"ts": self.events[-1][1] + LINGER_MS})
        watch = {"queries": ["q"], "streams": []}
        if self.watched == "O":
            watch = {"queries": [], "streams": ["O"]}
        return {"app": self.app, "start": START, "steps": steps, **watch}


def trial(family: str, seed: int) -> Trial:
    text, events = case(family, random.Random(f"{family} {seed}"))
    return Trial(f"{family} {seed}", text, events, "q" if "@info" in text else "O")


def ours(trial: Trial) -> Rows:
    app = compile_app(trial.app).app
    engine = Embedded(app, taps=["q"] if trial.watched == "q" else [], start=START)
    for stream, ts, data in trial.events:
        engine.send(stream, ts, data)
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
            kind = row.kind if trial.watched == "q" else Kind.CURRENT
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
