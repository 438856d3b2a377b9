"""Declare the `env:` functions: properties of the environment, addresses and browsers.

A property is read when the app is compiled, from the environment that the compiler was given, and
is a constant from there on: a replay gives the same rows on another machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from functools import lru_cache

from edgewise.plan.exprs import Const, Expr
from edgewise.plan.functions.table import STRING, TEXT, Args, scalar

AGENTS_MAX = 1024  # user agents kept as read
PROPERTIES = ("browser", "os", "device")


def read_property(environment: Mapping[str, str], args: Args) -> Expr:
    """The value of a key, or the default; null where there is none."""
    key = args[0].value if isinstance(args[0], Const) else ""
    value = environment.get(key)
    if value is None and len(args) > 1:
        return args[1]
    return Const(STRING, value)


def _has_constant_key(args: Args) -> str:
    return "" if isinstance(args[0], Const) else "the name of a property must be a constant"


def find_origin(header: str) -> str | None:
    """The first public IPv4 address of an X-Forwarded-For header."""
    for part in header.split(","):
        try:
            found = ipaddress.IPv4Address(part.strip())
        except ValueError:
            continue
        if not (found.is_private or found.is_loopback):
            return str(found)
    return None


@lru_cache(maxsize=AGENTS_MAX)
def read_agent(agent: str, name: str) -> str | None:
    """Family of the browser, the operating system or the device; `Other` where it is unknown."""
    import ua_parser

    match name.lower():
        case "browser":
            found = ua_parser.parse_user_agent(agent)
        case "os":
            return getattr(ua_parser.parse_os(agent), "family", "Other")
        case "device":
            return getattr(ua_parser.parse_device(agent), "family", "Other")
        case _:
            return None
    return found.family if found else "Other"


def _has_agent_property(args: Args) -> str:
    name = args[1]
    if isinstance(name, Const) and str(name.value).lower() not in PROPERTIES:
        return f"'{name.value}' is no property; use one of {', '.join(PROPERTIES)}"
    return ""


FUNCTIONS = (
    *(
        scalar(
            f"env:{name}", TEXT, TEXT,
            returns=STRING, optional=1, fold=read_property, rule=_has_constant_key,
        )
        for name in ("getEnvironmentProperty", "getSystemProperty")
    ),
    scalar(
        "env:getOriginIPFromXForwarded", TEXT, returns=STRING, python=find_origin, drops_null=True
    ),
    scalar(
        "env:getUserAgentProperty", TEXT, TEXT,
        returns=STRING, python=read_agent, drops_null=True, rule=_has_agent_property,
    ),
)  # fmt: skip
