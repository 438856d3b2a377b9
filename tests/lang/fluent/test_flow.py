import pytest

from edgewise import eep
from edgewise.errors import AppError
from edgewise.lang import compile_app
from edgewise.lang.fluent import call, col, count, every, pattern, sequence, stream, sum_
from edgewise.plan.declare import aggregate
from edgewise.plan.nodes import StreamCall
from edgewise.plan.procedures import Procedure

logins = stream("logins", ip="string", city="string")
A = stream("A", k="string", v="int", ts="long")
B = stream("B", k="string", v="int")
DEFINE = "define stream A (k string, v int, ts long); define stream B (k string, v int); "


def same(flow, text):
    """The same plan, apart from places."""
    mine, its = flow.compile().app, compile_app(text).app
    assert mine.streams == its.streams
    assert [(q.input, q.select, q.output, q.rate, q.partition) for q in mine.queries] == [
        (q.input, q.select, q.output, q.rate, q.partition) for q in its.queries
    ]
    assert mine.partitions == its.partitions


def test_the_first_app_in_both_forms():
    flow = (
        logins.window.time("10 min")
        .group_by("ip")
        .select("ip", n=count())
        .having(col.n > 10)
        .insert_into("often")
    )
    same(
        flow,
        """define stream logins (ip string, city string);
        from logins#window.time(10 min) select ip, count() as n group by ip having n > 10
        insert into often;""",
    )


@pytest.mark.parametrize(
    ("flow", "text"),
    [
        (A.window.length(5), "A#window.length(5)"),
        (A.window.length_batch(5), "A#window.lengthBatch(5)"),
        (A.window.time_batch("1 sec"), "A#window.timeBatch(1 sec)"),
        (A.window.external_time("ts", 1000), "A#window.externalTime(ts, 1 sec)"),
        (A.window.external_time_batch("ts", "1 sec"), "A#window.externalTimeBatch(ts, 1 sec)"),
        (A.window.time_length("1 sec", 5), "A#window.timeLength(1 sec, 5)"),
        (A.window.session("1 sec", "k"), "A#window.session(1 sec, k)"),
        (A.window.sort(5, "v"), "A#window.sort(5, v)"),
        (A.window.delay("1 sec"), "A#window.delay(1 sec)"),
        (A.window.batch(), "A#window.batch()"),
        (A.window.expression("count() < 5"), "A#window.expression('count() < 5')"),
        (A.window.expression_batch("count() < 5"), "A#window.expressionBatch('count() < 5')"),
        (A.where(col.v > 1).window.length(2).where("v < 9"), "A[v > 1]#window.length(2)[v < 9]"),
    ],
)
def test_windows_and_filters(flow, text):
    define = "define stream A (k string, v int, ts long); "
    same(flow.insert_into("O"), f"{define} from {text} insert into O;")


def test_joins_patterns_and_sequences():
    left, right = A.window.length(1).as_("a"), B.window.length(1).as_("b")
    same(
        left.join(right, on="a.k == b.k", kind="left").select("a.k", total=sum_(col.of("b").v))
        .group_by("a.k").insert_into("O"),
        DEFINE + "from A#window.length(1) as a left outer join B#window.length(1) as b "
        "on a.k == b.k select a.k, sum(b.v) as total group by a.k insert into O;",
    )  # fmt: skip
    second = B.as_("e2").where(col.k == col.of("e1").k)
    for make, sign in ((pattern, "->"), (sequence, ",")):
        same(
            make(every(A.as_("e1")), second, within="5 min")
            .select(k=col.of("e1").k)
            .insert_into("O"),
            DEFINE + f"from every e1=A {sign} e2=B[k == e1.k] within 5 min "
            "select e1.k as k insert into O;",
        )


def test_partitions_rates_and_order():
    flow = A.window.length(3).partition_by("k").select("k", t=sum_(col.v))
    flow = flow.order_by("t", descending=True).limit(5, offset=1).output("last", "1 sec")
    same(
        flow.insert_into("O", "all"),
        "define stream A (k string, v int, ts long); partition with (k of A) begin "
        "from A#window.length(3) select k, sum(v) as t order by t desc limit 5 offset 1 "
        "output last every 1 sec insert all events into O; end;",
    )


def test_a_chain_carries_what_is_before_it():
    large = A.where(col.v > 5).insert_into("Large")
    flow = large.select("k").named("again").output("first", 2, events=True).insert_into("O")
    flow = flow.also(B.insert_into("P"))
    app = flow.compile("both").app
    assert app.name == "both"
    assert [q.name for q in app.queries] == ["query1", "again", "query3"]
    assert [s.name for s in app.inputs] == ["A", "B"]


def test_errors_are_those_of_the_language():
    with pytest.raises(AppError, match="did you mean 'ip'"):
        logins.select("ipp").insert_into("O").compile()


def test_the_text_is_there_to_be_read():
    assert logins.select("ip").insert_into("O").text() == (
        "define stream logins (ip string, city string);\n\n"
        "from logins\nselect ip\ninsert into O;\n"
    )


class Rising(Procedure):
    name = "my:rising"
    appends = {"steps": "int"}  # noqa: RUF012
    state = {"last": 0, "steps": 0}  # noqa: RUF012

    def process(self, event, state):
        state["steps"] = state["steps"] + 1 if event["v"] > state["last"] else 0
        state["last"] = event["v"]
        return {"steps": state["steps"]}


def test_a_procedure_is_a_stream_function_with_state():
    flow = A.process(Rising()).where(col.steps > 3).select("k", "steps").insert_into("O")
    query = flow.compile().app.queries[0]
    call = query.input.before[0]
    assert isinstance(call, StreamCall)
    assert isinstance(call.procedure, Rising)
    assert "#my:rising()[steps > 3]" in flow.text()


def test_a_flow_runs_in_this_process():
    sales = stream("sales", item="string", price="double")
    dear = sales.where(col.price > 2).select("item", n=count()).group_by("item")
    assert dear.run([("tea", 1.0), {"item": "cake", "price": 3.5}]).data() == [("cake", 1)]
    ended = dear.insert_into("dear")
    rows = ended.where(col.n > 1).insert_into("often").run([("cake", 3.0)] * 3)
    assert [(row.stream, row.data) for row in rows] == [
        ("often", ("cake", 2)), ("often", ("cake", 3)),
    ]  # fmt: skip
    assert sales.run([("tea", 1.0)]).data() == [("tea", 1.0)]


def test_a_flow_takes_aggregates_of_ones_own():
    last = aggregate("newest", "number", returns="same")(eep.Last())
    flow = A.window.length(2).select(x=call("newest", col.v))
    assert flow.run([("a", 1, 0), ("a", 5, 0)], functions=[last]).data() == [(1,), (5,)]


def test_a_flow_prints_as_its_text_and_shows_as_its_picture():
    assert repr(B) == "define stream B (k string, v int);\n"
    assert repr(B.where(col.v > 1)).endswith("from B[v > 1]\ninsert into unfinished;\n")
    assert repr(B.where(col.v > 1).insert_into("C")).endswith("insert into C;\n")
    assert B.where(col.v > 1)._repr_html_().startswith("<svg")
    assert "there is no attribute" in B.where("w > 1")._repr_html_()


def test_a_flow_becomes_an_app_that_takes_events_one_by_one():
    app = B.where(col.v > 1).insert_into("C").app("mine")
    assert repr(app) == "App('mine': reads B; writes C)"
    assert app.send("B", ("a", 2)).data() == [("a", 2)]
