"""Send each row as an e-mail over SMTP: `@sink(type='email', to='...', subject='...')`.

A row is delivered when the server has taken the message. A server that does not answer is tried
again; a message that it refuses for good is counted and reported, and the next one is sent. Loaded
by `connectors`.
"""

from __future__ import annotations

import asyncio
import logging
import smtplib
from contextlib import suppress

from edgewise.event.schema import Schema
from edgewise.gateway.email_message import EmailWriter
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.spec import SinkSpec
from edgewise.log.api import LogReader

logger = logging.getLogger(__name__)
TIMEOUT_S = 20.0
REFUSED_FOR_GOOD = 500  # replies from here on are not worth a further attempt


class EmailSink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self._options = spec.options
        self._stream = spec.stream
        self._build = EmailWriter(spec.options, schema, spec.stream)
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats

    async def start(self) -> None:
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()

    async def _deliver(self, messages: list[Message]) -> None:
        await asyncio.to_thread(self._send, messages)

    def _send(self, messages: list[Message]) -> None:
        try:
            server = self._connect()
        except (OSError, smtplib.SMTPException) as error:
            raise Undelivered(f"{self._options['host']}: {error}") from error
        try:
            for message in messages:
                self._send_one(server, message)
        finally:
            with suppress(OSError, smtplib.SMTPException):
                server.quit()

    def _connect(self) -> smtplib.SMTP:
        options = self._options
        kind = smtplib.SMTP_SSL if options["ssl.enable"].lower() == "true" else smtplib.SMTP
        server = kind(options["host"], int(options["port"]), timeout=TIMEOUT_S)
        if options["starttls"].lower() == "true":
            server.starttls()
        if options["auth"].lower() == "true":
            server.login(options["username"], options["password"])
        return server

    def _send_one(self, server: smtplib.SMTP, message: Message) -> None:
        email, receivers = self._build.write(message.offset, message.row, message.payload)
        try:
            server.send_message(email, to_addrs=receivers)
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            self._give_up_or_retry(max(codes, default=0), str(error.recipients))
        except smtplib.SMTPResponseException as error:
            self._give_up_or_retry(error.smtp_code, str(error))
        except (OSError, smtplib.SMTPException) as error:
            raise Undelivered(f"{self._options['host']}: {error}") from error

    def _give_up_or_retry(self, code: int, reason: str) -> None:
        if code < REFUSED_FOR_GOOD:
            raise Undelivered(f"{self._options['host']}: {reason}")
        self.stats.refused[self._stream, "undeliverable"] += 1
        logger.warning("an e-mail of %s was refused: %s", self._stream, reason[:200])
