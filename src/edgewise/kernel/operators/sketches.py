"""Count in little memory: `approximate:count`, `distinctCount` and `distinctCountEver`.

A count-min sketch for how often a value came, and HyperLogLog for how many different ones did;
behind a window, what leaves is taken out again. Hashes are MurmurHash 2, as in the original, so
that estimates are the same to the last bucket.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from edgewise.kernel.functions.java import wrap32
from edgewise.kernel.operators.processors import Processor
from edgewise.kernel.runtime import CURRENT, RESET, Chunk, Row, Runtime, State
from edgewise.plan.functions.java_text import show

_M, _MASK = 0x5BD1E995, 0xFFFFFFFF
STANDARD_ERROR = 1.04
FACTORS = {4: 0.673, 5: 0.697, 6: 0.709}
SIGMAS = {0.65: 0.5, 0.95: 1.0, 0.99: 1.5}
SMALL_RANGE, HASHES = 2.5, 1 << 32


def murmur(value: Any) -> int:
    """An unsigned 32-bit hash of a number, a text or a bool."""
    if isinstance(value, bool):
        return _hash_bytes(show(value).encode())
    if isinstance(value, int):
        return _hash_long(value)
    if isinstance(value, float):
        return _hash_long(struct.unpack(">q", struct.pack(">d", value))[0])
    return _hash_bytes(show(value).encode("utf-8", "surrogatepass"))


def _mix(word: int) -> int:
    word = word * _M & _MASK
    return (word ^ word >> 24) * _M & _MASK


def _finish(found: int) -> int:
    found = (found ^ found >> 13) * _M & _MASK
    return found ^ found >> 15


def _hash_long(value: int) -> int:
    found = _mix(value & _MASK) * _M & _MASK
    return _finish(found ^ _mix(value >> 32 & _MASK))


def _hash_bytes(data: bytes) -> int:
    found = (_MASK ^ len(data)) & _MASK
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        found = (found * _M & _MASK) ^ _mix(int.from_bytes(data[at : at + 4], "little"))
    rest = len(data) - whole
    if rest:
        for position in range(rest):
            byte = data[len(data) - position - 1]
            signed = byte - 256 if byte > 127 else byte
            found ^= signed << 8 * position & _MASK
        found = (found & _MASK) * _M & _MASK
    return _finish(found)


class JavaRandom:
    """`java.util.Random`: the coefficients of the sketch come from it."""

    def __init__(self, seed: int) -> None:
        self._seed = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def below(self, limit: int) -> int:
        """`nextInt(limit)` of a limit that is no power of two."""
        while True:
            self._seed = (self._seed * 0x5DEECE66D + 0xB) & (1 << 48) - 1
            bits = self._seed >> 17
            value = bits % limit
            if bits - value + limit - 1 < 1 << 31:
                return value


class ApproximateCount(Processor):
    """State: `[events, counts by row and column]`; counts that are 0 are not kept."""

    def __init__(
        self, rt: Runtime, node: int, cell: int, error: float = 0.01, confidence: float = 0.99
    ) -> None:
        super().__init__(rt, node, cell)
        self.error = error
        self.depth = math.ceil(math.log(1 / (1 - confidence)))
        self.width = math.ceil(math.e / error)
        dice = JavaRandom(123)
        self.rows = [
            (dice.below((1 << 31) - 1), dice.below((1 << 31) - 1)) for _ in range(self.depth)
        ]

    def fresh(self) -> list[Any]:
        return [0, {}]

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        value = args[0]
        if value is None:
            return
        cells, step = state[self.cell], 1 if kind == CURRENT else -1
        cells[0] += step
        hashed, counts = wrap32(murmur(value)), cells[1]
        least = math.inf
        for i, (a, b) in enumerate(self.rows):
            mixed = wrap32(a * hashed + b)
            position = (i, abs(mixed) % self.width)
            found = counts[position] = counts.get(position, 0) + step
            if not found:
                del counts[position]
            least = min(least, found)
        around = int(cells[0] * self.error)
        extra = (least, max(least - around, 0), least + around)
        out.append((kind, ts, (*row, *extra)))

    def reset(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        state[self.cell][:] = [0, {}]
        out.append((RESET, ts, (*row, None, None, None)))


class ApproximateDistinct(Processor):
    """State: leading zeros by bucket, each with how often; `ever` forgets none."""

    def __init__(
        self,
        rt: Runtime,
        node: int,
        cell: int,
        error: float = 0.01,
        confidence: float = 0.95,
        *,
        ever: bool = False,
    ) -> None:
        super().__init__(rt, node, cell)
        self.error, self.confidence, self.ever = error, confidence, ever
        wanted = math.ceil((STANDARD_ERROR / error) ** 2)
        self.bits = math.ceil(math.log(wanted) / math.log(2))
        self.buckets = 1 << self.bits

    def fresh(self) -> dict[int, dict[int, int]]:
        return {}

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        value = args[0]
        if value is None:
            return
        held = state[self.cell]
        hashed = murmur(value)
        bucket, rest = hashed >> 32 - self.bits, hashed << self.bits & _MASK
        zeros = 32 - rest.bit_length() + 1
        if kind == CURRENT:
            counts = held.setdefault(bucket, {})
            counts[zeros] = 1 if self.ever else counts.get(zeros, 0) + 1
        elif not self.ever and zeros in held.get(bucket, {}):
            held[bucket][zeros] -= 1
            if not held[bucket][zeros]:
                del held[bucket][zeros]
            if not held[bucket]:
                del held[bucket]
        count = self.estimate(held)
        around = count * self.error * SIGMAS.get(self.confidence, 0.0)
        extra = (count, math.floor(count - around), math.ceil(count + around))
        out.append((kind, ts, (*row, *extra)))

    def reset(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        state[self.cell].clear()
        out.append((RESET, ts, (*row, None, None, None)))

    def estimate(self, held: dict[int, dict[int, int]]) -> int:
        """Linear counting where few buckets are filled, else the harmonic mean."""
        empty = self.buckets - len(held)
        harmonic = empty + sum(2.0 ** -max(counts) for counts in held.values())
        factor = FACTORS.get(self.bits, 0.7213 / (1 + 1.079 / self.buckets))
        found = math.ceil(self.buckets * factor * self.buckets / harmonic)
        if found < SMALL_RANGE * self.buckets and empty:
            return int(-self.buckets * math.log(empty / self.buckets))
        if found > HASHES / 30:
            return math.ceil(-HASHES * math.log(1 - found / HASHES))
        return found
