import pytest

from edgewise.errors import BadEvent
from edgewise.plan.functions import collectors


def run(aggregate, *steps):
    """Values that come, and with `-` before them those that leave."""
    state = aggregate.init()
    for step in steps:
        if isinstance(step, list) and step[:1] == ["-"]:
            state = aggregate.compensate(state, step[1])
        else:
            state = aggregate.accumulate(state, step)
    return aggregate.emit(state)


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (run(collectors.CollectList(), 1, 2, 1, ["-", 1]), [2, 1]),
        (run(collectors.CollectList(), (1, True), (1, True), (None, True)), [1, None]),
        (run(collectors.MergeLists(), [1, 2], [2, 3], ["-", [2]]), [1, 3]),
        (run(collectors.MergeLists(), ([1, 1], True)), [1]),
        (run(collectors.CollectMap(), ("a", 1), ("b", 2), ["-", ("a", 1)]), {"b": 2}),
        (run(collectors.MergeMaps(), {"a": 1}, {"b": 2}, ["-", {"a": 1}]), {"b": 2}),
        (run(collectors.GroupConcat(), "b", "a", None, "b"), "b,b,a"),
        (run(collectors.GroupConcat(), ("b", "|", True, "ASC"), ("a", "|", True, "ASC")), "a|b"),
        (
            run(collectors.GroupConcat(), ("b", "|", False, "DESC"), (None, "|", False, "DESC")),
            "null|b",
        ),
        (run(collectors.GroupConcat(), "a", ["-", "a"]), ""),
        (
            run(collectors.GroupJson(), '{"u":"a/b"}', '{"u":"a/b"}'),
            '[{"u":"a\\/b"},{"u":"a\\/b"}]',
        ),
        (
            run(collectors.GroupJson(), ({"a": 1}, "r", True), ({"a": 1}, "r", True)),
            '{"r":[{"a":1}]}',
        ),
        (run(collectors.GroupJsonObjects(), {"a": 1}, ["-", {"a": 1}]), []),
        (run(collectors.Median(), 3, 1, 2), 2.0),
        (run(collectors.Median(), 3, 1, 2, ["-", 2]), 2.0),
        (run(collectors.Median()), None),
        (run(collectors.Percentile(), (1, 50.0), (2, 50.0), (3, 50.0)), 2.0),
        (run(collectors.Percentile(), (1, 50.0), (2, 50.0), ["-", (2, 50.0)]), 1.0),
        (run(collectors.Percentile(), (1, 100.0), (9, 100.0)), 9.0),
        (run(collectors.Percentile()), None),
    ],
)
def test_values_are_collected(found, value):
    assert found == value


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [(collectors.MergeLists(), 1), (collectors.MergeMaps(), 1), (collectors.GroupJson(), "[1]")],
)
def test_what_cannot_be_collected_drops_the_event(aggregate, value):
    with pytest.raises(BadEvent):
        aggregate.accumulate(aggregate.init(), value)


@pytest.mark.parametrize(
    ("aggregate", "values"),
    [
        (collectors.CollectList(), [1, 2, 1]),
        (collectors.CollectMap(), [("a", 1), ("b", 2)]),
        (collectors.GroupConcat(), ["b", "a", "b"]),
        (collectors.Median(), [3, 1, 2]),
        (collectors.Percentile(), [(1, 50.0), (5, 50.0), (3, 50.0)]),
    ],
)
def test_two_halves_merge_to_the_whole(aggregate, values):
    def state_of(some):
        state = aggregate.init()
        for value in some:
            state = aggregate.accumulate(state, value)
        return state

    whole = aggregate.emit(state_of(values))
    assert aggregate.emit(aggregate.merge(state_of(values[:1]), state_of(values[1:]))) == whole
