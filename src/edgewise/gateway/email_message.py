"""Build the e-mail of a row from the options of `@sink(type='email')`. Pure.

Subject and addresses are templates: `{{attribute}}` is filled in. A line break in a value cannot
begin a header of its own. The id of a message is made of the stream and the row's offset, so a
receiver can tell a repeated one. Used by `smtp`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage
from typing import Any

from edgewise.event.schema import Schema
from edgewise.gateway.renderers import build_renderer
from edgewise.gateway.spec import MapSpec

TEMPLATES = ("subject", "to", "cc", "bcc")
_BREAKS = re.compile(r"[\r\n\t]+")


class EmailWriter:
    def __init__(self, options: Mapping[str, str], schema: Schema, stream: str) -> None:
        self._sender = options["address"] or options["username"]
        self._stream = stream
        self._domain = self._sender.rpartition("@")[2] or "localhost"
        kind, _, rest = options["content.type"].partition("/")
        self._subtype = rest.split(";")[0] if kind == "text" and rest else "plain"
        self._templates: dict[str, Callable[[int, Sequence[Any]], bytes]] = {
            name: build_renderer(MapSpec("text", {"template": options[name]}), schema)
            for name in TEMPLATES
            if options[name]
        }

    def write(
        self, offset: int, row: Sequence[Any], payload: bytes
    ) -> tuple[EmailMessage, list[str]]:
        """The message, and whom it goes to."""
        filled = {
            name: _BREAKS.sub(" ", render(0, row).decode())
            for name, render in self._templates.items()
        }
        message = EmailMessage()
        message["From"] = self._sender
        message["Message-ID"] = f"<{self._stream}.{offset}@{self._domain}>"
        for name in ("subject", "to", "cc"):
            if filled.get(name):
                message[name.capitalize()] = filled[name]
        message.set_content(payload.decode(errors="replace"), subtype=self._subtype)
        receivers = [
            address.strip()
            for name in ("to", "cc", "bcc")
            for address in filled.get(name, "").split(",")
            if address.strip()
        ]
        return message, receivers
