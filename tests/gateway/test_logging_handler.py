import logging
import time

import pytest
from tests.support.loop_thread import LoopThread
from tests.support.memory_log import MemoryLog

from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.http import IngestServer
from edgewise.gateway.logging_handler import EdgewiseHandler

APP_LOG = Schema.of(
    "app_log", level="string", logger="string", message="string", exception="string",
    line="int", user="string", cost="double",
)  # fmt: skip


@pytest.fixture
def served():
    log = MemoryLog(APP_LOG)
    server = IngestServer({"app_log": log}, ManualClock())
    loop = LoopThread()
    port = loop.call(server.start())
    yield log, f"http://127.0.0.1:{port}"
    log.open.set()
    loop.call(server.stop())
    loop.close()


@pytest.fixture
def program():
    logger = logging.getLogger("shop")
    logger.setLevel(logging.INFO)
    yield logger
    for handler in list(logger.handlers):
        handler.close()
        logger.removeHandler(handler)


def test_a_programs_log_becomes_a_stream_in_two_lines(served, program):
    log, url = served
    handler = EdgewiseHandler(url, "app_log")
    program.addHandler(handler)
    program.info("sold %d", 3, extra={"user": 7, "cost": 1.5})
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        program.exception("oops \ud800")
    handler.close()
    first, second = log.rows()
    assert (first["level"], first["logger"], first["message"]) == ("INFO", "shop", "sold 3")
    assert (first["user"], first["cost"], first["exception"]) == ("7", 1.5, None)
    assert abs(first["_ts"] - time.time() * 1000) < 60_000
    assert first["line"] > 0
    assert "ZeroDivisionError" in second["exception"]
    assert second["message"] == "oops ?"
    assert (handler.sent, handler.dropped, handler.refused) == (2, 0, 0)


def test_a_slow_door_drops_and_counts_and_never_blocks(served, program):
    log, url = served
    log.open.clear()
    handler = EdgewiseHandler(url, "app_log", queue_max=100, batch_max=10)
    program.addHandler(handler)
    began = time.monotonic()
    for i in range(5000):
        program.info("line %d", i)
    assert time.monotonic() - began < 2
    assert handler.dropped >= 4800
    log.open.set()
    handler.close()
    assert handler.sent == len(log.rows()) == 5000 - handler.dropped


def test_no_door_at_all_is_survived(program):
    handler = EdgewiseHandler("http://127.0.0.1:9", "app_log", queue_max=5, timeout_s=1)
    program.addHandler(handler)
    for i in range(20):
        program.info("line %d", i)
    handler.close()
    assert handler.dropped >= 10
    assert handler.sent == 0


def test_a_stream_that_does_not_exist_is_said_once(served, program, capsys):
    _log, url = served
    handler = EdgewiseHandler(url, "nowhere", batch_max=1)
    program.addHandler(handler)
    program.info("a")
    program.info("b")
    handler.close()
    assert handler.refused == 2
    assert capsys.readouterr().err.count("no stream 'nowhere'") == 1


def test_an_address_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no http address"):
        EdgewiseHandler("127.0.0.1:80")
