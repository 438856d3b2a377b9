import pytest
from tests.support.kernel_runs import data, play

TEXT = "define stream A (t string, p string);"


def tokens(call, *events):
    query = f"from A#{call} select token insert into O;"
    return [
        row[0] for row in data(query, [("A", 1000 + i, *e) for i, e in enumerate(events)], TEXT)
    ]


def test_a_text_is_split_by_a_regular_expression():
    assert tokens("str:tokenize(t, '[,;]')", ("a,b;a", "")) == ["a", "b", "a"]
    assert tokens("str:tokenize(t, '[,;]', true)", ("a,b;a", "")) == ["a", "b"]


def test_a_null_drops_the_event_and_the_next_one_passes():
    assert tokens("str:tokenize(t, ',')", (None, ""), ("a", "")) == ["a"]


@pytest.mark.parametrize(
    ("source", "path", "fail", "found"),
    [
        ('{"a":[1,{"b":2}]}', "$.a", "true", ["1", '{"b":2}']),
        ('{"a":"s"}', "$.a", "true", ["s"]),
        ('{"a":1}', "$.z", "true", []),
        ('{"a":1}', "$.z", "false", [None]),
        ('{"a":{"b":1}}', "$.a", "true", ['{"b":1}']),
    ],
)
def test_a_json_is_split_into_the_elements_of_a_path(source, path, fail, found):
    query = f"from A#json:tokenize(t, p, {fail}) select jsonElement insert into O;"
    assert [row[0] for row in data(query, [("A", 1000, source, path)], TEXT)] == found


def test_elements_may_be_objects():
    query = "from A#json:tokenizeAsObject(t, p) select jsonElement insert into O;"
    assert data(query, [("A", 1000, '[{"a":1}]', "$")], TEXT) == [({"a": 1},)]


def test_lists_and_maps_are_split():
    head = "define stream A (v int);"
    lists = "from A select list:create(v, 7) as l, list:create(8) as m insert into L; "
    one = lists + "from L#list:tokenize(l) select index, value insert into O;"
    assert data(one, [("A", 1000, 5)], head) == [(0, 5), (1, 7)]
    two = lists + "from L#list:tokenize(l, m) select index, value insert into O;"
    assert data(two, [("A", 1000, 5)], head) == [(0, [5, 8]), (1, [7, None])]
    maps = "from A select map:create('b', v, 'a', 7) as m insert into M; "
    one = maps + "from M#map:tokenize(m) select key, value insert into O;"
    assert data(one, [("A", 1000, 5)], head) == [("a", 7), ("b", 5)]


def test_only_the_first_event_of_a_key_passes_for_a_time():
    query = "from A#unique:deduplicate(k, 50) select k, v insert into O;"
    events = [("A", 1000, "x", 1), ("A", 1050, "x", 2), ("A", 1051, "x", 3), ("A", 1052, "y", 4)]
    assert [row[2:] for row in play(query, events)] == [("x", 1), ("x", 3), ("y", 4)]


def test_a_processor_stands_before_and_behind_filters_windows_and_selection():
    query = (
        "from A[t != 'no']#str:tokenize(t, ',')[token != 'b']#window.lengthBatch(2) "
        "select token, count() as n group by token insert into O;"
    )
    events = [("A", 1000, "a,b", ""), ("A", 1001, "no", ""), ("A", 1002, "a,c", "")]
    assert data(query, events, TEXT) == [("a", 2)]


def test_a_processor_has_state_for_each_key_of_a_partition():
    query = (
        "partition with (k of A) begin from A#unique:deduplicate(v, 50) "
        "select k, v insert into O; end;"
    )
    events = [("A", 1000, "x", 1), ("A", 1001, "y", 1), ("A", 1002, "x", 1)]
    assert data(query, events) == [("x", 1), ("y", 1)]
