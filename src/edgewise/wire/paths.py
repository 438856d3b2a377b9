"""Parse topic paths and selectors, and decide what selects what.

A path is segments joined by `/`: `fx/eur/usd`. A selector may hold `+` (exactly one segment) and,
last, `#` (any number of segments, also none). A wildcard as the first segment does not select
paths that begin with `$`: the server's own topics must be asked for by name.
"""

from __future__ import annotations

from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode

PATH_BYTES_MAX = 1024
SEGMENTS_MAX = 32


def parse_path(path: str) -> tuple[str, ...]:
    segments = _split(path, ProtocolCode.BAD_PATH)
    if "+" in segments or "#" in segments:
        raise ProtocolError(ProtocolCode.BAD_PATH, f"a path holds no wildcards: '{path}'")
    return segments


def parse_selector(selector: str) -> tuple[str, ...]:
    segments = _split(selector, ProtocolCode.BAD_SELECTOR)
    if "#" in segments[:-1]:
        raise ProtocolError(ProtocolCode.BAD_SELECTOR, f"'#' must come last: '{selector}'")
    return segments


def selects(selector: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if path[0].startswith("$") and selector[0] in {"+", "#"}:
        return False
    if selector[-1] == "#":
        head = selector[:-1]
        return not head or (len(path) >= len(head) and _pairwise(head, path[: len(head)]))
    return len(path) == len(selector) and _pairwise(selector, path)


def _pairwise(selector: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return all(want in {"+", have} for want, have in zip(selector, path, strict=True))


def _split(text: str, code: ProtocolCode) -> tuple[str, ...]:
    if len(text.encode("utf-8", "surrogatepass")) > PATH_BYTES_MAX:
        raise ProtocolError(code, f"longer than {PATH_BYTES_MAX} bytes: '{text[:40]}...'")
    segments = tuple(text.split("/"))
    if len(segments) > SEGMENTS_MAX:
        raise ProtocolError(code, f"more than {SEGMENTS_MAX} segments: '{text[:40]}...'")
    if not all(segments):
        raise ProtocolError(code, f"an empty segment in '{text}'")
    if any(ord(c) < 32 for c in text):
        raise ProtocolError(code, f"a control character in {text!r}")
    return segments
