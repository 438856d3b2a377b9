"""Find which attributes an expression can see, and which slot each belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.lang.report import Refused, Report, list_some, suggest_nearest
from edgewise.lang.source import At
from edgewise.lang.syntax.expr import AttrRef, StreamRef
from edgewise.plan.exprs import Expr, Field, OutField


@dataclass(frozen=True, slots=True)
class Slot:
    """One input. `labels` are the names it answers to; `counted` ones hold several events.

    `broken`: it may have more attributes than are known, its problem is told already; whoever
    asks for one that is not known is refused in silence.
    `hidden`: an absent pattern element, of which no event is ever selected.
    """

    name: str
    schema: Schema
    labels: tuple[str, ...]
    counted: bool = False
    broken: bool = False
    hidden: bool = False


UNKNOWN = Slot("", Schema("", ()), (), broken=True)  # stands for all that could not be read


@dataclass(frozen=True, slots=True)
class Scope:
    """`outputs` are the attributes of the select list, seen first where there are any.

    `own` is the slot whose filter this is: unqualified names mean it before any other.
    """

    report: Report
    slots: tuple[Slot, ...]
    outputs: Schema | None = None
    own: str = ""

    def attribute(self, ref: AttrRef) -> Expr:
        if ref.stream is not None:
            return self._qualified(ref, ref.stream)
        if self.outputs is not None and self.outputs.index(ref.name) >= 0:
            return OutField(self.outputs.type_of(ref.name), ref.name)
        if UNKNOWN in self.slots:  # it may be an attribute that the refused part makes
            raise Refused
        holders = [s for s in self.slots if s.schema.index(ref.name) >= 0]
        mine = [s for s in holders if self.own and s.name == self.own]
        if not holders:
            self._unknown(ref)
        if len(holders) > 1 and not mine:
            names = " or ".join(f"{s.labels[0]}.{ref.name}" for s in holders[:3])
            self.report.fail(ref.at, f"'{ref.name}' is ambiguous", f"write {names}")
        return self._field(mine[0] if mine else holders[0], ref, None)

    def _qualified(self, ref: AttrRef, stream: StreamRef) -> Expr:
        slot = self.slot(stream)
        if slot.schema.index(ref.name) < 0:
            if slot.broken:
                raise Refused
            self.report.check_room()
            hint = (
                suggest_nearest(ref.name, slot.schema.names)
                or f"it has {list_some(slot.schema.names)}"
            )
            self.report.fail(ref.at, f"'{stream.name}' has no attribute '{ref.name}'", hint)
        return self._field(slot, ref, stream.index)

    def _field(self, slot: Slot, ref: AttrRef, index: int | None) -> Field:
        kind = slot.schema.type_of(ref.name)
        self.check_index(slot, index, ref.at)
        if slot.counted and index is None and self.own != slot.name:
            if self.own:
                index = -1  # a later element's filter sees the last event
            else:
                kind = AttrType.OBJECT  # the list of all collected values
        return Field(kind, slot.name, ref.name, index)

    def check_index(self, slot: Slot, index: int | None, at: At) -> None:
        if index is not None and not slot.counted and index not in {0, -1}:
            hint = "an index picks one of many; count the element with <1:> or the like"
            self.report.fail(at, f"'{slot.labels[0]}' holds one event, not a list", hint)

    def slot(self, ref: StreamRef) -> Slot:
        wanted = ref.prefix + ref.name
        found = [s for s in self.slots if wanted in s.labels]
        if len(found) > 1:
            mine = [s for s in found if s.name == self.own]
            if not mine:
                self.report.fail(ref.at, f"'{wanted}' is ambiguous", "give each its own name")
            found = mine
        if not found:
            if UNKNOWN in self.slots:
                raise Refused
            labels = [s.labels[0] for s in self.slots]
            hint = suggest_nearest(wanted, labels) or f"this clause sees {list_some(labels)}"
            self.report.fail(ref.at, f"'{wanted}' is not an input here", hint)
        return found[0]

    def find_slot(self, name: str) -> Slot | None:
        return next((s for s in self.slots if name in s.labels), None)

    def _unknown(self, ref: AttrRef) -> NoReturn:
        if any(s.broken for s in self.slots):
            raise Refused
        self.report.check_room()
        known = [n for s in self.slots for n in s.schema.names]
        if self.outputs is not None:
            known += self.outputs.names
        known = list(dict.fromkeys(known))
        if ref.name.lower() == "null":
            self.report.fail(ref.at, "'null' is no value to compare with", "write 'x is null'")
        hint = suggest_nearest(ref.name, known) or (f"known: {list_some(known)}" if known else "")
        self.report.fail(ref.at, f"there is no attribute '{ref.name}' here", hint)
