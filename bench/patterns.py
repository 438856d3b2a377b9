"""Claim: a pattern costs the same however many matches are open, and less than Siddhi's.

    python -m bench patterns [--quick]        make bench-cep

First patterns that find something: the same events in, the same number of rows out, or it fails.
Then patterns of which nothing ends while every event begins a match: what one more event costs at
a thousand open matches and at a million. Siddhi is given the same pile up to 4,000 matches, for
its cost grows with each of them. Processor time, one core each; a warm run of both. What Siddhi
keeps of `within` differs where a match is older than one that came after it, so a shape without a
key says nothing about `within`. The last whole run is kept in bench/results/patterns.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import siddhi
from bench.kernels import HEAD, events, ours
from edgewise.kernel import compile_kernel
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

RESULTS = Path(__file__).parent / "results" / "patterns.json"
RATIO_AIM = 3.0  # of Siddhi's rate
GROWTH_AIM = 3.0  # from the smallest pile to the largest
PEER_OPEN = 4_000

ROWS = "within 10 sec select e1.v as a insert into O;"
FOUND = {
    "2 steps": "every e1=S[v > 95] -> e2=S[{k}v < 5]",
    "3 steps": "every e1=S[v > 95] -> e2=S[{k}v < 5] -> e3=S[{k}v > 50]",
    "3 steps, most events": "every e1=S[v > 50] -> e2=S[{k}v < 50] -> e3=S[{k}v > 50]",
    "5 steps": "every e1=S[v > 95] -> e2=S[{k}v < 5] -> e3=S[{k}v > 50] -> e4=S[{k}v < 50]"
    " -> e5=S[{k}v > 90]",
    "inequality": "every e1=S[v > 95] -> e2=S[{k}v > e1.v]",
    "logical": "every e1=S[v > 95] -> (e2=S[{k}v < 5] and e3=S[{k}v > 90])",
    "optional": "every e1=S[v > 95] -> e2=S[{k}v < 5]<0:1> -> e3=S[{k}v > 90]",
}
KEYED_ONLY = {  # under `every` a group or a count has no earlier event to be equal to
    "count <3:5>": "every e1=S[v > 90]<3:5> -> e2=S[v < 5]",
    "group": "every (e1=S[v > 95] -> e2=S[v < 5]) -> e3=S[v > 50]",
}
PILES = {
    "2 steps, no condition": "every e1=S -> e2=S[v > 100]",
    "2 steps, equality": "every e1=S -> e2=S[t == e1.t]",
    "2 steps, inequality": "every e1=S -> e2=S[t < e1.t]",
    "2 steps, both": "every e1=S -> e2=S[k == e1.k and t < e1.t]",
    "3 steps, no condition": "every e1=S -> e2=S[v > 100] -> e3=S[v > 101]",
    "3 steps, equality": "every e1=S -> e2=S[t == e1.t] -> e3=S[t == e2.t]",
    "3 steps, inequality": "every e1=S -> e2=S[t < e1.t] -> e3=S[t < e2.t]",
    "count <3:5> first": "every e1=S<3:5> -> e2=S[v > 100]",
    "count <3:5> between": "every e1=S -> e2=S[v > 100]<3:5> -> e3=S[v > 101]",
    "logical": "every e1=S -> (e2=S[v > 100] and e3=S[v > 101])",
    "absence": "every e1=S -> not S[v > 100] for 6 hours",
    "optional": "every e1=S -> e2=S[v > 100]<0:1> -> e3=S[v > 101]<0:1> -> e4=S[v > 102]",
    "group": "every (e1=S -> e2=S) -> e3=S[v > 100]",
    "sequence with +": "every e1=S[v >= 0], e2=S[v >= 0]+, e3=S[v > 100]",
}


@dataclass(frozen=True, slots=True)
class Rate:
    """Million events a second; `theirs` None where the peer cannot be had."""

    name: str
    ours: float
    theirs: float | None
    rows: int
    same_rows: bool


@dataclass(frozen=True, slots=True)
class Pile:
    """Microseconds an event, by the matches that were open; the peer's mean up to PEER_OPEN."""

    name: str
    by_open: dict[int, float]
    mean: float
    theirs: float | None

    @property
    def growth(self) -> float:
        costs = list(self.by_open.values())
        return costs[-1] / costs[0]


