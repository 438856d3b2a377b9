"""docs/explanation/edge.md: its programs run against an edge, its lists are those of the code."""

import asyncio
import json
import re
import shutil
import subprocess
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.edge.topics import topic_sink as sink
from edgewise.edge.topics.merges import STOCK, WINDOW_SHOWS, MergeRegistry
from edgewise.edge.topics.topic_sink import TopicSink
from edgewise.lang import compile_app
from edgewise.node.app.declared_merges import AGGREGATES, register_aggregates
from edgewise.node.app.topic_options import read_options

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "edge.md").read_text()
README = (ROOT / "README.md").read_text()
WAIT_S = 30
ALERT = {"ip": "10.0.0.1", "loginCount": 11}


def blocks(language, page=PAGE):
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@contextmanager
def an_edge():
    """In a thread of its own, as the programs on the page expect one to be somewhere."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start():
        edge = Edge(EdgeConfig())
        edge.publish("alerts/10.0.0.1", ALERT, offset=0, at_us=1)
        return edge, await edge.start()

    edge, port = asyncio.run_coroutine_threadsafe(start(), loop).result(WAIT_S)
    try:
        yield port
    finally:
        asyncio.run_coroutine_threadsafe(edge.stop(), loop).result(WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()


class Enough(Exception):
    """What the program was to show has been shown."""


@pytest.mark.parametrize("program", blocks("python"))
def test_a_python_program_prints_the_alert(program):
    printed = []

    def show(*values):
        printed.append(values)
        raise Enough

    with an_edge() as port, pytest.raises(Enough):
        exec(program.replace("8008", str(port)), {"print": show})
    assert printed == [("alerts/10.0.0.1", ALERT, 1)]


@pytest.mark.integration
@pytest.mark.parametrize("program", [*blocks("js"), *blocks("js", README)])
def test_a_javascript_program_prints_the_alert(program):
    client = (ROOT / "clients" / "js" / "edgewise.js").as_uri()
    node = shutil.which("node")
    assert node, "no node: run scripts/install-integration"
    with an_edge() as port:
        text = program.replace("8008", str(port)).replace("/js/edgewise.js", client)
        text += "\nsetTimeout(() => process.exit(0), 1500);\n"
        done = subprocess.run(
            [node, "--experimental-websocket", "--no-warnings", "--input-type=module", "-e", text],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
    assert "alerts/10.0.0.1" in done.stdout, done.stderr
    assert "loginCount: 11" in done.stdout


def test_curl_gets_current_values():
    (commands,) = blocks("sh")
    urls = [u.strip("'") for u in re.findall(r"curl (\S+)", commands)]
    assert len(urls) == 2
    with an_edge() as port:
        for url in urls:
            there = url.replace("8008", str(port))
            with urllib.request.urlopen(there, timeout=WAIT_S) as answer:
                assert "10.0.0.1" in json.dumps(json.load(answer))


@pytest.mark.parametrize("app", blocks("sql"))
def test_an_app_compiles_and_its_topics_are_accepted(app):
    query = "define stream Aux (x int); from Aux select x insert into AuxOut;"
    compiled = compile_app(app + query).app
    sinks = [a for s in compiled.streams for a in s.annotated("sink")]
    assert sinks
    for annotation in sinks:
        TopicSink.parse(read_options(annotation))


def test_every_option_of_a_sink_is_in_the_table_and_works():
    table = PAGE[PAGE.index("| option |") : PAGE.index("## Conflation")]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE)
    documented = re.findall(r"^(\w+) {2,}\S", sink.__doc__, re.MULTILINE)
    assert {name for name, _ in rows} >= set(documented)
    for name, values in rows:
        for value in re.findall(r"`'?([^`']+)'?`", values):
            if name in {"key", "keep"}:
                continue
            given = {"path": "a/{x}", name: value.replace("(op)", "(sum)")}
            if value == "table":
                given["key"] = "{x}"
            if value == "blob":
                given["body"] = "{x}"
            TopicSink.parse(given)


def test_every_merge_is_named_and_every_named_one_is_known():
    text = " ".join(PAGE[PAGE.index("Stock merges") : PAGE.index("Any other")].split())
    for name in [*STOCK, *AGGREGATES]:
        assert re.search(rf"\b{name}\b", text), f"{name} is not on the page"
    known = register_aggregates(MergeRegistry())
    for conflate in re.findall(r"`(merge\([^`]+\))`", PAGE):
        if conflate != "merge(op)":
            assert known.parse(conflate) is not None
    assert {"mean", "min", "max"} <= set(WINDOW_SHOWS)
