"""The door of the room: whole apps."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden import scripts

from edgewise.errors import AppError
from edgewise.event.schema import Schema
from edgewise.lang import compile_app, compile_query
from edgewise.plan.declare import function
from edgewise.plan.functions import FUNCTIONS, NUMBER, same, scalar

LOGINS = """
@source(type='mqtt', url='mqtt://127.0.0.1:1883', topic='logins/+', @map(type='json'))
define stream login_stream (ip string, cityId string);

@sink(type='topic', path='alerts/{ip}', conflate='replace', recovery='gap')
define stream login_attempt_repeatedly_stream (ip string, loginCount long, cityId string);

from login_stream#window.time(10 min)
select ip, count(ip) as loginCount, cityId
group by ip having loginCount > 10
insert into login_attempt_repeatedly_stream;
"""


def run(text):
    """An app as a golden script shows it: its problems, or the shape of what it makes."""
    try:
        compiled = compile_app(text, "app.siddhi")
    except AppError as error:
        return error.render()
    if compiled.warnings:
        return AppError(compiled.warnings, text, "app.siddhi").render()
    return "\n".join(
        f"{s.name} ({', '.join(f'{a.name} {a.type.value}' for a in s.schema.attributes)})"
        for s in compiled.app.outputs
    )


@pytest.mark.parametrize("path", scripts("lang"), ids=lambda path: path.stem)
def test_what_authors_are_told(golden, path):
    golden(path, run)


def test_the_first_app_compiles_word_for_word():
    app = compile_app(LOGINS).app
    assert [s.name for s in app.inputs] == ["login_stream"]
    source = app.stream("login_stream").annotated("source")[0]
    assert source.get("topic") == "logins/+"
    assert source.nested[0].get("type") == "json"
    query = app.queries[0]
    assert query.name == "query1"
    assert query.input.window.args[0].value == 600_000
    assert [f.name for f in query.select.group_by] == ["ip"]


def test_a_stream_nobody_defined_takes_the_shape_of_the_select_list():
    text = "define stream S (a int, b float);"
    text += "from S select a, sum(b) as total insert into T; from T insert into U;"
    app = compile_app(text).app
    shape = {"a": "int", "total": "double"}
    assert app.stream("U").schema == Schema.of("U", **shape)
    assert app.stream("T").implicit


def test_one_mistake_is_told_once():
    text = "define stream S (a int); from S select b insert into T; from T select c insert into U;"
    with pytest.raises(AppError) as caught:
        compile_app(text)
    assert [p.message for p in caught.value.problems] == ["there is no attribute 'b' here"]


def test_several_mistakes_are_told_at_once():
    text = (
        "define stream S (a int);\nfrom S[x > 1] select y, a insert into T;\nfrom Q insert into T"
    )
    with pytest.raises(AppError) as caught:
        compile_app(text)
    assert [p.span.line for p in caught.value.problems] == [2, 2, 3]


def test_variables_come_from_the_caller():
    text = "define stream S (a int); from S[a > ${LIMIT}] insert into T;"
    assert compile_app(text, variables={"LIMIT": "5"}).app.queries
    with pytest.raises(AppError, match="LIMIT"):
        compile_app(text)


def test_a_user_adds_a_function_without_touching_the_compiler():
    twice = scalar("my:twice", NUMBER, returns=same, python=lambda x: 2 * x)
    text = "define stream S (a int); from S select my:twice(a) as b insert into T;"
    app = compile_app(text, functions=FUNCTIONS.with_(twice)).app
    assert app.stream("T").schema == Schema.of("T", b="int")


@given(st.text(max_size=120))
def test_any_text_is_a_plan_or_an_error(text):
    try:
        compile_app(text)
    except AppError as error:
        assert error.problems


WORDS = """
    define stream S ( a int ) ; from # window . time 1 min [ ] > < == -> every e1 = not and or
    for within select * as b group by having insert into T partition with of begin end 'x' 2.5 ,
    @info join on is null in output last events limit ! { } + - / % ( ) update set delete return
"""


@given(st.lists(st.sampled_from(WORDS.split()), max_size=60))
def test_words_of_the_language_in_any_order_are_a_plan_or_an_error(words):
    text = "define stream S (a int); " + " ".join(words)
    try:
        compile_app(text)
    except AppError as error:
        assert error.problems


@pytest.mark.parametrize(
    "text",
    [
        "from S[" + "(" * 5000 + "a" + ")" * 5000 + " > 1] insert into T;",
        "from S[" + "not " * 5000 + "b] insert into T;",
        "from S[a " + "+ 1 " * 5000 + "> 1] insert into T;",
        "from " + "(" * 5000 + "S insert into T;",
        "from " + "(from " * 3000 + "S insert into T;",
        "@x(" * 5000 + " define stream X (a int);",
        "from S select " + "f(" * 5000 + " as x insert into T;",
    ],
)
def test_deep_nesting_is_an_error_and_no_crash(text):
    with pytest.raises(AppError):
        compile_app("define stream S (a int, b bool); " + text)


def test_a_thousand_alternatives_are_no_depth():
    terms = " or ".join(f"a == {n}" for n in range(1000))
    assert compile_app(f"define stream S (a int); from S[{terms}] insert into T;").app.queries


def test_checking_an_app_loads_neither_arrow_nor_spark():
    code = "import sys, edgewise.lang; print([m for m in sys.modules if m[:7] in "
    code += "('pyarrow', 'pyspark')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_functions_are_a_table_or_what_is_added_to_it():
    twice = function("my:twice", "number", returns="same")(lambda x: 2 * x)
    text = "define stream S (v int); from S select my:twice(v) as w insert into O;"
    for functions in ([twice], (f for f in [twice]), FUNCTIONS.with_(twice)):
        assert compile_app(text, functions=functions).app.queries
    app = compile_app("define table T (v int); define stream S (v int); from S insert into T;").app
    assert compile_query("from T select my:twice(v) as w", app, functions=[twice]).select
