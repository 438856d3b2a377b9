"""Describe a type of source or sink, and build the checks of its options. Pure.

Used by `connector_types` and `siddhi_connector_types`, which hold the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from edgewise.gateway.spec import BadSpec, Guarantee, Option

Options = Mapping[str, Option]
Check = Callable[[Mapping[str, str]], None]

MOST, LEAST, ONCE = (
    Guarantee.AT_MOST_ONCE,
    Guarantee.AT_LEAST_ONCE,
    Guarantee.EFFECTIVELY_ONCE,
)


@dataclass(frozen=True, slots=True)
class ConnectorType:
    """A type of source or sink. `check` raises BadSpec where options cannot work together."""

    class_path: str  # "module:class"
    options: Options
    guarantees: tuple[Guarantee, ...]  # the first is the default
    check: Check
    maps: tuple[str, ...] = ()  # types of mappings that it takes; empty: all
    default_map: str = "json"


def check_url(*schemes: str, example: str = "host") -> Check:
    def check(options: Mapping[str, str]) -> None:
        url = urlsplit(options["url"])
        if url.scheme not in schemes or not url.hostname:
            wanted = " or ".join(f"{scheme}://{example}" for scheme in schemes)
            raise BadSpec(f"url='{options['url']}' must be {wanted}", "url")

    return check


def check_choices(known: Mapping[str, tuple[str, ...]]) -> Check:
    def check(options: Mapping[str, str]) -> None:
        for name, values in known.items():
            if options[name] not in values:
                one = ", ".join(values)
                raise BadSpec(f"{name}='{options[name]}' must be one of: {one}", name)

    return check


def check_not_empty(option: str, what: str) -> Check:
    def check(options: Mapping[str, str]) -> None:
        if not options[option]:
            raise BadSpec(f"{option}='' names no {what}", option)

    return check


def check_all(*checks: Check) -> Check:
    def check(options: Mapping[str, str]) -> None:
        for each in checks:
            each(options)

    return check