def queries() -> dict[str, str]:
    found = {}
    for name, chain in {**FOUND, **KEYED_ONLY}.items():
        body = f"from {chain.format(k='')} {ROWS}"
        found[f"{name}, partitioned"] = f"partition with (k of S) begin {body} end;"
    for name, chain in FOUND.items():
        text = f"from {chain.format(k='k == e1.k and ')} {ROWS}"
        found[f"{name}, equality"] = text.replace("within 10 sec ", "")
    return found


def measure_rate(name: str, query: str, path: str, count: int) -> Rate:
    size = min(count, 20_000) if name.endswith("equality") else count
    rate, rows = ours(query, events(size))
    peer = siddhi.rate(path, HEAD + query, size) if path else None
    found = Rate(
        name, rate / 1e6, peer[0] / 1e6 if peer else None, rows, peer is None or peer[1] == rows
    )
    beside = f"{found.theirs:8.3f} {found.ours / found.theirs:7.1f}x" if found.theirs else ""
    note = "same" if peer and found.same_rows else "" if not peer else f"theirs {peer[1]}"
    print(f"{name:36} {found.ours:8.3f} {beside:17} {rows:8} {note}", flush=True)
    return found


def measure_pile(name: str, chain: str, path: str, points: list[int]) -> Pile:
    text = f"from {chain} select 'x' as x insert into O;"
    app = compile_app(HEAD + text).app
    by_open: dict[int, float] = {}
    compile_fragment = Fragment("bench", tuple(q.name for q in app.queries))
    kernel = compile_kernel(app, compile_fragment)
    spent, seen, mean = 0.0, 0, 0.0
    for run in events(points[-1]):
        start = time.process_time()
        kernel.feed(run)
        took = time.process_time() - start
        spent, seen = spent + took, seen + len(run.ts)
        mean = mean or took / len(run.ts) * 1e6
        for point in points:
            if seen >= point and point not in by_open:
                by_open[point] = took / len(run.ts) * 1e6
    peer = siddhi.rate(path, HEAD + text, PEER_OPEN) if path else None
    found = Pile(name, by_open, mean, 1e6 / peer[0] if peer else None)
    costs = " ".join(f"{cost:9.2f}" for cost in by_open.values())
    beside = f"{found.theirs:10.1f}" if found.theirs else ""
    print(f"{name:28} {costs} {found.growth:7.1f}x {beside}", flush=True)
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args(argv).quick
    path = siddhi.classpath()
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}")
    print(f"{'M ev/s, 1,000 keys':36} {'ours':>8} {'Siddhi':>8} {'ratio':>8} {'rows':>8}")
    size = 50_000 if quick else 200_000
    rates = [measure_rate(name, query, path, size) for name, query in queries().items()]
    points = [10_000, 100_000] if quick else [10_000, 100_000, 1_000_000]
    heads = " ".join(f"{point:9,}" for point in points)
    print(f"\n{'us an event at open matches':28} {heads} {'growth':>8} {'Siddhi, to 4,000':>10}")
    piles = [measure_pile(name, chain, path, points) for name, chain in PILES.items()]
    if not quick:
        found = {"rates": [asdict(r) for r in rates], "piles": [asdict(p) for p in piles]}
        RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    wrong = [r.name for r in rates if not r.same_rows]
    slow = [r.name for r in rates if r.theirs and r.ours / r.theirs < RATIO_AIM]
    grown = [p.name for p in piles if p.growth > GROWTH_AIM]
    for words, names in (
        ("other rows than Siddhi's", wrong),
        (f"below {RATIO_AIM:.0f}x Siddhi", slow),
        (f"grew by more than {GROWTH_AIM:.0f}x", grown),
    ):
        print(f"{words}: {', '.join(names) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
