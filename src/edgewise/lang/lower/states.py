"""Lower patterns and sequences: elements to slots, filters that may read earlier elements."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgewise.event.schema import Schema
from edgewise.lang.lower.context import LoweringContext
from edgewise.lang.lower.inputs import lower_handlers
from edgewise.lang.lower.scope import Slot
from edgewise.lang.lower.symbols import STREAM, WINDOW
from edgewise.lang.report import Refused
from edgewise.lang.syntax import query as written
from edgewise.plan import nodes


@dataclass(slots=True)
class _Elements:
    """The slots of a whole input, made before any filter is read: filters look both ways."""

    draft: LoweringContext
    slots: list[Slot] = field(default_factory=list)

    def add(self, source: written.Source, ref: str, *, counted: bool, hidden: bool) -> Slot:
        assert isinstance(source.stream, written.Name)
        stream = source.stream
        report = self.draft.report
        try:
            _, schema = self.draft.symbols.find(stream, STREAM, WINDOW)
            broken = False
        except Refused:
            schema, broken = Schema(stream.full, ()), True
        name, label = ref or f"@{len(self.slots)}", ref or stream.full
        if any(name == slot.name for slot in self.slots):
            report.warn(source.at, f"two elements are called '{ref}'; it means the first")
            name = label = f"@{len(self.slots)}"
        slot = Slot(name, schema, (label,), counted, broken, hidden)
        self.slots.append(slot)
        return slot


def lower_states(
    draft: LoweringContext, node: written.StateInput
) -> tuple[nodes.StateInput, tuple[Slot, ...]]:
    _check_every(draft, node)
    elements = _Elements(draft)
    _collect_elements(elements, node.state, counted=False)
    state = _Builder(draft, tuple(elements.slots)).build(node.state)
    within_ms = node.within.ms if node.within else None
    kind = nodes.StateKind(node.kind)
    return nodes.StateInput(kind, state, within_ms), tuple(elements.slots)


def _collect_elements(elements: _Elements, state: written.State, *, counted: bool) -> None:
    match state:
        case written.Element():
            elements.add(state.source, state.ref, counted=counted, hidden=False)
        case written.Absent():
            elements.add(state.source, "", counted=False, hidden=True)
        case written.Count():
            _collect_elements(elements, state.element, counted=True)
        case written.Both():
            _collect_elements(elements, state.left, counted=False)
            _collect_elements(elements, state.right, counted=False)
        case written.Every():
            _collect_elements(elements, state.state, counted=False)
        case written.Chain():
            for each in state.states:
                _collect_elements(elements, each, counted=False)


class _Builder:
    """Walks the states in the order of `_collect_elements`: slots are taken one by one."""

    def __init__(self, draft: LoweringContext, slots: tuple[Slot, ...]) -> None:
        self._draft = draft
        self._slots = slots
        self._next = 0

    def build(self, state: written.State) -> nodes.State:
        report = self._draft.report
        match state:
            case written.Element():
                return self._element(state)
            case written.Absent():
                if state.waiting is None:
                    hint = "write 'not X for 10 sec', or 'not X and e=Y'"
                    report.error(state.at, "an absent element needs a time", hint)
                return self._absent(state)
            case written.Count():
                found = self._element(state.element)
                return nodes.CountState(found, state.least, state.most)
            case written.Both():
                return self._both(state)
            case written.Every():
                return nodes.EveryState(self.build(state.state))
            case written.Chain():
                return nodes.ChainState(tuple(self.build(s) for s in state.states))

    def _both(self, state: written.Both) -> nodes.State:
        sides: list[nodes.StreamState | nodes.AbsentState] = []
        pair = (state.left, state.right)
        for side, other in (pair, pair[::-1]):
            if isinstance(side, written.Element):
                sides.append(self._element(side))
                continue
            untimed = side.waiting is None
            if untimed and (state.op == "or" or isinstance(other, written.Absent)):
                hint = "only 'not X and e=Y' goes without a time; write 'not X for 10 sec'"
                self._draft.report.error(side.at, "an absent element needs a time", hint)
            sides.append(self._absent(side))
        return nodes.LogicalState(state.op, sides[0], sides[1])

    def _element(self, element: written.Element) -> nodes.StreamState:
        slot, handlers = self._take(element.source)
        return nodes.StreamState(slot.name, _resolve_stream(element.source), handlers)

    def _absent(self, absent: written.Absent) -> nodes.AbsentState:
        slot, handlers = self._take(absent.source)
        waiting_ms = absent.waiting.ms if absent.waiting else None
        return nodes.AbsentState(slot.name, _resolve_stream(absent.source), handlers, waiting_ms)

    def _take(self, source: written.Source) -> tuple[Slot, tuple[nodes.Handler, ...]]:
        slot = self._slots[self._next]
        self._next += 1
        handlers, _ = lower_handlers(self._draft, source.before, slot, self._slots)
        return slot, handlers


def _resolve_stream(source: written.Source) -> str:
    assert isinstance(source.stream, written.Name)
    return source.stream.full


def _check_every(draft: LoweringContext, node: written.StateInput) -> None:
    """`every` once in depth; in a sequence at the front only."""
    top = node.state.states if isinstance(node.state, written.Chain) else (node.state,)
    for index, state in enumerate(top):
        if not isinstance(state, written.Every):
            continue
        if node.kind == "sequence" and index:
            hint = "in a sequence 'every' stands at the front"
            draft.report.error(state.at, "'every' in the middle of a sequence", hint)
        if _contains_every(state.state):
            draft.report.error(state.at, "'every' inside 'every'", "one of them is enough")


def _contains_every(state: written.State) -> bool:
    match state:
        case written.Every():
            return True
        case written.Chain():
            return any(_contains_every(s) for s in state.states)
        case _:
            return False
