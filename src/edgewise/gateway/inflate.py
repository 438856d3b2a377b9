"""Content codings of request bodies, with a limit on what comes out. Pure."""

from __future__ import annotations

import zlib

_GZIP_WINDOW = 31  # zlib's number for: a gzip header and trailer are expected
MEMBERS_MAX = 64  # of one gzip body; a file of many tiny members is an attack


class TooLarge(ValueError):
    """More comes out than the limit allows."""


def gunzip(body: bytes, bytes_max: int) -> bytes:
    """The content of a gzip body; TooLarge beyond the limit, ValueError for anything torn."""
    out = b""
    for _ in range(MEMBERS_MAX):
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            out += member.decompress(body, bytes_max - len(out) + 1)
        except zlib.error as bad:
            raise ValueError(f"not gzip: {bad}") from None
        if len(out) > bytes_max:
            raise TooLarge(f"larger than {bytes_max} bytes when unpacked; send smaller batches")
        if not member.eof:
            raise ValueError("gzip body ends too early")
        body = member.unused_data
        if not body:
            return out
    raise ValueError(f"more than {MEMBERS_MAX} gzip members")
