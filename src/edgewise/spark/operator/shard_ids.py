"""Choose ids for shards so that Spark spreads them evenly over its partitions.

Spark places a group by the Murmur3 hash of its key. Ids 0, 1, 2 may fall on one partition, which
leaves the others without work; so ids are chosen by where they fall. Pure.
"""

from __future__ import annotations

SEED = 42  # of Spark's hash partitioning
_MASK = 0xFFFFFFFF
ID_MAX = 1_000_000  # tried before giving up on an even spread


def spread_shards(count: int, partitions: int) -> list[int]:
    """`count` ids that fall evenly on the partitions; 0 is always one of them."""
    least, more = divmod(count, partitions)  # `more` partitions take one above the least
    loads: dict[int, int] = {}
    found: list[int] = []
    for candidate in range(ID_MAX):
        partition = hash_int(candidate) % partitions
        load = loads.get(partition, 0)
        if load < least or (load == least and more):
            more -= load == least
            loads[partition] = load + 1
            found.append(candidate)
            if len(found) == count:
                break
    return found


def hash_int(value: int) -> int:
    """Spark's Murmur3 of a 32 bit integer, as a signed number."""
    mixed = _mix_h1(SEED, _mix_k1(value & _MASK))
    found = _finish(mixed, 4)
    return found - (1 << 32) if found >= 1 << 31 else found


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _mix_k1(k1: int) -> int:
    return _rotate(k1 * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK


def _mix_h1(h1: int, k1: int) -> int:
    return (_rotate(h1 ^ k1, 13) * 5 + 0xE6546B64) & _MASK


def _finish(h1: int, length: int) -> int:
    h1 ^= length
    h1 = (h1 ^ (h1 >> 16)) * 0x85EBCA6B & _MASK
    h1 = (h1 ^ (h1 >> 13)) * 0xC2B2AE35 & _MASK
    return h1 ^ (h1 >> 16)
