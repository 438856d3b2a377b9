"""Matches are found by what an event needs of them: against all of them, looked at one by one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import START, engine, feed, rows
from tests.support.random_patterns import events, pattern

from edgewise.errors import AppError
from edgewise.kernel.codegen import pattern_query
from edgewise.kernel.operators.pattern_waiting import Lookup, Match, Waiting
from edgewise.kernel.operators.patterns import Element
from edgewise.plan.rules.pattern_conditions import ElementCondition, split_conditions

TESTS = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "take", "drop"]),
        st.sampled_from([*"xyz", None]),
        st.one_of(st.none(), st.integers(0, 9)),
    ),
    max_size=60,
)


def key_of(match):
    return match.slots[0][0][1][0]


def value_of(match):
    return match.slots[0][0][1][1]


@given(STEPS, st.booleans(), st.lists(st.sampled_from([*TESTS]), max_size=2))
def test_an_index_finds_what_a_walk_over_all_finds(steps, keyed, ops):
    lookup = Lookup(
        match_key=key_of if keyed else None,
        event_key=(lambda _ts, row: row[0]) if keyed else None,
        match_value=value_of if ops else None,
        bounds=tuple((op, lambda _ts, row: row[1]) for op in ops),
    )
    waiting, listed = Waiting(), []
    for what, key, value in steps:
        if what == "add":
            match = Match([((0, (key, value)),)])
            waiting.append(match)
            listed.append(match)
        elif what == "drop" and listed:
            assert waiting.first is listed[0]
            waiting.remove(listed.pop(0))
        elif what == "take":
            wanted = [
                m for m in listed
                if (not keyed or (key is not None and key_of(m) == key))
                and all(
                    None not in (value, value_of(m)) and TESTS[op](value_of(m), value)
                    for op in ops
                )
            ]  # fmt: skip
            found = waiting.found(lookup, 0, (key, value))
            assert list(map(id, found)) == list(map(id, wanted))
            for match in found:
                waiting.remove(match)
                listed.remove(match)
        assert [*waiting] == listed


def naive(state):
    """Every condition is asked of every match."""
    found = split_conditions(state)
    return {slot: ElementCondition(cross=(*c.own, *c.cross)) for slot, c in found.items()}


def played(text, sent, *, cut=None):
    running = engine(text)
    feed(running, sent[:cut])
    found = rows(running)
    if cut is not None:
        entries = [(k, d) for k, d in running.kernel.changed() if d is not None]
        running = engine(text)
        running.kernel.restore(entries)
        feed(running, [max(e[1] for e in sent[:cut]), *sent[cut:]])
        found += rows(running)
    return found


@pytest.mark.parametrize("block", range(8))
def test_random_patterns_give_what_the_naive_way_gives(block, monkeypatch):
    wholes = 0
    for seed in range(block * 25, block * 25 + 25):
        dice = random.Random(f"patterns {seed}")
        text = pattern(dice)
        sent = [*events(dice, 80), ("A", START + 10_000, "x", 9)]
        try:
            found = played(text, sent)
        except AppError:
            continue  # not every combination is a query
        with monkeypatch.context() as patch:
            patch.setattr(pattern_query, "split_conditions", naive)
            patch.setattr(Element, "_may_drop_late", lambda _: False)
            assert found == played(text, sent), f"{seed}: {text}"
        assert found == played(text, sent, cut=dice.randint(1, 79)), f"{seed}: {text}"
        wholes += len(found)
    assert wholes > 50
