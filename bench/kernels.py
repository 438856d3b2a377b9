"""Claim: generated kernels keep up with Siddhi on the JVM, and leave it behind on keyed patterns.

    python -m bench kernels [--quick]

The same events, processor time of one thread each, the peer on its second (warm) run. The peer
needs a JDK, Maven and a network the first time; without them its column holds what was measured
elsewhere, marked `*`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from edgewise.engines.kernel import compile_kernel
from edgewise.engines.kernel.api import Run
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

PEER = Path(__file__).parent / "peers" / "siddhi"
HOME = Path(tempfile.gettempdir()) / "edgewise-bench-siddhi"
HEAD = "define stream S (k string, v int, t long); "
RUN_EVENTS = 8192


@dataclass(frozen=True, slots=True)
class Claim:
    """`known` is the peer's rate where it was measured before, M ev/s."""

    name: str
    query: str
    aim: float
    known: float
    peer_events: int = 1_000_000


CLAIMS = (
    Claim("filter", "from S[v > 50] select k, v insert into O;", 1, 5.5),
    Claim(
        "length(1000) avg group by",
        "from S#window.length(1000) select k, avg(v) as a group by k insert into O;", 1, 1.5,
    ),
    Claim(
        "externalTimeBatch 1 s group by",
        "from S#window.externalTimeBatch(t, 1 sec) "
        "select k, sum(v) as s group by k insert into O;",
        1, 2.4,
    ),
    Claim(
        "partitioned every e1 -> e2 within",
        "partition with (k of S) begin from every e1=S[v > 95] -> e2=S[v < 5] within 10 sec "
        "select e1.v as a, e2.v as b insert into O; end;", 3, 0.62,
    ),
    Claim(
        "partitioned sequence with +",
        "partition with (k of S) begin from every e1=S[v > 50], e2=S[v > 50]+, e3=S[v < 20] "
        "select e1.v as a, e3.v as b insert into O; end;", 3, 0.30,
    ),
    Claim(
        "every e1 -> e2[k == e1.k] within 1 s",
        "from every e1=S[v > 95] -> e2=S[k == e1.k and v < 5] within 1 sec "
        "select e1.v as a, e2.v as b insert into O;", 50, 0.02, peer_events=50_000,
    ),
    Claim(
        "1,000 filters on one stream",
        " ".join(f"from S[k == 'k{n}'] select k, v insert into O;" for n in range(1000)),
        10, 0.0, peer_events=10_000,
    ),
)  # fmt: skip


def events(count: int, distinct: int = 1000) -> list[Run]:
    """The peer's events, as runs of columns."""
    x, keys, values = 7, [], []
    for _ in range(count):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
        keys.append(f"k{x // 7 % distinct}")
        values.append(x // 65536 % 100)
    stamps = list(range(1, count + 1))
    times = list(range(count))
    runs = []
    for low in range(0, count, RUN_EVENTS):
        part = slice(low, low + RUN_EVENTS)
        ts = stamps[part]
        runs.append(Run("S", ts, [keys[part], values[part], times[part]], ts, ts, ts))
    return runs


def ours(query: str, runs: list[Run]) -> tuple[float, int]:
    """Events a second and rows."""
    app = compile_app(HEAD + query).app
    kernel = compile_kernel(app, Fragment("bench", tuple(q.name for q in app.queries)))
    rows = 0
    start = time.process_time()
    for run in runs:
        kernel.feed(run)
        rows += len(kernel.take_tuples())
    return sum(len(r.ts) for r in runs) / (time.process_time() - start), rows


def classpath() -> str:
    """The peer, compiled; '' where it cannot be."""
    tools = [shutil.which(t) for t in ("mvn", "javac", "java")]
    if not all(tools):
        return ""
    library = HOME / "lib"
    if not (HOME / "Peer.class").exists():
        HOME.mkdir(exist_ok=True)
        shutil.copy(PEER / "pom.xml", HOME)
        fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={library}"]
        if subprocess.run(fetch, cwd=HOME, capture_output=True, check=False).returncode:
            return ""
        build = ["javac", "-cp", f"{library}/*", "-d", str(HOME), str(PEER / "Peer.java")]
        if subprocess.run(build, capture_output=True, check=False).returncode:
            return ""
    return f"{library}/*:{HOME}"


def theirs(path: str, claim: Claim, count: int) -> tuple[float, int] | None:
    command = ["java", "-Xmx1g", "-cp", path, "Peer"]
    done = subprocess.run(
        [*command, HEAD + claim.query, str(min(count, claim.peer_events))],
        capture_output=True, check=False, text=True, timeout=600,
    )  # fmt: skip
    words = next((ln.split() for ln in done.stdout.splitlines() if ln.startswith("rate")), None)
    return (float(words[1]), int(words[3])) if words else None


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 200_000 if parser.parse_args(argv).quick else 1_000_000
    runs = events(count)
    path = classpath()
    print(f"{'query':38} {'ours':>8} {'Siddhi':>8} {'ratio':>8} {'aim':>5}   M ev/s")
    for claim in CLAIMS:
        rate, _ = ours(claim.query, runs)
        peer = theirs(path, claim, count) if path else None
        beside, mark = (peer[0] / 1e6, " ") if peer else (claim.known, "*")
        ratio = f"{rate / 1e6 / beside:7.1f}x" if beside else "       -"
        print(f"{claim.name:38} {rate / 1e6:8.3f} {beside:7.3f}{mark} {ratio} {claim.aim:4.0f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
