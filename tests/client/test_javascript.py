"""The JavaScript client under Node: its own tests, and a conversation with a real edge."""

import asyncio
import gzip
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
const ew = connect("{url}");
ew.subscribe("a/#", (topic, value, meta) => {{
  console.log(JSON.stringify([topic, value.v, meta.how]));
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
def test_three_lines_talk_to_an_edge():
    async def main():
        edge = Edge()
        port = await edge.start()
        edge.publish("a/1", {"v": 1}, offset=0, at_us=1)
        script = TALK.format(client=CLIENT.as_uri(), url=f"ws://127.0.0.1:{port}/ws")
        node = await asyncio.create_subprocess_exec(
            "node",
            "--experimental-websocket",
            "--no-warnings",
            "--input-type=module",
            "-e",
            script,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(WAIT_S):
            assert await node.stdout.readline() == b'["a/1",1,"snapshot"]\n'
            edge.publish("a/1", {"v": 2}, offset=1, at_us=2)
            assert await node.stdout.readline() == b'["a/1",2,"update"]\n'
            assert await node.wait() == 0
        await edge.stop()

    asyncio.run(main())
