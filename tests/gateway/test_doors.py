import pytest

from edgewise.gateway.doors import check_sink, check_source, http_config
from edgewise.gateway.http import HttpConfig
from edgewise.gateway.spec import BadSpec, SinkSpec, SourceSpec


def test_defaults_are_filled_in():
    assert check_source(SourceSpec("S", "http")).options == {
        "path": "",
        "delivery": "at-least-once",
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


def test_the_http_annotations_of_an_app_become_one_door():
    specs = [SourceSpec("A", "http", {"path": "/a"}), SourceSpec("B", "http")]
    assert http_config(specs).paths == {"/a": "A"}
    assert http_config(specs, HttpConfig(keep_alive_s=3)).keep_alive_s == 3
    with pytest.raises(BadSpec, match="path '/a' is taken by stream 'A'"):
        http_config([*specs, SourceSpec("B", "http", {"path": "/a"})])


def test_effectively_once_asks_every_request_for_a_key():
    spec = SourceSpec("A", "http", {"delivery": "effectively-once"})
    assert http_config([spec]).keyed == {"A"}
