from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.access.forwarded import HOPS_MAX, TrustedProxies, parse_address
from edgewise.errors import SetupError

OURS = TrustedProxies(["10.0.0.0/8", "2001:db8:1::/48", "192.0.2.7"])
OURS_V4 = st.ip_addresses(v=4, network="10.0.0.0/8").map(str)
OURS_V6 = st.ip_addresses(v=6, network="2001:db8:1::/48").map(str)
PROXIES = st.one_of(OURS_V4, OURS_V6, st.just("192.0.2.7"))
OTHERS = st.one_of(
    st.ip_addresses(v=4).filter(lambda a: not OURS.trusts(str(a))).map(str),
    st.ip_addresses(v=6, network="2001:db8:2::/48").map(str),
)
# What a client may write into the header before our proxies add to it.
FORGED = st.lists(
    st.one_of(PROXIES, OTHERS, st.sampled_from(["unknown", "", "_x", "1.2.3.4.5", "[", '"', "%"])),
    max_size=3,
)
PORTS = st.sampled_from(["", ":80", ":65535"])


def bracketed(address, port=""):
    return f"[{address}]{port}" if ":" in address else address + port


def quoted(address, port=""):
    return f'for="{bracketed(address, port)}"'


@given(FORGED, OTHERS, st.lists(PROXIES, max_size=4), PROXIES, PORTS)
def test_the_rightmost_address_that_is_no_proxy_of_ours_asks(forged, client, way, peer, port):
    hops = [*forged, bracketed(client, port), *way]
    assert OURS.client(peer, {"x-forwarded-for": ", ".join(hops)}) == client
    bare = [*forged, client, *way]
    assert OURS.client(peer, {"x-forwarded-for": ",".join(bare)}) == client


@given(st.lists(st.one_of(PROXIES, OTHERS), max_size=3), OTHERS, st.lists(PROXIES), PROXIES, PORTS)
def test_so_it_does_in_the_other_header(forged, client, way, peer, port):
    hops = [quoted(hop) for hop in forged]
    hops += [f"{quoted(client, port)};proto=https; By=10.1.1.1", *map(quoted, way)]
    reported = ", ".join(hops)
    expected = client if len(way) < HOPS_MAX else str(ip_address(way[-HOPS_MAX]))
    assert OURS.client(peer, {"forwarded": reported}) == expected
    both = {"forwarded": reported, "x-forwarded-for": ", ".join([client, *way])}
    assert OURS.client(peer, both) == expected


@given(OTHERS, OTHERS, PROXIES)
def test_headers_of_anybody_else_say_nothing(peer, forged, proxy):
    headers = {"x-forwarded-for": f"{forged}, {proxy}", "forwarded": quoted(forged)}
    assert OURS.client(peer, headers) == peer
    assert TrustedProxies().client(proxy, headers) == proxy
    assert not TrustedProxies()
    assert not TrustedProxies().trusts(proxy)


@given(OTHERS, OTHERS, PROXIES)
def test_two_headers_that_do_not_agree_say_nothing(client, forged, peer):
    """A proxy sets one of them and lets the other through."""
    for headers in (
        {"x-forwarded-for": client, "forwarded": quoted(forged)},
        {"x-forwarded-for": forged, "forwarded": quoted(client)},
    ):
        assert OURS.client(peer, headers) == (client if client == forged else peer)


@given(st.text('for=",;[]\\ \t1.:a_', max_size=40), OTHERS, PROXIES)
def test_nothing_that_is_written_on_the_left_forges_what_a_proxy_adds(left, client, peer):
    check_request = OURS.client(peer, {"forwarded": f"{left}, {quoted(client)}"})
    assert check_request in {client, peer}
    assert OURS.client(peer, {"x-forwarded-for": f"{left}, {client}"}) == client


@pytest.mark.parametrize(
    "reported",
    [
        *(
            "unknown",
            "_hidden",
            "",
            " ",
            ",",
            "1.2.3",
            "1.2.3.4:",
            "1.2.3.4:port",
            "::1::",
            "[::1",
        ),
        *("::1]", "[1.2.3.4]x", "999.1.1.1", "1.2.3.4, ", "1.2.3.4 5.6.7.8", "\xa0", "localhost"),
    ],
)
def test_what_cannot_be_read_is_the_proxys(reported):
    assert OURS.client("10.0.0.1", {"x-forwarded-for": reported}) == "10.0.0.1"


@pytest.mark.parametrize(
    "reported",
    [
        *(
            "for=unknown",
            "for=_x",
            "proto=http",
            "for",
            "for=",
            ";",
            ",",
            "for=1.2.3.4;for=5.6.7.8",
        ),
        *('for="1.2.3.4', 'for=6.6.6.6;x="', 'for=1.2.3.4"', "for=1.2.3.4 x", "for=1.2.3.4, "),
        " " * 16_000 + "!",
        "for=" + "a" * 16_000,
        '"' * 16_000,
    ],
)
def test_nor_is_a_forwarded_header_that_is_wrong_anywhere(reported):
    assert OURS.client("10.0.0.1", {"forwarded": reported}) == "10.0.0.1"


def test_an_unreadable_hop_is_where_the_way_ends():
    assert OURS.client("10.0.0.1", {"x-forwarded-for": "9.9.9.9, ?, 10.0.0.2"}) == "10.0.0.2"
    assert OURS.client("10.0.0.1", {"x-forwarded-for": "10.0.0.3, 10.0.0.2"}) == "10.0.0.3"


def test_ipv4_in_the_clothes_of_ipv6_is_ipv4():
    assert OURS.client("::ffff:10.0.0.1", {"x-forwarded-for": "::ffff:9.9.9.9"}) == "9.9.9.9"
    assert str(parse_address(" [::ffff:9.9.9.9]:80 ")) == "9.9.9.9"
    assert parse_address("") is None


@pytest.mark.parametrize("text", ["10.0.0.0/33", "nginx", "", "10.0.0"])
def test_what_is_no_network_is_refused(text):
    with pytest.raises(SetupError, match="a trusted proxy is an address or a network"):
        TrustedProxies([text])
