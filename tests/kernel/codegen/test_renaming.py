"""What things are called changes no row: not a name that generated code uses, not a keyword."""

import builtins
import keyword
import re
from functools import cache
from itertools import cycle, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.renamed_apps import (
    BASE,
    HEAD,
    NAMES,
    QUERIES,
    Naming,
    identifiers,
    rows_of,
)

from edgewise.kernel.code_globals import CODE_GLOBALS
from edgewise.kernel.codegen.name_allocator import USER_NAME

AT_ONCE = 3  # names of one app that take names of its own source; the others stay what they were
CALLED = {name.lower() for text in QUERIES.values() for name in re.findall(r"(\w+)\(", text)}
PYTHON = (*keyword.kwlist, *keyword.softkwlist, *dir(builtins))
plain_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
quoted_names = st.text(
    st.characters(exclude_characters="`'\"$", exclude_categories=("C", "Z")),
    min_size=1,
    max_size=6,
).filter(lambda name: name[0] not in "#!@")


@cache
def rows_under_usual_names(title):
    return rows_of(title, BASE)


def used_names(title):
    return [n for n in NAMES if f"${n}" in HEAD + QUERIES[title]]


def check_rows(title, chosen):
    """The same rows. A function of the app that is called `sum` is what `sum` then means."""
    if chosen.get("f", "").lower() in CALLED:
        chosen = {n: name for n, name in chosen.items() if n != "f"}
    assert rows_of(title, Naming(tuple(chosen.items()))) == rows_under_usual_names(title)


def spread(title, names, at_once):
    """Each of `names` as what one of the app's names becomes, some together."""
    wanted = cycle(used_names(title))
    for low in range(0, len(names), at_once):
        some = names[low : low + at_once]
        yield dict(zip(islice(wanted, len(some)), some, strict=True))


@pytest.mark.parametrize("title", QUERIES)
def test_a_name_of_generated_code_changes_no_row(title):
    for chosen in spread(title, identifiers(title), AT_ONCE):
        kept = set(used_names(title)) - set(chosen)
        check_rows(title, {n: name for n, name in chosen.items() if name not in kept})


@pytest.mark.parametrize("title", QUERIES)
def test_a_word_of_python_changes_no_row(title):
    for chosen in spread(title, PYTHON, len(used_names(title))):
        check_rows(title, chosen)


@pytest.mark.slow
@pytest.mark.parametrize("title", QUERIES)
def test_every_name_as_every_name_of_generated_code_changes_no_row(title):
    used = used_names(title)
    for name in identifiers(title):
        for logical in used:
            if name not in used:
                check_rows(title, {logical: name})


@pytest.mark.parametrize("title", QUERIES)
@settings(max_examples=5)
@given(data=st.data())
def test_any_legal_name_changes_no_row(title, data):
    used = used_names(title)
    names = st.lists(
        plain_names | quoted_names, min_size=len(used), max_size=len(used), unique=True
    )
    check_rows(title, dict(zip(used, data.draw(names), strict=True)))


@pytest.mark.parametrize("title", QUERIES)
def test_a_user_s_name_is_known_by_its_beginning(title):
    """What holds a user's name begins as only such names do, and nothing of ours begins so."""
    naming = Naming(tuple((n, f"zz{n}") for n in NAMES))
    for name in identifiers(title, naming):
        assert "zz" not in name or USER_NAME.match(name), name


def test_what_generated_code_is_loaded_with_begins_as_no_user_s_name():
    assert not [name for name in (*CODE_GLOBALS, *dir(builtins)) if USER_NAME.match(name)]


def test_names_that_look_alike_stay_apart():
    alike = {"k": "a b", "v": "a-b", "p": "a_b", "t": "a.b", "a": "ﬁ", "b": "fi", "n": "a_b_2"}
    for title in QUERIES:
        check_rows(title, {n: alike[n] for n in used_names(title) if n in alike})
