"""Wait for a condition in an event loop, up to a limit."""

import asyncio


async def until(condition, timeout_s=20):
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110  the other side is no part of this loop
            await asyncio.sleep(0.01)
