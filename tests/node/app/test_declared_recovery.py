import pytest

from edgewise.lang import compile_app
from edgewise.node.app.declared_recovery import describe_recovery, find_recovery_errors
from edgewise.plan.explain import explain_text

APP = """
define stream S (k string, v long);
define function odd[python] return bool {{ return True }};
@sink(type='topic', path='sums/{{k}}', recovery='{}')
define stream O (k string, t long);
@info(name='sums')
from S{}
select k, sum(v) as t group by k insert into O;
"""


def test_a_sink_that_promises_what_its_query_cannot_keep_is_an_error_at_the_query():
    text = APP.format("precise", "[odd(v)]#window.time(1 min)")
    [problem] = find_recovery_errors(compile_app(text).app)
    assert problem.span.line == 7
    assert "recovery 'precise' needs a deterministic query" in problem.message
    assert "function odd" in problem.message


def test_what_can_be_kept_is_no_problem():
    assert (
        find_recovery_errors(compile_app(APP.format("precise", "#window.time(1 min)")).app) == ()
    )
    assert find_recovery_errors(compile_app(APP.format("gap", "[odd(v)]")).app) == ()


def test_explain_shows_how_each_query_survives():
    app = compile_app(APP.format("precise", "#window.time(1 min)")).app
    text = explain_text(app, describe_recovery(app))
    assert "on replay it is convergent: it holds recent events" in text
    assert "recovery precise: every row exactly once, as if nothing had failed" in text


def test_a_word_that_is_no_kind_is_left_to_the_sink():
    assert find_recovery_errors(compile_app(APP.format("perhaps", "[odd(v)]")).app) == ()


SINKS = {
    "http": "url='http://h/'",
    "mqtt": "url='mqtt://h', topic='t'",
    "zeromq": "url='tcp://127.0.0.1:5555'",
    "kafka": "servers='h:1', topic='t'",
    "file": "path='/tmp/rows'",
}
SENT = """
@source(type='{source}'{more})
define stream S (k string, v long);
@sink(type='{sink}', {options})
define stream O (k string, v long);
@info(name='all')
from S select k, v insert into O;
"""


def compiled_with(sink, declared, source="http", more=", delivery='effectively-once'"):
    options = SINKS[sink] + "".join(f", {name}='{value}'" for name, value in declared.items())
    return compile_app(SENT.format(sink=sink, options=options, source=source, more=more)).app


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        (
            "http",
            "delivers at-least-once: rows that were not confirmed when a node fails are sent",
        ),
        ("http", "declare delivery='effectively-once' (the receiver must drop repeats by the key"),
        ("mqtt", "declare delivery='effectively-once'"),
        ("zeromq", "'zeromq' has no other delivery, or one of: gap"),
    ],
)
def test_precise_is_refused_where_the_sink_repeats_or_loses_rows(sink, words):
    [problem] = find_recovery_errors(compiled_with(sink, {"recovery": "precise"}))
    assert problem.severity == "error"
    assert problem.span.line == 7
    assert words in problem.message


@pytest.mark.parametrize(
    ("sink", "declared"),
    [
        ("http", {"recovery": "precise", "delivery": "effectively-once"}),
        ("mqtt", {"recovery": "precise", "delivery": "effectively-once", "version": "5"}),
        ("http", {"recovery": "repeating"}),
        ("http", {"recovery": "rollback"}),
        ("http", {"recovery": "gap", "delivery": "at-most-once"}),
        ("zeromq", {"recovery": "gap"}),
        ("kafka", {"recovery": "precise"}),
        ("file", {"recovery": "precise"}),
    ],
)
def test_what_the_sink_delivers_may_be_declared(sink, declared):
    assert find_recovery_errors(compiled_with(sink, declared)) == ()


def test_a_gap_that_says_no_row_twice_is_refused_where_rows_are_sent_again():
    [problem] = find_recovery_errors(compiled_with("http", {"recovery": "gap"}))
    assert "declare delivery='at-most-once', or one of: repeating" in problem.message


@pytest.mark.parametrize(
    ("sink", "kept"),
    [
        ("http", "recovery, by default, repeating"),
        ("zeromq", "recovery, by default, gap"),
        ("kafka", "recovery, by default, precise"),
    ],
)
def test_what_is_kept_by_default_is_what_the_sink_delivers(sink, kept):
    lines = describe_recovery(compiled_with(sink, {}))["all"]
    assert any(line.endswith(kept) for line in lines), lines


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ("http", "", "source 'http' delivers at-least-once: an event that is sent again is"),
        ("zeromq", ", url='tcp://h:1'", "at-most-once: events may be lost before they are in"),
    ],
)
def test_a_source_that_repeats_or_loses_events_is_a_warning(source, more, words):
    app = compiled_with("file", {"recovery": "precise"}, source, more)
    [problem] = find_recovery_errors(app)
    assert problem.severity == "warning"
    assert words in problem.message


def test_a_word_that_is_no_kind_is_an_error_of_a_sink_of_the_gateway():
    [problem] = find_recovery_errors(compiled_with("http", {"recovery": "exactly"}))
    assert "use one of precise, repeating" in problem.message


def test_a_function_that_is_declared_deterministic_keeps_precise():
    from edgewise.plan.declare import collect_functions, function

    @function("my:twice", "long", returns="long", deterministic=True)
    def twice(x):
        return 2 * x

    text = APP.format("precise", "[my:twice(v) > 2]")
    functions, procedures = collect_functions([twice])
    app = compile_app(text, "", {}, functions, procedures).app
    assert find_recovery_errors(app) == ()
