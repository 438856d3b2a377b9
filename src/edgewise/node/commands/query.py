"""Answer on-demand queries from the state that an app has saved: `edgewise query`, `POST /query`.

    from Names on symbol == 'ibm' select name;

The state in the checkpoint is what the app held at its last save, a few seconds ago (`as_of` says
when); reading it disturbs no engine and needs none to run. It is that of the embedded engine. The
price: a query that changes a table is refused, for the engine owns it. A table in a database is
asked there. Used by the command line and by the node's endpoint.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from edgewise.engines.embedded.fragments import split_for_one_process
from edgewise.engines.state.inspect_state import ATTEMPTS_MAX
from edgewise.engines.state.migrate import read_saved_plan
from edgewise.engines.state.saver import StateSaver
from edgewise.engines.state.storage import LocalStorage, Storage
from edgewise.engines.state.store import StateStore
from edgewise.errors import AppError, Problem, SetupError, Span, StateError
from edgewise.kernel import compile_kernel
from edgewise.lang.compiler import Functions, compile_query
from edgewise.plan.exprs import Agg
from edgewise.plan.fragments import Fragment
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.nodes import App, OnDemandQuery
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.rewrite import rewrite


@dataclass(frozen=True, slots=True)
class Answer:
    """`as_of` is the app's time of the save that was read, in ms."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    as_of: int

    def encode(self) -> bytes:
        return msgspec.json.encode(dataclasses.asdict(self))


def answer_query(
    app: App, text: str, checkpoint: Path, functions: Functions = FUNCTIONS
) -> Answer:
    """The rows of a query that reads; AppError for its text, SetupError where nothing is saved."""
    app = rewrite(app)
    query = compile_query(text, app, functions=functions)
    _refuse_what_cannot_be(query, text)
    fragment = _find_fragment(app, query.store, checkpoint)
    for attempt in range(ATTEMPTS_MAX):
        try:
            as_of, rows = _read_rows(app, query, fragment, checkpoint)
        except StateError:  # the engine removed a file while it was read: the next one is there
            if attempt == ATTEMPTS_MAX - 1:
                raise
        else:
            columns = tuple(item.name for item in query.select.items)
            return Answer(columns, rows, as_of)
    raise AssertionError("the last attempt answers or raises")


def _refuse_what_cannot_be(query: OnDemandQuery, text: str) -> None:
    reason, hint = "", ""
    if query.output is not None:
        reason, hint = "this query changes a table", "send the change as an event of the app"
    elif not query.store:
        reason, hint = (
            "this query reads nothing",
            "begin with: from <table, window or aggregation>",
        )
    if reason:
        raise _refuse(reason, hint, text)


def _refuse(reason: str, hint: str, text: str = "") -> AppError:
    return AppError((Problem(Span(1, 1), reason, hint),), text, "<query>")


def _find_fragment(app: App, store: str, checkpoint: Path) -> Fragment:
    """The fragment that holds the store, in the plan whose state this is."""
    saved = read_saved_plan(checkpoint)
    if saved is None:
        raise SetupError(
            f"{checkpoint} holds no state of the embedded engine: the app has "
            "not run on this data with --engine embedded"
        )
    for split in (split_for_one_process, split_into_stages):
        fragments = tuple(split(app))
        if saved.layouts == {f.name: compile_kernel(app, f).layout for f in fragments}:
            found = next((f for f in fragments if f.holds(store)), None)
            if found is None:
                raise SetupError(f"no query of the app uses '{store}': it is empty")
            return found
    raise SetupError(f"{checkpoint} is of another version of the app; run this one first")


def _read_rows(
    app: App, query: OnDemandQuery, fragment: Fragment, checkpoint: Path
) -> tuple[int, list[tuple[Any, ...]]]:
    saved = StateSaver(LocalStorage(checkpoint)).load()
    rows: list[tuple[Any, ...]] = []
    parts = list(_list_parts(LocalStorage(checkpoint / "state"), fragment))
    if len(parts) > 1 and _needs_all_rows(query):
        reason = f"'{query.store}' is spread over {len(parts)} key partitions"
        hint = "select plain rows of it, without aggregates, order and limit"
        raise _refuse(reason, hint)
    for part in parts:
        kernel = compile_kernel(app, fragment)
        if query.store in kernel.stored_tables:
            raise _refuse(f"'{query.store}' is kept in a database", "ask the database")
        kernel.restore(part.items())
        rows += [tuple(row) for row in kernel.answer(query)]
    return (saved.clock if saved is not None else 0), rows


def _list_parts(state: Storage, fragment: Fragment) -> Iterator[dict[bytes, bytes]]:
    """The newest state of each key partition."""
    generations = [int(name) for name in state.names() if name.isdigit()]
    if not generations:
        return
    root = state.inside(str(max(generations))).inside(fragment.name)
    for name in sorted((n for n in root.names() if n.isdigit()), key=int):
        store = StateStore(root.inside(name), None)
        versions = store.versions()
        if versions:
            yield store.load(versions[-1][0])


def _needs_all_rows(query: OnDemandQuery) -> bool:
    select = query.select
    ordered = select.order_by or select.limit is not None or select.group_by
    return bool(ordered) or any(isinstance(item.expr, Agg) for item in select.items)
