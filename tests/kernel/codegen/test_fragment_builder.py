from edgewise.kernel.codegen.fragment_builder import FragmentBuilder, StateScope
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

APP = compile_app(
    "define stream A (k string); define table T (k string); "
    "from A insert into M; from A join T on A.k == T.k select A.k as k insert into O;"
).app


def test_only_streams_are_read_not_stores():
    builder = FragmentBuilder(APP, Fragment("f", tuple(q.name for q in APP.queries)), frozenset())
    assert builder.read() == ("A",)
    assert builder.schema("T").names == ("k",)
    assert len(builder.readers("A")) == 2


def test_cells_are_numbered_after_the_timers_and_the_key():
    scope = StateScope("p")
    assert [scope.cell("{}"), scope.cell("[]")] == [2, 3]
    scope.refill(3, "None")
    assert scope.fresh == ["{}", "None"]


def test_only_where_something_can_fail_is_it_caught():
    app = compile_app(
        "@OnError(action='LOG') define stream A (k string); define stream B (k string); "
        "define stream C (k string); from A insert into O; from B insert into O; "
        "from C#window.expression(k) insert into O;"
    ).app
    builder = FragmentBuilder(app, Fragment("f", tuple(q.name for q in app.queries)), frozenset())
    assert [builder.guarded(stream) for stream in "ABC"] == [True, False, True]


def test_code_that_is_not_the_language_s_own_may_fail():
    app = compile_app(
        "define function f[python] return int { return data[0] }; define stream A (k string); "
        "define stream B (v int); define stream C (k string, v int); "
        "from A[str:regexp(k, k)] insert into O; from B select f(v) as v insert into P; "
        "from C[v > 1 and k == 'a'] select k, v + 1 as v insert into Q;"
    ).app
    builder = FragmentBuilder(app, Fragment("f", tuple(q.name for q in app.queries)), frozenset())
    assert [builder.guarded(stream) for stream in "ABC"] == [True, True, False]
