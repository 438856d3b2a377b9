"""Which partition a key belongs to: one answer in the driver, in Spark and in the files.

A key is hashed by its text: its parts as text, null as NULL, joined by SEPARATOR, UTF-8, CRC-32.
Keys are text, whole numbers and booleans, whose text is the same everywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NULL, SEPARATOR = "\x00", "\x1f"


def part_of(key: Sequence[Any], parts: int) -> int:
    return zlib.crc32(SEPARATOR.join(_text(v) for v in key).encode()) % parts


def parts_of(columns: Sequence[Any], parts: int) -> Any:
    """The partition of every row, as an Arrow array; `columns` are the parts of the key."""
    texts = [pc.fill_null(pc.cast(c, pa.string()), NULL) for c in columns]
    keys = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, SEPARATOR)
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    coded = whole.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    each = [zlib.crc32(text.encode()) % parts for text in texts]
    return pa.array(each, pa.int32()).take(coded.indices)


def _text(value: Any) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
