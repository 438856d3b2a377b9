"""Assign keys to key partitions, alike in the driver, in Spark's expressions and in state files.

A key is hashed by its text: its attributes as text, null as NULL, joined by SEPARATOR, UTF-8,
CRC-32. Keys are strings, whole numbers and booleans, whose text is the same in Python, Arrow and
Spark; that is why no other type may be a key. `spark.tasks` has the same hash as a Spark column.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NULL, SEPARATOR = "\x00", "\x1f"


def assign_key(key: Sequence[Any], partitions: int) -> int:
    """The key partition of one key."""
    return _hash(SEPARATOR.join(_render(v) for v in key)) % partitions


def assign_rows(columns: Sequence[Any], partitions: int) -> Any:
    """The key partition of every row as an Arrow array; `columns` are the key's attributes."""
    texts = [pc.fill_null(pc.cast(c, pa.string()), NULL) for c in columns]
    keys = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, SEPARATOR)
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    coded = whole.dictionary_encode()
    each = [_hash(text) % partitions for text in coded.dictionary.to_pylist()]
    return pa.array(each, pa.int32()).take(coded.indices)


def _hash(text: Any) -> int:
    return zlib.crc32(text.encode())


def _render(value: Any) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
