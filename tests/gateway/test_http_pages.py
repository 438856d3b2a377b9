import json

import pytest

from edgewise.event.schema import Schema
from edgewise.gateway.http_pages import build_pages, choose_page
from edgewise.gateway.ingest_config import IngestConfig


def test_every_page_has_a_type_and_a_body():
    schemas = {"b": Schema.of("b", v="int"), "a": Schema.of("a", ip="string")}
    pages = build_pages(schemas, IngestConfig(), lambda: "edgewise_x 1\n")
    kind, make = pages["/streams"]
    assert kind == b"application/json"
    assert [s["stream"] for s in json.loads(make())["streams"]] == ["a", "b"]
    assert "/streams/a" in json.loads(pages["/openapi.json"][1]())["paths"]
    assert pages["/metrics"][1]() == b"edgewise_x 1\n"


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/livez", "GET", 200), ("/readyz", "GET", 503), ("/readyz", "POST", 405),
        ("/page", "HEAD", 200), ("/page", "PUT", 405), ("/none", "GET", 404),
    ],
)  # fmt: skip
def test_a_page_is_chosen_by_path_and_method(path, method, status):
    pages = {"/page": (b"text/plain", lambda: b"x")}
    assert choose_page(path, method, pages, lambda: (False, b"{}")).status == status
