"""Apps written for Siddhi keep their option names; whatever has no effect is told."""

from pathlib import Path

import pytest

from edgewise.gateway.connectors import (
    HTTP_OPTIONS,
    SINKS,
    SOURCES,
    check_sink,
    check_source,
)
from edgewise.gateway.siddhi_options import (
    SIDDHI_SINKS,
    SIDDHI_SOURCES,
    SINK_ALIASES,
    SOURCE_ALIASES,
    explain_unconnected,
    list_unconnected,
    translate_options,
)
from edgewise.gateway.spec import BadSpec, SinkSpec, SourceSpec

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sources-and-sinks.md"
TABLES = [
    *(("source", kind, table) for kind, table in SIDDHI_SOURCES.items()),
    *(("sink", kind, table) for kind, table in SIDDHI_SINKS.items()),
]


def options_of(word, kind):
    if (word, kind) == ("source", "http"):
        return HTTP_OPTIONS
    return (SOURCES if word == "source" else SINKS)[kind].options


@pytest.mark.parametrize(("word", "kind", "table"), TABLES)
def test_an_option_of_siddhi_becomes_one_of_ours_or_is_told(word, kind, table):
    known = {*options_of(word, kind), "delivery"}
    for name, option in table.items():
        converted = option.convert("0")
        assert converted or option.reason, name
        assert set(converted) <= known, name
        _, notes = translate_options({name: "unusual"}, table, {})
        assert [note.option for note in notes] == ([name] if option.reason else [])


@pytest.mark.parametrize(
    ("kind", "given", "ours"),
    [
        ("http", {"receiver.url": "http://0.0.0.0:8006/sweets"}, {"path": "/sweets"}),
        (
            "kafka",
            {"bootstrap.servers": "h:1", "topic.list": "a,b", "group.id": "g"},
            {"servers": "h:1", "topic": "a,b"},
        ),
        ("file", {"file.uri": "file:/a/b.csv", "tailing": "FALSE"}, {"path": "/a/b.csv"}),
        ("file", {"file.uri": "file:///a/b.csv"}, {"path": "/a/b.csv", "follow": "true"}),
        ("file", {"dir.uri": "file:/a/in/"}, {"path": "/a/in/*"}),
        (
            "mqtt",
            {"url": "tcp://h:1883", "topic": "t", "quality.of.service": "0"},
            {"url": "mqtt://h:1883", "qos": "0", "delivery": "at-most-once"},
        ),
        (
            "rabbitmq",
            {"uri": "amqp://h", "exchange.name": "e", "exchange.type": "direct"},
            {"url": "amqp://h", "exchange": "e", "exchange.type": "direct", "queue": ""},
        ),
    ],
)
def test_a_source_of_siddhi_is_understood(kind, given, ours):
    options = check_source(SourceSpec("S", kind, given)).options
    assert {name: options[name] for name in ours} == ours


def test_a_sink_of_siddhi_is_understood():
    given = {
        "publisher.url": "http://h/x",
        "method": "PUT",
        "on.error": "WAIT",
        "proxy.host": "p",
    }
    spec = check_sink(SinkSpec("S", "http", given))
    assert (spec.options["url"], spec.options["method"]) == ("http://h/x", "PUT")
    assert [note.message for note in spec.notes] == [
        "proxy.host='p' has no effect: rows are sent without a proxy"
    ]


def test_a_value_that_asks_for_what_is_done_anyway_is_not_told():
    given = {"file.uri": "/a", "mode": "LINE", "action.after.process": "keep"}
    assert check_source(SourceSpec("S", "file", given)).notes == ()
    given["mode"] = "text.full"
    spec = check_source(SourceSpec("S", "file", given))
    assert (spec.options["format"], spec.notes) == ("whole", ())
    given["mode"] = "regex"
    (note,) = check_source(SourceSpec("S", "file", given)).notes
    assert note.message == "mode='regex' files are read line by line, or whole as text"


def test_an_option_that_nobody_knows_is_refused_with_the_nearest_name():
    with pytest.raises(BadSpec, match=r"did you mean 'topic\.list'") as bad:
        check_source(SourceSpec("S", "kafka", {"topics.list": "t"}))
    assert bad.value.option == "topics.list"


def test_our_name_wins_over_the_one_of_siddhi():
    options, _ = translate_options(
        {"path": "/ours", "file.uri": "/theirs"}, SIDDHI_SOURCES["file"], {}
    )
    assert options == {"path": "/ours"}
    options, _ = translate_options(
        {"file.uri": "/theirs", "path": "/ours"}, SIDDHI_SOURCES["file"], {}
    )
    assert options == {"path": "/ours"}


@pytest.mark.parametrize("kind", list_unconnected())
def test_a_type_that_only_siddhi_has_is_known_with_what_to_use_instead(kind):
    assert explain_unconnected(kind)
    if kind not in SOURCE_ALIASES:
        assert check_source(SourceSpec("S", kind, {"any": "x"})).unconnected
    if kind not in {*SINK_ALIASES, *SINKS}:
        assert check_sink(SinkSpec("S", kind, {"any": "x"})).unconnected


def test_no_type_is_both_connected_and_not():
    both = {*SOURCES, *SINKS, "http", "topic"} & set(list_unconnected())
    assert both == {"email", "cdc"}  # a sink and no source; only polled


def test_the_page_lists_the_options_of_every_type(generated_block):
    lines = ["| type | option | default | meaning |", "|---|---|---|---|"]
    for word, kinds in (("source", [*SOURCES, "http"]), ("sink", [*SINKS])):
        for kind in sorted(kinds):
            for name, option in options_of(word, kind).items():
                default = "required" if option.default is None else option.default
                shown = f"`{default}`" if default and option.default is not None else default
                lines.append(f"| {kind} {word} | `{name}` | {shown} | {option.doc} |")
    generated_block(PAGE, "options", "\n".join(lines))


def test_the_page_lists_what_becomes_of_siddhis_options(generated_block):
    lines = ["| type | in Siddhi | here |", "|---|---|---|"]
    for word, kind, table in sorted(TABLES, key=lambda entry: entry[:2]):
        for name, option in table.items():
            ours = ", ".join(f"`{our_name}`" for our_name in option.convert("x")) or "no effect"
            reason = f": {option.reason}" if option.reason else ""
            lines.append(f"| {kind} {word} | `{name}` | {ours}{reason} |")
    generated_block(PAGE, "siddhi", "\n".join(lines))


def test_the_page_lists_the_types_that_are_not_connected(generated_block):
    lines = ["| type | instead |", "|---|---|"]
    lines += (f"| `{kind}` | {explain_unconnected(kind)} |" for kind in list_unconnected())
    generated_block(PAGE, "unconnected", "\n".join(lines))


LOGIN = """security.protocol:SASL_SSL,sasl.mechanism:PLAIN,
sasl.jaas.config:org.x.PlainLoginModule required username="u" password='p';"""


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("security.protocol:SSL", {"security": "ssl"}),
        (
            LOGIN,
            {"security": "sasl_ssl", "sasl.mechanism": "PLAIN", "username": "u", "password": "p"},
        ),
        ("batch.size:100", {}),
    ],
)
def test_the_log_in_of_javas_kafka_client_is_taken(given, ours):
    options, notes = translate_options(
        {"optional.configuration": given}, SIDDHI_SOURCES["kafka"], {}
    )
    assert options == ours
    assert notes
