"""The JavaScript client under Node: its own tests, and a conversation with a real edge."""

import asyncio
import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from edgewise.edge.server.server import Edge

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


def declared():
    types = (CLIENT.parent / "edgewise.d.ts").read_text()
    exports = re.findall(r"^export declare (?:const|function|class) (\w+)", types, re.MULTILINE)
    body = types[types.index("export interface Edgewise {") :]
    members = re.findall(
        r"^  (?:readonly )?(\w+)(?=[(<:])", body[: body.index("\n}")], re.MULTILINE
    )
    return sorted(exports), sorted(set(members))


@pytest.mark.integration
def test_what_the_types_declare_is_what_the_module_has():
    exports, members = declared()
    script = f"""
import * as all from "{CLIENT.as_uri()}";
const edge = all.connect("ws://127.0.0.1:9/ws", {{transports: ["poll"]}});
const members = {json.dumps(members)}.filter((name) => !(name in edge));
console.log(JSON.stringify([Object.keys(all).sort(), members]));
process.exit(0);
"""
    done = subprocess.run(
        ["node", "--no-warnings", "--input-type=module", "-e", script],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    assert json.loads(done.stdout) == [exports, []]


@pytest.mark.integration
def test_the_types_allow_and_refuse_what_they_should(tmp_path):
    tsc = subprocess.run(
        [ROOT / "scripts" / "fetch-typescript"], capture_output=True, text=True, check=True
    ).stdout.strip()
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "edgewise").symlink_to(CLIENT.parent)
    shutil.copy(ROOT / "tests" / "client" / "usage.ts", tmp_path)
    flags = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom"]
    done = subprocess.run(
        [tsc, *flags, "--module", "nodenext", "--moduleResolution", "nodenext", "usage.ts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=4 * WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout


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
