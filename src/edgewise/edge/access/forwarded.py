"""Find the client's address behind reverse proxies, from X-Forwarded-For or Forwarded. Pure.

A proxy adds the address it was asked from to a header (RFC 7239) that anybody may have filled
before. So the list is read from the right, from us to the client, as long as each address is a
trusted proxy: the first one that is not is the client's. A header that cannot be read, and two
headers that disagree, count for nothing: then the address is the proxy's own. Admission uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from edgewise.errors import SetupError

HOPS_MAX = 32  # of one request; a longer way is not followed

Address = IPv4Address | IPv6Address

# One pair of a Forwarded header and what follows it; a value may be quoted.
_PAIR = re.compile(r'\s*+(?:([\w-]++)=([^\s,;"]++|"(?:[^"\\]|\\.)*+"))?\s*+([;,]|$)')
_PORT = re.compile(r"(\[.*\]|[^:\[\]]*)(?::\d{1,5})?")


class TrustedProxies:
    """Addresses and networks that are believed; without any nobody is."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        try:
            self._networks = [ip_network(text, strict=False) for text in networks]
        except ValueError as error:
            raise SetupError(
                f"a trusted proxy is an address or a network like 10.0.0.0/8: {error}"
            ) from None

    def __bool__(self) -> bool:
        return bool(self._networks)

    def trusts(self, address: str) -> bool:
        found = parse_address(address) if self._networks else None
        return found is not None and self._is_trusted(found)

    def client(self, peer: str, headers: Mapping[str, str]) -> str:
        """The address that asks. Names of headers are in small letters."""
        if not self.trusts(peer):
            return peer
        reported = {
            self._follow(peer, hops)
            for name, read in (("x-forwarded-for", _split_list), ("forwarded", _parse_forwarded))
            if (hops := read(headers.get(name, "")))
        }
        return reported.pop() if len(reported) == 1 else peer

    def _follow(self, peer: str, hops: list[str]) -> str:
        check_request = peer
        for hop in reversed(hops[-HOPS_MAX:]):
            found = parse_address(hop)
            if found is None:
                break
            check_request = str(found)
            if not self._is_trusted(found):
                break
        return check_request

    def _is_trusted(self, address: Address) -> bool:
        return any(
            address in network
            for network in self._networks
            if isinstance(network, IPv6Network) == isinstance(address, IPv6Address)
        )


def parse_address(text: str) -> Address | None:
    """An address with or without a port; IPv4 in the clothes of IPv6 is IPv4."""
    text = text.strip()
    if "[" in text or text.count(":") == 1:
        bare = _PORT.fullmatch(text)
        if bare is None:
            return None
        text = bare[1].removeprefix("[").removesuffix("]")
    try:
        found = ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _split_list(header: str) -> list[str]:
    return header.split(",") if header.strip() else []


def _parse_forwarded(header: str) -> list[str]:
    """The `for` of each hop, empty where it says none. Nothing is known when any of it is wrong: a
    quote left open on the left would swallow what a proxy added on the right.
    """
    hops, names, at = [""], set[str](), 0
    while at < len(header):
        pair = _PAIR.match(header, at)
        if pair is None:
            return [""]
        name, value, end = (pair[1] or "").lower(), pair[2] or "", pair[3]
        if name and name in names:
            return [""]
        names.add(name)
        if name == "for":
            hops[-1] = re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] == '"' else value
        if end == ",":
            hops.append("")
            names.clear()
        at = pair.end()
    return hops if header.strip() else []
