import asyncio
import gzip
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.gateway.body import LINGER_BYTES_MAX, Body, BodyLimits, Gone, linger
from edgewise.gateway.refusal import Refused
from edgewise.gateway.stats import DoorStats

LIMITS = BodyLimits(bytes_max=100, in_flight_bytes_max=150, timeout_s=5)


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
    stats = stats or DoorStats()
    body = Body(LIMITS, stats, receive)
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
    if isinstance(got, Refused):
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
    stats = DoorStats(bytes_in_flight=100)
    assert read(sender(b"x" * 60), {b"content-length": b"60"}, stats)[0].status == 429
    assert read(sender(b"x" * 60), {}, stats)[0].status == 429
    assert read(sender(b"x" * 50), {}, stats)[0] == b"x" * 50
    assert stats.bytes_in_flight == 100


def test_a_sender_that_goes_away_is_gone():
    with pytest.raises(Gone):
        read(sender(b"x", gone=True))


async def never():
    await asyncio.Event().wait()


def test_a_body_that_does_not_come_is_refused_and_the_request_goes_on():
    async def scenario():
        got = await Body(replace(LIMITS, timeout_s=0.001), DoorStats(), never).read({})
        assert (got.status, got.code) == (408, "slow")
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0)

    asyncio.run(scenario())


def test_a_request_that_is_cancelled_from_outside_stays_cancelled():
    async def scenario():
        reading = asyncio.create_task(Body(LIMITS, DoorStats(), never).read({}))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(scenario())


def test_lingering_ends_with_the_body_or_at_its_limit():
    asyncio.run(linger(sender(b"x", b"y")))
    asyncio.run(linger(sender(b"x", gone=True)))
    asyncio.run(linger(sender(*[bytes(LINGER_BYTES_MAX // 2)] * 3)))
