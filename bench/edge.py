"""Claim: the edge keeps up with the best open servers, and stays fresh where they cannot.

Models: ping-pong; a ramp of clients at 100 messages/s each, unconflated and conflated; bytes on
the wire; one client on 0.5 Mbit/s under a flood; idle connections. Peers run in the same run:
Centrifugo (JSON, as browsers use it), Mosquitto over WebSocket, and a bare picows echo as the
limit of the machine. Charts go to bench/results/*.svg.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import edge_peers
from bench.edge_load import Crowd, Step, ping_pong, quantile, thin_pipe
from bench.edge_peers import Peer, ws_frame
from edgewise.wire import codec, frames

RESULTS = Path(__file__).parent / "results"
SIZES = (125, 1000, 2000)
RATE = 100  # messages per second and client
THIN_BYTES_PER_S = 62_500  # 0.5 Mbit/s
COLOURS = {
    "edgewise": "#0a7",
    "edgewise, replace": "#07a",
    "centrifugo": "#c60",
    "mosquitto": "#a3a",
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="ping, ramp, thin, idle")
    args = parser.parse_args(argv)
    parts: dict[str, Callable[[bool], None]] = {
        "ping": ping,
        "ramp": ramp,
        "thin": thin,
        "idle": idle,
    }
    for name, part in parts.items():
        if args.only in {"", name}:
            part(args.quick)
    return 0


def ping(quick: bool) -> None:
    rounds = 2_000 if quick else 20_000
    print(f"   ping-pong, publish to own subscription, {rounds} rounds, microseconds")
    print("   server        bytes      min      p50      p99   p99.99   p50 / bare echo")
    limit: dict[int, float] = {}
    for start in (edge_peers.echo, _ours, edge_peers.centrifugo, edge_peers.mosquitto):
        peer = start()
        if peer is None:
            continue
        try:
            for size in SIZES:
                ping_pong(peer, size, 200)
                times = ping_pong(peer, size, rounds)
                p50 = quantile(times, 0.5)
                limit.setdefault(size, p50)
                print(
                    f"   {peer.name:12}{size:7}{min(times):9.0f}{p50:9.0f}"
                    f"{quantile(times, 0.99):9.0f}{quantile(times, 0.9999):9.0f}"
                    f"{p50 / limit[size]:10.2f}",
                    flush=True,
                )
        finally:
            peer.stop()


def _ours() -> Peer:
    return edge_peers.edge("off")[0]


def _ours_conflated() -> Peer:
    peer = edge_peers.edge("replace")[0]
    peer.name = "edgewise, replace"
    return peer


def ramp(quick: bool) -> None:
    sizes = (125,) if quick else (125, 1000)
    clients = (50, 200, 500, 1000) if quick else (50, 100, 200, 400, 700, 1000, 1400, 2000)
    seconds = 2.0 if quick else 4.0
    for size in sizes:
        print(f"   ramp, {RATE} messages/s to each client, {size} B")
        print(
            "   server              clients   due/s  delivered/s  age p50   p99 ms  max/min  lost"
            "  payload/wire  cpu us"
        )
        steps: dict[str, list[Step]] = {}
        peers = (_ours, _ours_conflated, edge_peers.centrifugo, edge_peers.mosquitto)
        for start in peers:
            peer = start()
            if peer is None:
                continue
            try:
                steps[peer.name] = _ramp_one(peer, size, clients, seconds)
            finally:
                peer.stop()
        best = {name: max(s.delivered_per_s for s in all_) for name, all_ in steps.items()}
        if "centrifugo" in best:
            ratio = best["edgewise"] / best["centrifugo"]
            spent = {n: min(s.cpu_us for s in all_) for n, all_ in steps.items()}
            print(
                f"   edgewise / centrifugo: most delivered/s {ratio:.2f}, least processor time "
                f"per message {spent['edgewise'] / spent['centrifugo']:.2f}"
            )
        _chart(
            RESULTS / f"edge-delivered-{size}.svg",
            f"delivered messages/s by clients, {size} B, {RATE}/s each",
            {n: [(s.clients, s.delivered_per_s) for s in all_] for n, all_ in steps.items()},
        )
        _chart(
            RESULTS / f"edge-age-{size}.svg",
            f"median age in ms by clients, {size} B, {RATE}/s each",
            {n: [(s.clients, s.age_p50_ms) for s in all_] for n, all_ in steps.items()},
        )


def _ramp_one(peer: Peer, size: int, clients: tuple[int, ...], seconds: float) -> list[Step]:
    crowd, out = Crowd(peer), []
    for total in clients:
        crowd.grow(total)
        step = crowd.run(RATE, size, seconds)
        out.append(step)
        print(
            f"   {peer.name:20}{step.clients:7}{step.expected_per_s:8.0f}"
            f"{step.delivered_per_s:13.0f}{step.age_p50_ms:9.1f}{step.age_p99_ms:9.1f}"
            f"{step.spread:9.2f}{step.lost:6}{step.payload_share:12.1%}{step.cpu_us:10.1f}",
            flush=True,
        )
    crowd.close()
    return out


def thin(quick: bool) -> None:
    total, per_s = (100_000, 20_000) if quick else (1_000_000, 20_000)
    seconds = total / per_s + 2
    peer, pipe = edge_peers.edge("replace")
    try:
        sock = peer.connect(receive_bytes=16 * 1024)
        sock.sendall(ws_frame(codec.encode(frames.Subscribe(1, "flood/#"))))
        pipe.send("stats")
        before = pipe.recv()
        pipe.send((total, per_s, 100, 1000))
        ages, read = thin_pipe(sock, THIN_BYTES_PER_S, seconds)
        pipe.send("stats")
        after = pipe.recv()
    finally:
        peer.stop()
    late = ages[len(ages) // 4 :]
    print(f"   one client at 0.5 Mbit/s, {total} events of 1 kB on 100 topics at {per_s}/s")
    print(
        f"   age p50 {quantile(late, 0.5):.0f} ms, p99 {quantile(late, 0.99):.0f} ms; "
        f"{len(ages)} updates seen, {read / seconds / 1000:.0f} kB/s read; "
        f"{after[0] / total:.1%} conflated; memory {before[2]} -> {after[2]} KiB"
    )


def idle(quick: bool) -> None:
    count = 500 if quick else 5_000
    peer, pipe = edge_peers.edge("replace")
    socks = []
    try:
        socks += [_subscriber(peer) for _ in range(50)]
        pipe.send("stats")
        before = pipe.recv()[2]
        socks += [_subscriber(peer) for _ in range(count)]
        time.sleep(0.5)
        pipe.send("stats")
        after = pipe.recv()[2]
    finally:
        for sock in socks:
            sock.close()
        peer.stop()
    print(f"   idle sessions: {(after - before) / count:.1f} KiB of user memory each ({count})")


def _subscriber(peer: Peer) -> socket.socket:
    sock = peer.connect()
    for data in peer.subscribe:
        sock.sendall(data)
    return sock


def _chart(path: Path, title: str, lines: dict[str, list[tuple[float, float]]]) -> None:
    """A line chart, no library: two axes, one polyline per server."""
    width, height, left, bottom = 640, 360, 70, 40
    points = [p for line in lines.values() for p in line]
    x_max, y_max = max(x for x, _ in points), max(y for _, y in points) or 1

    def place(x: float, y: float) -> str:
        px = left + x / x_max * (width - left - 20)
        py = height - bottom - y / y_max * (height - bottom - 40)
        return f"{px:.1f},{py:.1f}"

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{left}" y="20">{title}</text>',
        f'<path d="M{left} 40V{height - bottom}H{width - 20}" fill="none" stroke="#999"/>',
        f'<text x="5" y="45">{y_max:,.0f}</text>',
        f'<text x="{width - 60}" y="{height - 15}">{x_max:,.0f}</text>',
    ]
    for i, (name, line) in enumerate(lines.items()):
        colour = COLOURS.get(name, "#333")
        track = " ".join(place(x, y) for x, y in line)
        out.append(f'<polyline points="{track}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<text x="{left + 10}" y="{60 + 16 * i}" fill="{colour}">{name}</text>')
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*out, "</svg>"]) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
