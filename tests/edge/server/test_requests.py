import asyncio

import pytest

from edgewise.edge.server.answers import answers
from edgewise.edge.server.requests import CALLS_MAX, RequestDispatcher
from edgewise.errors import ProtocolError
from edgewise.wire import frames
from edgewise.wire.codes import ProtocolCode


class Answers:
    """Stands where a session stands: takes what would go out."""

    principal, client = None, "test"

    def __init__(self):
        self.out = []

    def reply(self, request, body):
        self.out.append((request, body))

    def refuse(self, request, code, _reason):
        self.out.append((request, code))

    def ask(self, _path, _body, done):
        self.done = done
        self.dispatch_request = 1
        return 1

    def forget_request(self, number):
        self.dispatch_request -= number


async def handle(_principal, path, body):
    if body == "wait":
        await asyncio.Event().wait()
    if body == "bad":
        raise ValueError("bad")
    if body == "bug":
        raise RuntimeError("bug")
    if body == "no":
        raise ProtocolError(ProtocolCode.FORBIDDEN, "no")
    return object() if body == "odd" else [path, body]


def run(*bodies, path="echo/a"):
    async def main():
        calls, session = RequestDispatcher(lambda: None), Answers()
        calls.serve("echo/+", handle)
        for i, body in enumerate(bodies):
            calls.dispatch_request(session, frames.Request(i, path, body))
        async with asyncio.timeout(10):
            while len(session.out) < len(bodies) - bodies.count("wait"):  # noqa: ASYNC110
                await asyncio.sleep(0)
        calls.forget(session)
        return session.out

    return asyncio.run(main())


def test_each_outcome_has_its_answer(caplog):
    out = dict(run(1, "bad", "bug", "no", "odd"))
    assert out == {
        0: ["echo/a", 1],
        1: ProtocolCode.BAD_VALUE,
        2: ProtocolCode.BUSY,
        3: ProtocolCode.FORBIDDEN,
        4: ProtocolCode.BAD_VALUE,
    }
    assert "bug" in caplog.text


def test_nobody_serves_the_path():
    assert run(1, path="other") == [(0, ProtocolCode.NOT_FOUND)]


def test_waiting_requests_are_bounded():
    out = run(*["wait"] * CALLS_MAX, "more")
    assert out == [(CALLS_MAX, ProtocolCode.BUSY)]


def test_a_client_is_asked():
    async def main():
        calls, session = RequestDispatcher(lambda: None), Answers()
        task = asyncio.create_task(calls.ask(session, "who", None))
        await asyncio.sleep(0)
        session.done("me", None)
        assert await task == "me"
        task = asyncio.create_task(calls.ask(session, "who", None))
        await asyncio.sleep(0)
        session.done(None, ProtocolError(ProtocolCode.NO_ANSWER, "gone"))
        with pytest.raises(ProtocolError, match="gone"):
            await task

    asyncio.run(main())


def test_a_handler_may_ask_its_caller_back():
    async def main():
        calls, session = RequestDispatcher(lambda: None), Answers()

        async def cancel(caller, _path, _body):
            return [caller.client, await caller.ask("sure")]

        calls.serve("cancel", answers("cancel")(cancel).handler)
        calls.dispatch_request(session, frames.Request(7, "cancel", None))
        async with asyncio.timeout(10):
            while not hasattr(session, "done"):  # noqa: ASYNC110
                await asyncio.sleep(0)
            session.done(True, None)
            while not session.out:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert session.out == [(7, ["test", True])]

    asyncio.run(main())


def test_a_question_is_over_when_nobody_waits_for_its_answer(monkeypatch):
    monkeypatch.setattr("edgewise.edge.server.requests.ANSWER_S", 0.001)
    session = Answers()
    with pytest.raises(ProtocolError, match="no answer"):
        asyncio.run(RequestDispatcher(lambda: None).ask(session, "who", None))
    assert session.dispatch_request == 0
