"""Responses without a server; `test_http` sees them over a socket."""

import asyncio

from edgewise.gateway.http_responses import add_headers, refuse_method, refuse_path, respond


def test_a_head_request_gets_the_length_and_no_body():
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(respond(send, 200, b"abc", b"text/plain", head=True))
    assert (b"content-length", b"3") in sent[0]["headers"]
    assert sent[1] == {"type": "http.response.body", "body": b"", "more_body": False}


def test_a_refusal_names_the_path_or_the_methods_that_are_possible():
    assert "'/nowhere'" in refuse_path("/nowhere").message
    refusal = refuse_method("PUT", b"POST")
    assert refusal.headers == ((b"allow", b"POST"),)


def test_added_headers_are_those_of_the_start_only():
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(respond(add_headers(send, [(b"vary", b"origin")]), 200, b"x", b"text/plain"))
    assert (b"vary", b"origin") in sent[0]["headers"]
    assert (b"x-content-type-options", b"nosniff") in sent[0]["headers"]
    assert "headers" not in sent[1]
    assert add_headers(send, []) is send
