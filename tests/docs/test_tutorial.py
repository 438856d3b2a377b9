"""The page that a reader of the tutorial writes shows what the node serves; run by Node."""

import asyncio
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager

import pytest
from tests.support.pages import DOCS, ROOT, find_blocks

from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge

WAIT_S = 30
VALUE = {"customer": "ada", "spent": 560.0, "n": 2}
# What the page needs of a browser: one element, whose content is printed.
DOCUMENT = """
globalThis.document = { getElementById: () => ({
  set innerHTML(text) { console.log(text); process.exit(0); },
}) };
setTimeout(() => process.exit(1), 10_000);
"""


@contextmanager
def edge_with_a_customer():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start():
        edge = Edge(EdgeConfig())
        edge.publish("customers/ada", VALUE, offset=0, at_us=1)
        return edge, await edge.start()

    edge, port = asyncio.run_coroutine_threadsafe(start(), loop).result(WAIT_S)
    try:
        yield port
    finally:
        asyncio.run_coroutine_threadsafe(edge.stop(), loop).result(WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()


@pytest.mark.integration
def test_the_page_of_the_tutorial_shows_a_customer():
    blocks = find_blocks(DOCS / "tutorial" / "index.md")
    (page,) = [block.text for block in blocks if block.file == "index.html"]
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    client = (ROOT / "clients" / "js" / "edgewise.js").as_uri()
    node = shutil.which("node")
    assert node, "no node: run scripts/install-integration"
    with edge_with_a_customer() as port:
        text = script.replace("./edgewise.js", client).replace("8008", str(port))
        options = ["--experimental-websocket", "--no-warnings", "--input-type=module"]
        done = subprocess.run(
            [node, *options, "-e", f"{DOCUMENT}\n{text}"],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
    assert done.stdout == "<li>ada: 560 in 2 orders</li>\n", done.stderr
