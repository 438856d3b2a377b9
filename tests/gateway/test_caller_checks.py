import pytest

from edgewise.gateway.caller_checks import REFUSALS_LOGGED_MAX, CallerChecks
from edgewise.gateway.quotas import Publisher
from edgewise.gateway.refusal import refuse_request


def checks(**given):
    settings = {"origins": frozenset(), "admits_host": lambda _host: True, "authorizer": None}
    return CallerChecks(**(settings | given))


@pytest.mark.parametrize(
    ("origin", "refused"),
    [
        (b"", False),
        (b"http://a:1", False),
        (b"https://good.example", False),
        (b"https://evil.example", True),
        (b"null", True),
    ],
)
def test_a_page_of_another_site_is_refused_unless_it_is_listed(origin, refused):
    found = checks(origins=frozenset({"https://good.example"}))
    headers = {b"host": b"a:1"} | ({b"origin": origin} if origin else {})
    assert (found.refuse_page(headers) is not None) == refused


def test_a_host_that_is_not_served_is_refused():
    found = checks(admits_host=lambda host: host == "localhost")
    assert found.refuse_host({b"host": b"localhost"}) is None
    refusal = found.refuse_host({b"host": b"evil.example"})
    assert (refusal.status, refusal.problems[0].field) == (403, "Host")


def test_a_token_is_what_the_authorizer_says():
    refusal = refuse_request(401, "unauthenticated", "no")
    found = checks(
        authorizer=lambda token, stream: (
            Publisher("ada") if (token, stream) == ("t", "S") else refusal
        )
    )
    scope = {"type": "http", "headers": [(b"authorization", b"Bearer t")]}
    assert found.identify(scope, "S") == Publisher("ada")
    assert found.identify(scope, "T") is refusal


def test_without_tokens_a_caller_is_its_address_behind_its_proxies():
    scope = {"headers": [(b"x-forwarded-for", b"9.9.9.9")], "client": ("10.0.0.1", 5)}
    assert checks().identify(scope, "S") == Publisher("10.0.0.1")
    behind = checks(find_address=lambda peer, headers: f"{headers['x-forwarded-for']} by {peer}")
    assert behind.identify(scope, "S") == Publisher("9.9.9.9 by 10.0.0.1")


def test_a_refused_page_is_said_once_in_the_log(caplog):
    found = checks()
    for number in range(2 * REFUSALS_LOGGED_MAX):
        for _ in range(2):
            found.refuse_page({b"origin": b"http://%d" % number, b"host": b"a"})
    assert len(caplog.records) == REFUSALS_LOGGED_MAX
    assert "pages of 'http://0' may not send events; allow them with --origin" in caplog.text
