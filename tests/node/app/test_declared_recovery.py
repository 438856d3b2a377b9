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
