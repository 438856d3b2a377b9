import asyncio
import resource

from edgewise.node.upkeep import file_limit
from edgewise.node.upkeep.file_limit import FileLimit, watch_file_limit


def test_a_node_near_its_limit_says_so_once_and_when_it_is_over():
    limit = FileLimit()
    assert not limit.describe(89, 100)
    assert "90 of 100" in limit.describe(90, 100)
    assert not limit.describe(99, 100)
    assert not limit.describe(85, 100)
    assert "79 of 100" in limit.describe(79, 100)
    assert not limit.describe(79, 100)


def test_the_files_of_this_process_are_counted(monkeypatch):
    said = []
    monkeypatch.setattr(file_limit.resource, "getrlimit", lambda _which: (5, 5))
    monkeypatch.setattr(file_limit, "CHECK_EVERY_S", 0)

    async def scenario():
        watching = asyncio.create_task(watch_file_limit(said.append))
        async with asyncio.timeout(20):
            while not said:  # noqa: ASYNC110  every turn is a check
                await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])

    asyncio.run(scenario())
    assert "of 5 files and connections are open" in said[0]


def test_a_process_without_a_free_descriptor_still_says_so(monkeypatch):
    def full(_path):
        raise OSError(24, "Too many open files")

    said = []
    monkeypatch.setattr(file_limit.os, "listdir", full)

    async def scenario():
        watching = asyncio.create_task(watch_file_limit(said.append))
        await asyncio.sleep(0)
        watching.cancel()
        await asyncio.wait([watching])

    asyncio.run(scenario())
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert f"{soft} of {soft} files" in said[0]
