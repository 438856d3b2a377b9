import pytest

from edgewise.errors import BadEvent
from edgewise.plan.functions import json_path

DOCUMENT = {
    "name": "John",
    "list": [1, 2.5, "x", None],
    "addr": {"city": "Colombo", "zip": "0100"},
    "items": [{"p": 1, "n": "a"}, {"p": 5, "n": "b"}],
    "sp ace": "v",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.name", "John"),
        ("name", "John"),
        ("$['addr']['city']", "Colombo"),
        ("$['sp ace']", "v"),
        ("$.list[-1]", None),
        ("$.list[0,2]", [1, "x"]),
        ("$.list[1:3]", [2.5, "x"]),
        ("$.items[*].p", [1, 5]),
        ("$..p", [1, 5]),
        ("$.items[?(@.p > 1)].n", ["b"]),
        ("$.items[?(@.p > 1 || @.n == 'a')].n", ["a", "b"]),
        ("$.items[?(@.n =~ /A/i)].p", [1]),
        ("$.items[?(@.n in ['b'])].p", [5]),
        ("$.items[?(!(@.q))].p", [1, 5]),
        ("$.items.length()", 2),
        ("$..p.sum()", 6.0),
        ("$.addr.keys()", ["city", "zip"]),
        ("$.addr.*", ["Colombo", "0100"]),
        ("$.addr['city','zip']", ["Colombo", "0100"]),
    ],
)
def test_paths_lead_where_they_do_in_the_original(path, value):
    assert json_path.read(DOCUMENT, path) == value


@pytest.mark.parametrize("path", ["$.nope", "$.list[9]", "$.name.x", "$.list.x"])
def test_a_definite_path_that_leads_nowhere_is_said(path):
    with pytest.raises(json_path.MissingPath):
        json_path.read(DOCUMENT, path)


@pytest.mark.parametrize("path", ["", "$.", "$[", "$[x]", "$..", "$.a b", "$[?(@.a >)]", "$x"])
def test_what_is_no_path_drops_the_event(path):
    with pytest.raises(BadEvent):
        json_path.read(DOCUMENT, path)
