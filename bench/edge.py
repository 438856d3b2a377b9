"""Claim: the edge keeps up with the best open servers, and stays fresh where they cannot.

Models: ping-pong; a ramp of clients at 100 messages/s each, unconflated and conflated; bytes on
the wire; one client on 0.5 Mbit/s under a flood; idle sessions. Peers run in the same run, turn by
turn: Centrifugo (JSON, as browsers use it), Mosquitto over WebSocket, and a bare picows echo and a
look at the clock as limits of the machine. All servers and all clients share the same processors.
Charts go to bench/results/*.svg.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import edge_ours, edge_peers
from bench.chart import lines_svg
from bench.edge_load import (
    QUANTILES,
    Clock,
    Crowd,
    Pinger,
    Step,
    quantile,
    subscriber,
    thin_pipe,
    wire_share,
)
from bench.edge_peers import Peer, ws_frame
from edgewise.wire import codec, frames

RESULTS = Path(__file__).parent / "results"
SIZES = (125, 1000, 2000)
TURNS = 10  # of each server and size in ping-pong
RATE = 100  # messages per second and client
THIN_BYTES_PER_S = 62_500  # 0.5 Mbit/s
PAYLOAD_SHARES = {125: 0.872, 1000: 0.95}
OURS = ("edgewise", "edgewise, replace")  # must go on past saturation
COLOURS = {
    "edgewise": "#0a7",
    "edgewise, replace": "#07a",
    "centrifugo": "#c60",
    "mosquitto": "#a3a",
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="ping, ramp, wire, thin or idle")
    parser.add_argument("--processes", type=int, default=1, help="of our edge in the ramp")
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="bytes, of the ramp")
    parser.add_argument("--clients", type=int, nargs="*", default=[], help="steps of the ramp")
    parser.add_argument("--seconds", type=float, default=0.0, help="of each step of the ramp")
    parser.add_argument("--turns", type=int, default=0, help="of each server in a step")
    args = parser.parse_args(argv)
    print(f"   {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}")
    parts: dict[str, Callable[[], None]] = {
        "ping": lambda: ping(args.quick),
        "ramp": lambda: ramp(args),
        "wire": wire,
        "thin": lambda: thin(args.quick),
        "idle": lambda: idle(args.quick),
    }
    for name, part in parts.items():
        if args.only in {"", name}:
            part()
    return 0


@contextmanager
def running(*starts: Callable[[], Peer | None]) -> Iterator[list[Peer]]:
    peers: list[Peer] = []
    try:
        for start in starts:
            peer = start()
            if peer is not None:
                peers.append(peer)
        yield peers
    finally:
        for peer in peers:
            peer.stop()


@contextmanager
def apart(*starts: Callable[[], Peer | None]) -> Iterator[list[Peer]]:
    """As `running`, with us on the first processor and every server on the last. Where it is
    allowed, client and servers go before all other work: a quiet core is what is asked about.
    """
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, processors[-1:])
    first = _first(os.SCHED_FIFO, 1)
    print(f"   {'all of them before other work' if first else 'beside other work'}")
    try:
        with running(*starts) as peers:
            os.sched_setaffinity(0, processors[:1])
            gc.disable()
            yield peers
    finally:
        gc.enable()
        _first(os.SCHED_OTHER, 0)
        os.sched_setaffinity(0, processors)


def _first(policy: int, priority: int) -> bool:
    try:
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except OSError:
        return False
    return True


def ping(quick: bool) -> None:
    """Publish to one's own subscription and wait; the servers take turns."""
    rounds = (2_000 if quick else 20_000) // TURNS
    print(f"   ping-pong, publish to own subscription, {TURNS} turns of {rounds}, microseconds")
    print("   client on one processor, all servers on another; no collection in the client;")
    print(
        "   the clock alone: a thread that looks at it for one bare round trip, what is longer is"
    )
    print("   the machine's")
    print(
        "   server        bytes      min      p50      p99   p99.9   p99.99      max"
        "   p50 / bare echo (turns)"
    )
    starts = (edge_peers.echo, ours, edge_peers.centrifugo, edge_peers.mosquitto)
    with apart(*starts) as peers:
        for size in SIZES:
            pingers: list[Pinger | Clock] = [Pinger(peer, size) for peer in peers]
            warm = [pinger.run(rounds // 2) for pinger in pingers]
            pingers.append(Clock(quantile(warm[0], 0.5)))
            turns: list[list[list[float]]] = [[] for _ in pingers]
            for _ in range(TURNS):
                for pinger, mine in zip(pingers, turns, strict=True):
                    mine.append(pinger.run(rounds))
            limits = [quantile(t, 0.5) for t in turns[0]]
            names = [*(peer.name for peer in peers), "clock alone"]
            for name, mine in zip(names, turns, strict=True):
                every = [t for turn in mine for t in turn]
                pairs = zip(mine, limits, strict=True)
                ratios = [quantile(turn, 0.5) / limit for turn, limit in pairs]
                print(
                    f"   {name:12}{size:7}{min(every):9.0f}{quantile(every, 0.5):9.0f}"
                    f"{quantile(every, 0.99):9.0f}{quantile(every, 0.999):8.0f}"
                    f"{quantile(every, 0.9999):9.0f}{max(every):9.0f}"
                    f"{quantile(ratios, 0.5):10.2f}   ({min(ratios):.2f} - {max(ratios):.2f})",
                    flush=True,
                )
            for pinger in pingers:
                pinger.close()
        for peer in peers:
            if peer.orders is not None:
                _own_share(peers[0], peer, rounds)


def _own_share(echo: Peer, peer: Peer, rounds: int) -> None:
    """What of the slowest round trips is the server's own: the time of its turns."""
    assert peer.orders is not None
    peer.orders.send("time")
    pingers = [Pinger(p, SIZES[0]) for p in (echo, peer)]
    trips: tuple[list[float], list[float]] = ([], [])
    peer.orders.send("time")
    for _ in range(TURNS):
        for pinger, mine in zip(pingers, trips, strict=True):
            mine.extend(pinger.run(rounds))
    for pinger in pingers:
        pinger.close()
    peer.orders.send("times")
    taken = peer.orders.recv()
    print("   and what of it the server itself takes (round trips again, its turns timed):")
    print(f"   {'':32}  times      p50      p99    p99.9   p99.99      max")
    for what, us in zip(("round trip, bare echo", "round trip"), trips, strict=True):
        taken[what] = (len(us), [quantile(us, q) for q in QUANTILES])
    for what, (count, found) in taken.items():
        print(f"   {what:32}{count:7}" + "".join(f"{us:9.0f}" for us in found))


def ours() -> Peer:
    peer, orders = edge_ours.edge("off")
    peer.orders = orders
    return peer


def ours_conflated() -> Peer:
    peer = edge_ours.edge("replace")[0]
    peer.name = "edgewise, replace"
    return peer


def ramp(args: argparse.Namespace) -> None:
    quick, processes = args.quick, args.processes
    sizes = args.sizes or ([125] if quick else [125, 1000, 2000])
    clients = args.clients or ([50, 200, 1000] if quick else [200, 1000, 2000, 3000])
    seconds = args.seconds or 2.0
    turns = args.turns or (1 if quick else 3)

    def ours_many() -> Peer:
        return edge_ours.edge("off", processes)[0]

    starts = (ours_many, ours_conflated, edge_peers.centrifugo, edge_peers.mosquitto)
    for size in sizes:
        print(f"   ramp, {RATE} messages/s to each client, {size} B")
        print(
            f"   servers take {turns} turns of {seconds:g} s in each step; the median turn is told"
        )
        print(
            "   server              clients   due/s  delivered/s  age p50   p99 ms  max/min  lost"
            "  payload/wire  cpu us   delivered/s of all turns"
        )
        with running(*starts) as peers:
            crowds = [Crowd(peer) for peer in peers]
            steps: dict[str, list[Step]] = {peer.name: [] for peer in peers}
            for total in clients:
                going = [c for c in crowds if c.peer.name in OURS or not _done(steps[c.peer.name])]
                for crowd, step in _turns(going, total, size, seconds, turns):
                    steps[crowd.peer.name].append(step)
            for crowd in crowds:
                crowd.close()
        _sum_up(steps, size)


def _done(steps: list[Step]) -> bool:
    """Saturated twice in a row; once may be somebody else's load."""
    return len(steps) > 1 and all(step.saturated for step in steps[-2:])


def _turns(
    crowds: list[Crowd], total: int, size: int, seconds: float, turns: int
) -> Iterator[tuple[Crowd, Step]]:
    """One step of all servers in turn; of each the turn in the middle by what was delivered."""
    for crowd in crowds:
        crowd.grow(total)
    done: list[list[Step]] = [[] for _ in crowds]
    for _ in range(turns):
        for crowd, mine in zip(crowds, done, strict=True):
            mine.append(crowd.run(RATE, size, seconds))
    for crowd, mine in zip(crowds, done, strict=True):
        mine.sort(key=lambda step: step.delivered_per_s)
        step = mine[len(mine) // 2]
        print(
            f"   {crowd.peer.name:20}{step.clients:7}{step.expected_per_s:8.0f}"
            f"{step.delivered_per_s:13.0f}{step.age_p50_ms:9.1f}{step.age_p99_ms:9.1f}"
            f"{step.spread:9.2f}{step.lost:6}{step.payload_share:12.1%}{step.cpu_us:10.1f}"
            f"   {mine[0].delivered_per_s:.0f} - {mine[-1].delivered_per_s:.0f}",
            flush=True,
        )
        yield crowd, step


def _sum_up(steps: dict[str, list[Step]], size: int) -> None:
    for name, theirs in steps.items():
        if name not in OURS:
            # Only the steps that both did.
            both = steps["edgewise"][: len(theirs)]
            most = [max(s.delivered_per_s for s in side) for side in (both, theirs)]
            spent = [min(s.cpu_us for s in side) for side in (both, theirs)]
            print(
                f"   edgewise / {name}: most delivered/s {most[0] / most[1]:.2f}, least processor "
                f"time per message {spent[0] / spent[1]:.2f}, up to {theirs[-1].clients} clients"
            )
    for figure, title in (("delivered_per_s", "delivered messages/s"), ("age_p50_ms", "age, ms")):
        drawn = {n: [(s.clients, getattr(s, figure)) for s in all_] for n, all_ in steps.items()}
        name = "delivered" if figure == "delivered_per_s" else "age"
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"edge-{name}-{size}.svg").write_text(
            lines_svg(f"{title} by clients, {size} B, {RATE}/s each", drawn, COLOURS)
        )


def wire() -> None:
    """What share of the bytes a client receives is the publisher's own."""
    print("   payload / bytes on the wire, one client that keeps up, 1,000 messages")
    with running(ours, edge_peers.centrifugo, edge_peers.mosquitto) as peers:
        for size in SIZES:
            shares = {peer.name: wire_share(peer, size, 1_000) for peer in peers}
            told = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
            aim = f" (aim {PAYLOAD_SHARES[size]:.1%})" if size in PAYLOAD_SHARES else ""
            print(f"   {size:5} B: {told}{aim}")


def thin(quick: bool) -> None:
    total, per_s = (100_000, 20_000) if quick else (1_000_000, 20_000)
    seconds = total / per_s + 2
    peer, pipe = edge_ours.edge("replace")
    try:
        sock = peer.connect(receive_bytes=16 * 1024)
        sock.sendall(ws_frame(codec.encode(frames.Subscribe(1, "flood/#"))))
        pipe.send("stats")
        before = pipe.recv()
        pipe.send((total, per_s, 100, 1000))
        ages, read = thin_pipe(sock, THIN_BYTES_PER_S, seconds / 2)
        pipe.send("stats")
        middle = pipe.recv()
        late, more = thin_pipe(sock, THIN_BYTES_PER_S, seconds / 2)
        pipe.send("stats")
        after = pipe.recv()
    finally:
        peer.stop()
    print(f"   one client at 0.5 Mbit/s, {total} events of 1 kB on 100 topics at {per_s}/s")
    print(
        f"   age p50 {quantile(late, 0.5):.0f} ms, p99 {quantile(late, 0.99):.0f} ms; "
        f"{len(ages) + len(late)} updates seen, {(read + more) / seconds / 1000:.0f} kB/s read; "
        f"{after[0] / total:.1%} conflated; memory {before[2]} KiB at first, {middle[2]} halfway, "
        f"{after[2]} at the end"
    )


def idle(quick: bool) -> None:
    count = 1_000 if quick else 10_000
    peer, pipe = edge_ours.edge("replace")
    socks = []
    try:
        socks += [subscriber(peer) for _ in range(50)]
        pipe.send("stats")
        before = pipe.recv()[2]
        for _ in range(count):
            socks.append(subscriber(peer))
        time.sleep(0.5)
        pipe.send("stats")
        after = pipe.recv()
    finally:
        for sock in socks:
            sock.close()
        peer.stop()
    each = (after[2] - before) / count
    print(f"   {after[3]} idle sessions: {each:.1f} KiB of user memory each")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
