import asyncio
import gzip
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.gateway.quotas import Publisher, QuotaConfig, Quotas
from edgewise.gateway.refusal import Refusal
from edgewise.gateway.request_body import (
    LINGER_BYTES_MAX,
    MEMBERS_MAX,
    BodyLimits,
    Disconnected,
    RequestBody,
    TooLarge,
    drain_request,
    gunzip,
)
from edgewise.gateway.stats import ConnectorStats

LIMITS = BodyLimits(bytes_max=100, in_flight_bytes_max=150, timeout_s=5)


def use(bytes_max=10_000):
    return Quotas(QuotaConfig(), 2 * bytes_max).begin(Publisher("ada"), 0.0)


def sender(*chunks, gone=False):
    """What a server hands to an application, chunk by chunk."""
    messages = [{"type": "http.request", "body": c, "more_body": True} for c in chunks]
    if gone:
        messages.append({"type": "http.disconnect"})
    else:
        messages.append({"type": "http.request", "body": b"", "more_body": False})
    left = iter(messages)

    async def receive():
        return next(left)

    return receive


def read(receive, headers=None, stats=None):
    stats = stats or ConnectorStats()
    body = RequestBody(LIMITS, stats, use(), receive)
    got = asyncio.run(body.read(headers or {}))
    held = stats.bytes_in_flight
    body.release()
    return got, held, stats


@given(st.lists(st.binary(max_size=40), max_size=6), st.booleans())
def test_a_body_is_its_chunks_or_too_large_and_gives_its_share_back(chunks, packed):
    whole = b"".join(chunks)
    if packed:
        chunks = [gzip.compress(whole)]
    headers = {b"content-encoding": b"gzip"} if packed else {}
    got, held, stats = read(sender(*chunks), headers)
    if isinstance(got, Refusal):
        assert got.status in {413, 429}
        assert len(whole) > LIMITS.bytes_max or packed
    else:
        assert got == whole
        assert held >= len(whole)
    assert stats.bytes_in_flight == 0


def test_a_length_beyond_the_limit_is_refused_before_a_byte_is_read():
    async def forbidden():
        raise AssertionError("was read")

    assert read(forbidden, {b"content-length": b"101"})[0].status == 413


def test_bodies_share_one_budget():
    stats = ConnectorStats(bytes_in_flight=100)
    assert read(sender(b"x" * 60), {b"content-length": b"60"}, stats)[0].status == 429
    assert read(sender(b"x" * 60), {}, stats)[0].status == 429
    assert read(sender(b"x" * 50), {}, stats)[0] == b"x" * 50
    assert stats.bytes_in_flight == 100


def test_a_sender_that_goes_away_is_gone():
    with pytest.raises(Disconnected):
        read(sender(b"x", gone=True))


async def never():
    await asyncio.Event().wait()


def test_a_body_that_does_not_come_is_refused_and_the_request_goes_on():
    async def scenario():
        got = await RequestBody(
            replace(LIMITS, timeout_s=0.001), ConnectorStats(), use(), never
        ).read({})
        assert (got.status, got.code) == (408, "slow")
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0)

    asyncio.run(scenario())


def test_a_request_that_is_cancelled_from_outside_stays_cancelled():
    async def scenario():
        reading = asyncio.create_task(RequestBody(LIMITS, ConnectorStats(), use(), never).read({}))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(scenario())


def test_lingering_ends_with_the_body_or_at_its_limit():
    asyncio.run(drain_request(sender(b"x", b"y")))
    asyncio.run(drain_request(sender(b"x", gone=True)))
    asyncio.run(drain_request(sender(*[bytes(LINGER_BYTES_MAX // 2)] * 3)))


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=4))
def test_members_come_out_joined(parts):
    assert gunzip(b"".join(map(gzip.compress, parts)), 1000) == b"".join(parts)


def test_a_bomb_is_stopped_at_the_limit():
    with pytest.raises(TooLarge, match="larger than 1000 bytes when unpacked"):
        gunzip(gzip.compress(bytes(10_000_000)), 1000)
    assert gunzip(gzip.compress(bytes(1000)), 1000) == bytes(1000)


@given(st.binary(max_size=50), st.data())
def test_torn_and_foreign_bytes_are_a_value_error(content, data):
    packed = gzip.compress(content)
    cut = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(ValueError, match="gzip"):
        gunzip(packed[:cut], 1000)
    with pytest.raises(ValueError, match="gzip"):
        gunzip(b"x" + packed, 1000)


def test_too_many_members_are_refused():
    with pytest.raises(ValueError, match=f"more than {MEMBERS_MAX} gzip members"):
        gunzip(gzip.compress(b"") * (MEMBERS_MAX + 1), 1000)


def test_one_caller_has_a_part_of_the_budget():
    mine, stats = use(bytes_max=80), ConnectorStats()

    async def fill():
        bodies = [RequestBody(LIMITS, stats, mine, sender(b"x" * 50)) for _ in range(2)]
        return [await body.read({}) for body in bodies]

    first, second = asyncio.run(fill())
    assert first == b"x" * 50
    assert second.status == 429
    assert read(sender(b"y" * 50), {}, stats)[0] == b"y" * 50, "another caller has its own"
