import pytest

from edgewise.gateway.tokens import read_token, refuse_caller, refuse_stream


def scope(kind="http", query=b"", **headers):
    named = [(k.encode(), v.encode()) for k, v in headers.items()]
    return {"type": kind, "headers": named, "query_string": query}


@pytest.mark.parametrize(
    ("asked", "token"),
    [
        (scope(), ""),
        (scope(authorization="Bearer abc.def"), "abc.def"),
        (scope(authorization="bearer  abc "), "abc"),
        (scope(authorization="Basic abc"), ""),
        (scope(query=b"access_token=abc"), ""),
        (scope("websocket", b"producer=p&access_token=abc"), "abc"),
        (scope("websocket", b"access_token=abc", authorization="Bearer xyz"), "xyz"),
    ],
)
def test_a_token_is_found_where_it_may_be(asked, token):
    assert read_token(asked) == token


def test_a_refusal_says_how_to_come_back():
    assert refuse_caller("no").headers == ((b"www-authenticate", b"Bearer"),)
    assert (refuse_caller("no").status, refuse_stream("no").status) == (401, 403)
