import operator

import pytest

from edgewise.edge.topics.merges import Merge
from edgewise.errors import AppError
from edgewise.lang import compile_app
from edgewise.node.app.load import load
from edgewise.node.app.source_sink_errors import find_source_sink_errors

GOOD = """-- @source(type='zeromq') define stream S is a comment
@source(type='http', path='/s')
@source(type='zeromq', url='tcp://127.0.0.1:5555')
define stream S (v int);
@sink(type='zeromq', url='tcp://127.0.0.1:5556', recovery='gap')
@sink(type='topic', path='o')
define stream O (v int);
from S select v insert into O;
"""


def problems(text):
    return find_source_sink_errors(compile_app(text).app, text)


def test_ends_that_doors_can_keep_are_no_problem():
    assert problems(GOOD) == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "words"),
    [
        ("'tcp://127.0.0.1:5555'", "'x', delivery='at-least-once'", 3, 33, "cannot give"),
        ("type='zeromq', url='tcp://127.0.0.1:5555'", "type='zeromp'", 3, 1, "mean 'zeromq'?"),
        ("path='/s'", "path='s'", 2, 22, "must start with '/'"),
        ("recovery='gap'", "topics='a'", 5, 50, "mean 'topic'?"),
        ("url='tcp://127.0.0.1:5556', ", "", 5, 1, "needs the option 'url'"),
        ("5555')", "5555', @map(type='txt'))", 3, 9, "no mapping of type 'txt'"),
    ],
)
def test_a_promise_that_cannot_be_kept_has_its_place(old, new, line, column, words):
    (problem,) = problems(GOOD.replace(old, new, 1))
    assert words in problem.message
    assert (problem.span.line, problem.span.column) == (line, column)


def test_an_app_with_such_an_end_does_not_load(tmp_path):
    path = tmp_path / "app.siddhi"
    path.write_text(GOOD.replace("path='/s'", "path='s'"))
    with pytest.raises(AppError, match=r"app.siddhi:2:22: error: path 's'"):
        load(path)


def test_sources_that_tell_doubles_apart_in_two_ways_are_a_problem():
    text = GOOD.replace("path='/s'", "path='/s', dedup='v'")
    assert problems(text) == ()
    text = text.replace("5555'", "5555', dedup='v', dedup.bound='7'")
    (problem,) = problems(text)
    assert "declare the same in both" in problem.message
    assert (problem.span.line, problem.span.column) == (2, 33)


@pytest.mark.parametrize(
    ("options", "marked", "said"),
    [
        ("path='a', conflate='sometimes'", "conflate", "use 'replace', 'off' or 'merge"),
        ("path='a', conflate='merge(bits)'", "conflate", "no merge 'bits'"),
        ("path='a', ttl='soon'", "ttl", "use a time"),
        ("path='a/{x}'", "path", "needs attribute 'x'"),
        ("path='a//b'", "path", "an empty segment"),
        ("path='a', kind='table', conflate='merge(sum)', key='{k}'", "conflate", "has none"),
    ],
)
def test_what_no_topic_can_keep_is_marked(options, marked, said):
    text = f"@sink(type='topic', {options}) define stream S (k string);"
    (problem,) = find_source_sink_errors(compile_app(text).app, text)
    assert said in problem.message
    start = problem.span.column - 1
    assert text[start : start + problem.span.length] == marked


def test_a_merge_of_ones_own_is_known_and_held_to_its_word():
    text = "@sink(type='topic', path='a', conflate='merge(own)') define stream S (k int);"
    app = compile_app(text).app
    good = Merge("own", operator.or_, commutative=True, idempotent=True, samples=(1, 2, 7))
    assert find_source_sink_errors(app, text, (good,)) == ()
    bad = Merge("own", operator.sub, samples=(1, 2, 7))
    (problem,) = find_source_sink_errors(app, text, (bad,))
    assert "not associative" in problem.message
