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


def compared(seed, count, monkeypatch):
    """The rows of a random pattern, which are those of the naive way and of a restored kernel."""
    dice = random.Random(f"patterns {seed}")
    text = pattern(dice)
    sent = [*events(dice, count), ("A", START + 10_000, "x", 9)]
    try:
        found = played(text, sent)
    except AppError:
        return []  # not every combination is a query
    with monkeypatch.context() as patch:
        patch.setattr(pattern_query, "split_conditions", naive)
        patch.setattr(Element, "_may_drop_late", lambda _: False)
        assert found == played(text, sent), f"{seed}: {text}"
    assert found == played(text, sent, cut=dice.randint(1, count - 1)), f"{seed}: {text}"
    return found


@pytest.mark.parametrize("block", range(8))
def test_random_patterns_give_what_the_naive_way_gives(block, monkeypatch):
    seeds = range(block * 25, block * 25 + 25)
    assert sum(len(compared(seed, 80, monkeypatch)) for seed in seeds) > 50


@pytest.mark.parametrize("seed", [4635, 4879, 5604])
def test_a_match_that_a_count_and_a_later_element_hold_grows_old_once(seed, monkeypatch):
    assert compared(seed, 120, monkeypatch)
