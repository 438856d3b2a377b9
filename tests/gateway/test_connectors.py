import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.memory_log import MemoryLog

from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.connectors import (
    HTTP_GUARANTEES,
    SINKS,
    SOURCES,
    build_ingest_config,
    check_sink,
    check_source,
    load_source_class,
    parse_sink,
    parse_source,
)
from edgewise.gateway.ingest_config import IngestConfig
from edgewise.gateway.spec import BadSpec, MapSpec, SinkSpec, SourceSpec

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sources-and-sinks.md"


def test_defaults_are_filled_in():
    assert check_source(SourceSpec("S", "http")).options == {
        "path": "",
        "delivery": "at-least-once",
        "dedup": "",
        "dedup.bound": "100000",
    }


@pytest.mark.parametrize(
    ("spec", "words", "option"),
    [
        (SourceSpec("S", "htp"), "no source of type 'htp'; did you mean 'http'?", ""),
        (SourceSpec("S", "http", {"pth": "/x"}), "no option 'pth'; did you mean 'path'?", "pth"),
        (SourceSpec("S", "http", {"path": "x"}), "must start with '/'", "path"),
        (
            SourceSpec("S", "http", {"delivery": "exactly-once"}),
            "cannot give 'exactly-once'",
            "delivery",
        ),
    ],
)
def test_what_no_door_can_keep_is_refused_before_anything_starts(spec, words, option):
    with pytest.raises(BadSpec, match=words.replace("?", r"\?")) as bad:
        check_source(spec)
    assert bad.value.option == option


def test_an_unknown_sink_is_refused():
    with pytest.raises(BadSpec, match="no sink of type 'nowhere'"):
        check_sink(SinkSpec("S", "nowhere"))


def test_a_sink_may_declare_its_recovery():
    spec = SinkSpec("S", "zeromq", {"url": "ipc://x", "recovery": "gap"})
    assert check_sink(spec).options["recovery"] == "gap"


def test_the_http_annotations_of_an_app_become_one_server():
    specs = [SourceSpec("A", "http", {"path": "/a"}), SourceSpec("B", "http")]
    assert build_ingest_config(specs).paths == {"/a": "A"}
    assert build_ingest_config(specs, IngestConfig(keep_alive_s=3)).keep_alive_s == 3
    with pytest.raises(BadSpec, match="path '/a' is taken by stream 'A'"):
        build_ingest_config([*specs, SourceSpec("B", "http", {"path": "/a"})])


def test_an_http_source_with_a_mapping_needs_an_address_of_its_own():
    csv = MapSpec("csv", {"delimiter": ";"})
    assert build_ingest_config([SourceSpec("A", "http", {"path": "/a"}, csv)]).maps == {"/a": csv}
    with pytest.raises(BadSpec, match="needs path"):
        check_source(SourceSpec("A", "http", {}, csv))


def test_effectively_once_asks_every_request_for_a_key():
    spec = SourceSpec("A", "http", {"delivery": "effectively-once"})
    assert build_ingest_config([spec]).keyed == {"A"}


@dataclass
class Annotation:
    name: str
    pairs: tuple = ()
    nested: tuple = ()


def test_annotations_become_specs_with_their_mapping():
    attributes = Annotation("attributes", (("v", "a.b"),))
    mapping = Annotation("map", (("type", "json"),), (attributes,))
    pairs = (("type", "zeromq"), ("url", "ipc://x"))
    spec = parse_source("S", Annotation("source", pairs, (mapping,)), Schema.of("S", v="int"))
    assert (spec.type, spec.options["url"], spec.options["socket"]) == ("zeromq", "ipc://x", "sub")
    assert spec.map.attributes == {"v": "a.b"}


def test_a_mapping_that_does_not_fit_is_found_before_anything_starts():
    schema = Schema.of("S", v="int", w="int")
    pairs = (("type", "zeromq"), ("url", "ipc://x"))
    text = Annotation("map", (("type", "text"), ("regex", "")))
    with pytest.raises(BadSpec, match="fills one string attribute"):
        parse_source("S", Annotation("source", pairs, (text,)), schema)
    with pytest.raises(BadSpec, match="has no option 'regex'"):
        parse_sink("S", Annotation("sink", pairs, (text,)), schema)
    with pytest.raises(BadSpec, match="needs a type"):
        parse_source("S", Annotation("source"))


PIGEON = """
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import Guarantee, Option


class PigeonSource:
    OPTIONS = {"loft": Option("where they land", None)}
    GUARANTEES = (Guarantee.AT_MOST_ONCE,)

    @staticmethod
    def check(options):
        pass

    def __init__(self, spec, schema, writer, clock):
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats

    async def start(self):
        await self._ingest.accept(b'{"v": 7}')

    async def stop(self):
        await self._ingest.close()
"""


def test_a_user_adds_a_source_with_one_class_and_an_entry_point(tmp_path, monkeypatch):
    (tmp_path / "pigeons.py").write_text(PIGEON)
    info = tmp_path / "pigeons-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeons\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[edgewise.sources]\npigeon = pigeons:PigeonSource\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadSpec, match="'pigeon' needs the option 'loft'"):
        check_source(SourceSpec("S", "pigeon"))
    spec = check_source(SourceSpec("S", "pigeon", {"loft": "here"}))
    schema = Schema.of("S", v="int")
    log = MemoryLog(schema)

    async def scenario():
        source = load_source_class("pigeon")(spec, schema, log, ManualClock())
        await source.start()
        await source.stop()

    asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == [7]


def test_the_page_says_what_each_type_guarantees(generated_block):
    def words(guarantees):
        return ", ".join(f"`{g.value}`" for g in guarantees) or "-"

    lines = ["| type | as a source | as a sink |", "|---|---|---|"]
    for kind in sorted({*SOURCES, *SINKS, "http"}):
        taken = HTTP_GUARANTEES if kind == "http" else ()
        taken = SOURCES[kind].guarantees if kind in SOURCES else taken
        given = SINKS[kind].guarantees if kind in SINKS else ()
        page = kind.removesuffix("-response")
        lines.append(
            f"| [{kind}](../how-to/connect/{page}.md) | {words(taken)} | {words(given)} |"
        )
    generated_block(PAGE, "types", "\n".join(lines))


def test_an_inner_annotation_that_nobody_knows_is_refused_with_the_nearest_name():
    pairs = (("type", "zeromq"), ("url", "ipc://x"))
    with pytest.raises(BadSpec, match="@source takes no @mpa; did you mean @map"):
        parse_source("S", Annotation("source", pairs, (Annotation("mpa"),)))
