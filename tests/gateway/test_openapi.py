import json

from edgewise.event.schema import Schema
from edgewise.gateway.admit import FRAMINGS, AdmissionLimits
from edgewise.gateway.openapi import build_openapi
from edgewise.gateway.spec import MapSpec

STREAMS = {
    "login": Schema.of("login", ip="string", n="int", o="object"),
    "raw": Schema.of("raw", data="string"),
}


def references(node):
    if isinstance(node, dict):
        yield from ([node["$ref"]] if "$ref" in node else [])
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from references(part)


def test_every_reference_leads_somewhere():
    document = json.loads(json.dumps(build_openapi(STREAMS, AdmissionLimits())))
    found = list(references(document))
    assert found
    for reference in found:
        place = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_each_stream_has_a_call_that_takes_every_supported_type():
    document = build_openapi(STREAMS, AdmissionLimits())
    post = document["paths"]["/streams/login"]["post"]
    assert set(post["requestBody"]["content"]) == set(FRAMINGS)
    assert {"200", "400", "413", "429", "503"} <= set(post["responses"])


def test_the_attributes_are_described_as_they_are_checked():
    schemas = build_openapi(STREAMS, AdmissionLimits())["components"]["schemas"]
    plain, envelope = schemas["stream.login"]["oneOf"]
    assert plain["required"] == ["ip", "n", "o"]
    assert plain["properties"]["n"]["maximum"] == 2**31 - 1
    assert envelope["required"] == ["data"]
    assert "oneOf" not in schemas["stream.raw"]


def test_further_addresses_are_described_with_what_they_take():
    csv = {"/csv/in": MapSpec("csv")}
    document = build_openapi(
        STREAMS, AdmissionLimits(), {"/logins": "login", "/csv/in": "login"}, csv
    )
    posts = {path: document["paths"][path]["post"] for path in ("/logins", "/csv/in")}
    assert set(posts["/logins"]["requestBody"]["content"]) == set(FRAMINGS)
    assert set(posts["/csv/in"]["requestBody"]["content"]) == {"*/*"}
    names = [p["post"]["operationId"] for p in document["paths"].values() if "post" in p]
    assert sorted(names) == [
        "publish_login",
        "publish_login_csv_in",
        "publish_login_logins",
        "publish_raw",
    ]
