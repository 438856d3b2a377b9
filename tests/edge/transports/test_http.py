from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.transports.http import (
    BadRequest,
    HttpParser,
    HttpRequest,
    problem_response,
    serve_assets,
)


def parse(data, head_max=500, body_max=100):
    parser = HttpParser(head_max, body_max)
    return parser, parser.receive(data)


@given(st.integers(1, 60))
def test_requests_come_out_however_the_bytes_are_cut(size):
    data = (
        b"GET /topics/a%20b?select=x%23 HTTP/1.1\r\nHost: h\r\n\r\n"
        b"POST /send HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
    )
    parser, out = HttpParser(500, 100), []
    for i in range(0, len(data), size):
        out += parser.receive(data[i : i + size])
    assert [(r.method, r.path, r.query, r.body) for r in out] == [
        ("GET", "/topics/a b", {"select": "x#"}, b""),
        ("POST", "/send", {}, b"abc"),
    ]


def test_a_header_that_comes_twice_is_one_list_and_what_follows_the_body_changes_nothing():
    _, (request,) = parse(
        b"POST /send HTTP/1.1\r\nX-Forwarded-For: a\r\nx-forwarded-for: b\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Forwarded-For: c\r\nNew: d\r\n\r\n"
    )
    assert request.headers == {"x-forwarded-for": "a, b", "transfer-encoding": "chunked"}
    assert request.body == b"x"


@given(st.integers(1, 120), st.booleans())
def test_an_upgrade_is_handed_on_with_what_follows_it(size, again):
    head = b"GET /ws?a=1 HTTP/1.1\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n"
    data = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * again + head + b"follows"
    parser, out = HttpParser(500, 100), []
    for i in range(0, len(data), size):
        out += parser.receive(data[i : i + size])
        if parser.upgrade is not None:
            break
    assert head + b"follows" == parser.upgrade + data[i + size :]
    assert len(out) == again


@pytest.mark.parametrize(
    "endless",
    [b"x: y\r\n", b"y", b"1;ext=%s\r\nz\r\n" % (b"e" * 90), b"1\r\nz\r\n"],
    ids=["trailers", "one trailer", "extensions", "chunks"],
)
def test_a_body_that_never_ends_is_refused(endless):
    start = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    parser = HttpParser(500, 100)
    parser.receive(start + (b"" if endless[:1] == b"1" else b"0\r\nx: "))
    with pytest.raises(BadRequest) as caught:
        [parser.receive(endless) for _ in range(2000)]
    assert caught.value.response.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def test_many_small_requests_in_one_read_are_not_one_large():
    parser = HttpParser(500, 100)
    data = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * 100
    assert len(parser.receive(data + b"GET / HTTP/1.1\r\n")) == 100
    assert len(parser.receive(b"Host: h\r\n\r\n")) == 1


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x01garbage\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 600, 431),
        (b"POST / HTTP/1.1\r\nContent-Length: 200\r\n\r\n" + b"x" * 200, 413),
    ],
)
def test_bad_requests_have_a_status_and_a_reason(data, status):
    with pytest.raises(BadRequest) as caught:
        parse(data)
    assert caught.value.response.status == status
    assert caught.value.response.body


def test_assets_stay_inside_their_directory(tmp_path):
    inside, outside = tmp_path / "web", tmp_path / "secret.txt"
    inside.mkdir()
    outside.write_text("secret")
    (inside / "a.js").write_text("1")
    (inside / "link").symlink_to(outside)
    route = serve_assets((("/", inside), ("/js", inside)))
    ask = lambda path: route(HttpRequest(method="GET", path=path))  # noqa: E731
    assert ask("/a.js").content_type == "text/javascript; charset=utf-8"
    assert ask("/js/a.js").body == b"1"
    for path in ("/../secret.txt", "/link", "/%2e%2e/secret.txt", "/", "/a\0", "//etc/passwd"):
        assert ask(path) is None
    assert route(HttpRequest(method="POST", path="/a.js")) is None


def test_a_response_says_its_length():
    response = problem_response(HTTPStatus.NOT_FOUND, "no")
    data = response.encode(keep_alive=False)
    assert b"content-length: 3\r\n" in data
    assert data.endswith(b"\r\n\r\nno\n")
    assert response.encode(keep_alive=True, head_only=True).endswith(b"\r\n\r\n")


def test_only_a_page_of_the_user_may_load_from_elsewhere(tmp_path):
    (tmp_path / "index.html").write_text("mine")
    for user_page in (False, True):
        route = serve_assets((("/", tmp_path), ("/js", tmp_path)), user_page=user_page)
        page, script = (route(HttpRequest("GET", path)) for path in ("/", "/js/index.html"))
        assert (b"default-src" in page.encode(keep_alive=True)) is not user_page
        assert b"default-src" in script.encode(keep_alive=True)
