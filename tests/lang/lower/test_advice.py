import pytest
from tests.support.compiled_plans import warned

PARTITION = "partition with (k of A) begin from A#window.length(1) insert into X; "
PARTITION += "from A#window.length(1) insert into Y; end;"


def test_a_partition_is_told_of_once():
    assert warned(PARTITION) == ["state grows without end: keys of the partition are never freed"]
    purge = "@purge(enable='true', interval='1 sec', idle.period='1 min') "
    assert warned(purge + PARTITION) == []


def test_patterns_without_an_end_and_without_a_key():
    text = "from every a=A -> b=B[v > a.v] select a.v as x insert into X;"
    assert warned(text) == [
        "state grows without end: 'every' starts a match that nothing ends",
        "this pattern runs on one task: no equality ties its elements together",
    ]
    text = "from every a=A -> b=B[k == a.k] within 1 min select a.v as x insert into X;"
    assert warned(text) == []


def test_a_pattern_that_matches_once_needs_no_key():
    assert warned("from a=A -> b=B select a.v as x insert into X;") == []


@pytest.mark.parametrize("count", ["<2>", "<2:3>", "<3:>"])
def test_a_sequence_that_never_matches(count):
    text = f"from every a=A{count}, b=A select b.v as x insert into X;"
    assert f"this sequence never matches: 'a' takes {count[1]} events or more" in warned(text)


@pytest.mark.parametrize("count", ["", "<1:3>", "+", "*", "?"])
def test_a_sequence_that_can_match(count):
    assert not any(
        "never" in w for w in warned(f"from a=A{count}, b=A select 1 as x insert into X;")
    )
