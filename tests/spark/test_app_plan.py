from edgewise.lang import compile_app
from edgewise.spark.app_plan import plan_app
from edgewise.spark.choose import FragmentTraits

CHAIN = """
define stream S (ip string, city string, v int);
from S#window.time(1 min) select ip, city, count() as n group by ip insert into M;
from M select city, sum(n) as total group by city insert into O;
"""


def test_a_chain_with_two_keys_is_two_stages_and_a_stream_between():
    plan = plan_app(compile_app(CHAIN).app)
    assert [f.name for f in plan.fragments] == ["query1", "query2"]
    assert plan.between == ("M",)
    assert plan.reads["query1"] == {"S": ("ip", "city")}
    assert plan.traits["query2"] == FragmentTraits(keyed=True, stateless=False)


def test_taps_make_another_plan():
    app = compile_app(CHAIN).app
    assert plan_app(app).fingerprint == plan_app(app).fingerprint
    assert plan_app(app).fingerprint != plan_app(app, ("query1",)).fingerprint
