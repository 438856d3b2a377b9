"""The JavaScript client under Node: its own tests, and a conversation with a real edge."""

import asyncio
import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from edgewise.edge.server import Edge

ROOT = Path(__file__).parent.parent.parent
CLIENT = ROOT / "clients" / "js" / "edgewise.js"
WAIT_S = 30

TALK = """
import {{ connect }} from "{client}";
const ew = connect("{url}", {options});
ew.subscribe("a/#", (topic, value, meta) => {{
  console.log(JSON.stringify([topic, value.v, meta.how, ew.transport]));
  if (value.v === 2) ew.close();
}});
"""


def test_the_module_stays_small():
    assert len(gzip.compress(CLIENT.read_bytes())) < 15_000


@pytest.mark.integration
def test_the_tests_of_the_module_pass_under_node():
    node = shutil.which("node")
    assert node, "no node: run scripts/install-integration"
    done = subprocess.run(
        [node, "--test", str(CLIENT.parent)],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.integration
@pytest.mark.parametrize("transport", ["websocket", "sse", "poll"])
def test_three_lines_talk_to_an_edge(transport):
    talk(f"{{transports: ['{transport}']}}", transport)


@pytest.mark.integration
def test_without_a_websocket_class_the_next_transport_is_taken():
    talk("{}", "sse", flags=())


def talk(options, transport, flags=("--experimental-websocket",)):
    async def main():
        edge = Edge()
        port = await edge.start()
        edge.publish("a/1", {"v": 1}, offset=0, at_us=1)
        url = f"ws://127.0.0.1:{port}/ws"
        script = TALK.format(client=CLIENT.as_uri(), url=url, options=options)
        node = await asyncio.create_subprocess_exec(
            "node",
            *flags,
            "--no-warnings",
            "--input-type=module",
            "-e",
            script,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(WAIT_S):
            first = json.loads(await node.stdout.readline())
            assert first == ["a/1", 1, "snapshot", transport]
            edge.publish("a/1", {"v": 2}, offset=1, at_us=2)
            second = json.loads(await node.stdout.readline())
            assert second == ["a/1", 2, "update", transport]
            assert await node.wait() == 0
        await edge.stop()

    asyncio.run(main())
