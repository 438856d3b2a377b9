"""Decide which recovery the weakest link of a path can keep: source, query, sink. Pure.

    source -> log -> query -> log -> sink
      |                |              |
      may lose or      may give       may lose or repeat
      repeat events    other rows     rows on their way out

A recovery is a promise about the rows that leave a sink. From the input log on it depends on the
query (how it repeats, `RepeatLevel`) and on the sink (how often it delivers). What happens before
the log is the source's: it is told, not refused, because only the sender knows whether it sends
again. `check` refuses by this table, `explain` and docs/explanation/recovery.md print it.

Deliveries are the words of `@source` and `@sink`: at-most-once, at-least-once, effectively-once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from edgewise.event.repeat_level import RepeatLevel
from edgewise.ha.recovery import STATEMENTS, Recovery, why_not

MOST, LEAST, ONCE = "at-most-once", "at-least-once", "effectively-once"


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """What a sink with this delivery can keep, strongest first, and what stands against the rest;
    and what a source with it does to a promise of `precise`, '' where nothing.
    """

    keeps: tuple[Recovery, ...]
    sink_limit: str
    source_limit: str


DELIVERIES: Mapping[str, DeliveryLimits] = MappingProxyType(
    {
        MOST: DeliveryLimits(
            (Recovery.GAP,),
            "rows that are on their way when a node fails are lost",
            "events may be lost before they are in the log",
        ),
        LEAST: DeliveryLimits(
            (Recovery.REPEATING, Recovery.CONVERGENT, Recovery.DIVERGENT),
            "rows that were not confirmed when a node fails are sent again",
            "an event that is sent again is in the log twice",
        ),
        ONCE: DeliveryLimits(tuple(Recovery), "", ""),
    }
)


@dataclass(frozen=True, slots=True)
class SinkEnd:
    """A sink: its type, how it delivers, and how else it could."""

    type: str
    delivery: str
    possible: tuple[str, ...] = ()


def list_kept(repeat: RepeatLevel, delivery: str) -> tuple[Recovery, ...]:
    """Every recovery that a query of this class and a sink with this delivery keep together."""
    return tuple(k for k in DELIVERIES[delivery].keeps if repeat >= STATEMENTS[k].needs)


def choose_default(repeat: RepeatLevel, delivery: str) -> Recovery:
    """What is kept where nothing is declared: the strongest."""
    return list_kept(repeat, delivery)[0]


def explain_refusal(kind: Recovery, repeat: RepeatLevel, sink: SinkEnd) -> str:
    """Why the query or the sink cannot keep `kind`, and what would; '' where both can."""
    if why := why_not(kind, repeat):
        return why
    kept = DELIVERIES[sink.delivery]
    if kind in kept.keeps:
        return ""
    offers = [d for d in sink.possible if d != sink.delivery and kind in DELIVERIES[d].keeps]
    way = f"declare delivery='{offers[0]}'" if offers else f"'{sink.type}' has no other delivery"
    if offers == [ONCE]:
        way += " (the receiver must drop repeats by the key that each message carries)"
    possible = ", ".join(k.value for k in list_kept(repeat, sink.delivery))
    return (
        f"recovery '{kind.value}' promises {STATEMENTS[kind].rows}, and the sink '{sink.type}' "
        f"delivers {sink.delivery}: {kept.sink_limit}; {way}, or one of: {possible}"
    )


def find_source_limits(kind: Recovery, sources: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What sources (type, delivery) take from a promise of `precise`; empty for other kinds."""
    if kind is not Recovery.PRECISE:
        return ()
    return tuple(
        f"source '{name}' delivers {delivery}: {limit}"
        for name, delivery in dict.fromkeys(sources)
        if (limit := DELIVERIES[delivery].source_limit)
    )
