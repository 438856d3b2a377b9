from edgewise.node.watch import SAY_EVERY_S, Watch

PROGRESS = {
    "batches": 3,
    "rows_in": 1000,
    "watermark_lag_ms": 1500,
    "state_keys": 7,
    "state_bytes": 2048,
    "backlog_rows": 12,
    "batch_ms": {"read": 1.0, "run": 20.0, "trigger": 30},
    "counts": {"faults": {"S": 2}},
}


def test_the_terminal_hears_now_and_then_and_only_news():
    watch = Watch()
    watch.hear(PROGRESS)
    assert watch.line(SAY_EVERY_S) == (
        "100 events/s, batch 30 ms (read 1, run 20), backlog 12, lag 1.5 s, "
        "state 7 keys, 2,048 bytes, 2 faults"
    )
    assert not watch.line(SAY_EVERY_S + 1)
    assert not watch.line(3 * SAY_EVERY_S)
    watch.hear(PROGRESS | {"rows_in": 1500})
    assert watch.line(4 * SAY_EVERY_S).startswith("17 events/s")


def test_the_topic_says_why_the_engine_failed():
    watch = Watch(failed="no disk")
    assert watch.topic() == {"restarts": 0, "failed": "no disk"}
