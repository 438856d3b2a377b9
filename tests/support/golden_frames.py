"""The golden frames: one hex line per frame with its meaning, shared with the JavaScript tests.

Rewrite with `python -m tests.support.golden_frames` and review the difference as prose.
"""

import json
from pathlib import Path

from edgewise.wire import codec, frames

FILE = Path(__file__).parent.parent / "golden" / "wire" / "frames.json"
AT = 1_790_000_000_000_000

FROM_CLIENT = [
    frames.Hello(1, frames.HelloOptions(token="t", client="golden", bytes_per_s=62500)),
    frames.Hello(1),
    frames.Subscribe(1, "alerts/#", frames.SubscribeOptions(rate=2.5, have=[("alerts/a", 3, 17)])),
    frames.Unsubscribe(1),
    frames.Resume(7, 3, 17),
    frames.Ack(70000),
    frames.Publish(9, "chat/room", {"text": "grüß dich", "n": -33}, frames.PublishOptions(kind=0)),
    frames.Request(10, "echo", [1, 2.5, None, True, b"\x00\xff"]),
    frames.BudgetFrame(62500, 20),
]
FROM_SERVER = [
    frames.Welcome(1, "s1", AT, frames.Limits(65536, 256, 20000, 1000)),
    frames.Subscribed(1, 2),
    frames.TopicFrame(7, "alerts/a", frames.TopicKind.RECORD),
    frames.Value(7, frames.How.SNAPSHOT, 3, 16, 17, 1, AT, {"ip": "a", "n": 11, "gone": None}),
    frames.Next(7, 5, 2, 1500, {"ip": "a", "n": 12, "gone": None}),
    frames.Delta(7, 1, 1, -20, [{"n": 13}, ["gone"]]),
    frames.TopicFrame(8, "book", frames.TopicKind.TABLE),
    frames.Value(8, frames.How.SNAPSHOT, 3, 0, 1, 1, AT, {"x": {"q": 1, "p": 2}, "y": {"q": 2}}),
    frames.Delta(8, 300, 9, 70000, [{"z": {"q": 3}}, ["y"], {"x": [{"q": 9}, ["p"]]}]),
    frames.TopicFrame(9, "trades", frames.TopicKind.SERIES, frames.TopicOptions(keep=3)),
    frames.Value(9, frames.How.GAP, 3, 0, 2, 2, AT, [[0, AT, {"p": 1}], [1, AT, {"p": 2}]]),
    frames.Delta(9, 2, 2, 0, [[[2, AT, {"p": 3}], [3, AT, {"p": 4}]]]),
    frames.TopicFrame(10, "logo", frames.TopicKind.BLOB),
    frames.Value(10, frames.How.REPLAY, 2**40, 2**33, 2**33 + 1, 1, AT, b"\x89PNG"),
    frames.Stale(7, AT),
    frames.Stale(7, 0),
    frames.Paused(9, 4001),
    frames.Remove(7, frames.RemoveReason.EXPIRED),
    frames.Ping(5),
    frames.Pong(5, AT),
    frames.Reply(10, {"ok": True}),
    frames.Error(9, 4502, "may not publish"),
    frames.Close(3000, "the server goes away"),
]


def rows(side, all_frames):
    return [
        {
            "from": side,
            "frame": frames.frame_name(type(f)),
            "text": repr(f),
            "hex": codec.encode(f).hex(),
        }
        for f in all_frames
    ]


def text():
    every = [*rows("client", FROM_CLIENT), *rows("server", FROM_SERVER)]
    return json.dumps(every, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
