"""E-mails of rows against a server that takes, refuses and comes late."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.support.async_until import until
from tests.support.brokers import free_port

from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.schema import Schema
from edgewise.gateway import sink_reader
from edgewise.gateway.connectors import check_sink
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.smtp import EmailSink
from edgewise.gateway.spec import BadSpec, MapSpec, SinkSpec
from edgewise.log.memory import MemoryLog as SinkLog

SCHEMA = Schema.of("S", who="string")


class MailServer:
    """As much of SMTP as a client needs; refuses addresses that begin with 'no' for good."""

    def __init__(self):
        self.mails = []

    async def serve(self, reader, writer):
        def answer(text):
            writer.write(f"{text}\r\n".encode())

        answer("220 ready")
        while line := (await reader.readline()).decode().strip():
            word = line[:4].upper()
            if word == "RCPT" and "<no" in line:
                answer("550 no such user")
            elif word == "DATA":
                answer("354 go on")
                self.mails.append((await reader.readuntil(b"\r\n.\r\n")).decode())
                answer("250 taken")
            elif word == "QUIT":
                answer("221 bye")
                break
            else:
                answer("250 ok")
            await writer.drain()
        writer.close()


@asynccontextmanager
async def sending(log, cursor, port):
    options = {"address": "n@x", "to": "{{who}}", "subject": "hello", "host": "127.0.0.1"}
    options |= {"port": str(port), "ssl.enable": "false", "auth": "false"}
    mapping = MapSpec("text", {}, {}, "dear {{who}}")
    spec = check_sink(SinkSpec("S", "email", options, mapping))
    sink = EmailSink(spec, SCHEMA, log.reader(), cursor)
    await sink.start()
    try:
        yield sink
    finally:
        await sink.stop()


def test_rows_wait_for_the_server_and_a_refused_one_does_not_hold_up_the_others(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sink_reader, "RETRY_S", (0.01,))
    log, cursor, mail, port = SinkLog(), FileCursor(tmp_path / "at"), MailServer(), free_port()
    log.writer(SCHEMA)
    zeros = [0] * 3
    rows = [["a@x", "nobody@x", "b@x"]]
    log.owner.append(record_batch(to_arrow(SCHEMA), zeros, zeros, zeros, rows))

    async def scenario():
        async with sending(log, cursor, port) as sink:
            server = await asyncio.start_server(mail.serve, "127.0.0.1", port)
            await until(lambda: cursor.load() == 3)
            assert sink.stats.refused["S", "undeliverable"] == 1
            server.close()

    asyncio.run(scenario())
    assert ["dear a@x" in mail.mails[0], "dear b@x" in mail.mails[1]] == [True, True]
    assert "Message-ID: <S.0@x>" in mail.mails[0]


@pytest.mark.parametrize(
    "options",
    [
        {"to": ""},
        {"port": "x"},
        {"ssl.enable": "yes"},
    ],
)
def test_options_are_checked(options):
    given = {"address": "n@x", "to": "a@x", "subject": "s", **options}
    with pytest.raises(BadSpec):
        check_sink(SinkSpec("S", "email", given))
