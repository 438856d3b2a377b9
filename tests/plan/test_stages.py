from edgewise.lang import compile_app
from edgewise.plan.stages import REAL_TIME, describe_stages, format_stages

APP = """
define stream S (ip string, city string, v int);
define stream R (k string, v int);
define stream Q (k string, v int);
from S#window.time(1 min) select ip, city, count() as n group by ip insert into M;
from M select city, sum(n) as total group by city insert into O;
from R#window.time(1 min) select k, sum(v) as n group by k insert into P;
from Q[v > 3] select k insert into F;
"""


WHOLE = """
define stream S (ip string, city string, v int);
from S#window.timeBatch(1 min) select ip, city, count() as n group by ip insert into M;
from M select city, sum(n) as total group by city insert into O;
"""


def test_a_chain_that_cannot_be_cut_says_why():
    [chain] = describe_stages(compile_app(WHOLE).app)
    assert (chain.tasks, chain.key) == ("one task", "")
    assert "query1 by ip, query2 by city" in chain.why


def test_every_stage_has_its_key_its_tasks_and_why():
    found = {stage.name: stage for stage in describe_stages(compile_app(APP).app)}
    assert [found[name].key for name in ("query1", "query2")] == ["ip of S", "city of M"]
    keyed, free = found["query3"], found["query4"]
    assert (keyed.key, keyed.tasks) == ("k of R", "one task per partition (--partitions)")
    assert (free.key, free.why) == ("", "no state")


def test_the_block_says_why_real_time_mode_does_not_fit():
    lines = format_stages(compile_app(APP).app)
    assert lines[0] == "on Spark"
    assert "├─ stage query3: by k of R, one task per partition (--partitions)" in lines
    assert lines[-1] == f"└─ {REAL_TIME}"
    for home, reason in (("files", "Python source"), ("Kafka", "at least once")):
        assert home in REAL_TIME
        assert reason in REAL_TIME
