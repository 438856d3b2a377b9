"""How fast apps are understood: `python -m bench.lang [--quick]`.

Apps compiled a second, the cold start of `edgewise check` (aim: under 300 ms), and the cost of a
query in an app of 1,000 and of 10,000 queries, to compile and to explain, which must be about the
same.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from edgewise.lang import compile_app, format_app
from edgewise.plan.explain import explain_text

T = TypeVar("T")

APP = """
@source(type='mqtt', url='mqtt://127.0.0.1:1883', topic='logins/+', @map(type='json'))
define stream login_stream (ip string, cityId string);

@sink(type='topic', path='alerts/{ip}', conflate='replace', recovery='gap')
define stream login_attempt_repeatedly_stream (ip string, loginCount long, cityId string);

from login_stream#window.time(10 min)
select ip, count(ip) as loginCount, cityId
group by ip having loginCount > 10
insert into login_attempt_repeatedly_stream;
"""
PATTERN = """
define stream A (k string, v int);
from every e1=A[v > 5] -> e2=A[k == e1.k and v > e1.v]<2:5> within 5 min
select e1.k as k, e2[last].v as v insert into Rising;
"""
COLD_START_AIM_MS = 300


def many(queries: int) -> str:
    """An app whose queries each read, filter and write."""
    lines = ["define stream S (k string, v int);"]
    lines += [
        f"from S[v > {n} and k != 'x{n}'] select k, v + {n} as w insert into O{n};"
        for n in range(queries)
    ]
    return "\n".join(lines)


def seconds(action: object, rounds: int) -> float:
    """The median of some rounds: the machine is shared."""
    assert callable(action)
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def cold_start(app: str, rounds: int) -> str:
    """Of the command and of Python alone; processor time is what a busy machine cannot stretch.

    An installed package has its byte code; a checkout that may write none compiles every time.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app.siddhi"
        path.write_text(app)
        command = [sys.executable, "-m", "edgewise", "check", str(path)]
        compiled = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        started(command, 1, compiled)
        check = started(command, rounds, compiled)
        source = started(command, rounds, {"PYTHONDONTWRITEBYTECODE": "1"})
    bare = started([sys.executable, "-c", "pass"], rounds, {})
    return f"{check} (aim {COLD_START_AIM_MS} ms; no byte code {source}; Python alone {bare})"


def started(command: list[str], rounds: int, settings: dict[str, str]) -> str:
    """The best of some rounds."""
    taken, used = [], []
    for _ in range(rounds):
        before, start = processor_s(), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **settings})
        taken.append(time.perf_counter() - start)
        used.append(processor_s() - before)
    return f"{min(taken) * 1e3:.0f} ms, of the processor {min(used) * 1e3:.0f} ms"


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    quick = parser.parse_args(argv).quick
    rounds = 3 if quick else 9
    for name, app in (("one window query", APP), ("one pattern", PATTERN)):
        taken = seconds(lambda app=app: [compile_app(app) for _ in range(100)], rounds) / 100
        print(f"{name}: {1 / taken:,.0f} apps compiled a second ({taken * 1e3:.2f} ms each)")
    for name, app in (("no broker", PATTERN), ("a source and a sink", APP)):
        print(f"cold start of `edgewise check`, {name}: {cold_start(app, rounds)}", flush=True)
    each = 1 if quick else 3
    scales("compiled", lambda text: text, compile_app, each)
    scales("explained", lambda text: compile_app(text).app, explain_text, each)
    scales("formatted", lambda text: text, format_app, each)
    return 0


def scales(
    what: str, given: Callable[[str], T], action: Callable[[T], object], rounds: int
) -> None:
    """The cost of one query in a small app and in one ten times as large."""
    costs = {}
    for size in (1_000, 10_000):
        prepared = given(many(size))
        costs[size] = seconds(lambda prepared=prepared: action(prepared), rounds) / size
        taken = f"{costs[size] * size:.2f} s, {costs[size] * 1e6:.0f} us a query"
        print(f"{size:,} queries {what}: {taken}", flush=True)
    ratio = costs[10_000] / costs[1_000]
    print(f"10,000 against 1,000 {what}, per query: x{ratio:.2f} (linear is 1)", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
