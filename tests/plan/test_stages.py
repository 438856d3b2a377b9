from edgewise.lang import compile_app
from edgewise.plan.stages import REAL_TIME, stage_lines, stages

APP = """
define stream S (ip string, city string, v int);
define stream R (k string, v int);
define stream Q (k string, v int);
from S#window.time(1 min) select ip, city, count() as n group by ip insert into M;
from M select city, sum(n) as total group by city insert into O;
from R#window.time(1 min) select k, sum(v) as n group by k insert into P;
from Q[v > 3] select k insert into F;
"""


def test_every_stage_has_its_key_its_tasks_and_why():
    chain, keyed, free = stages(compile_app(APP).app)
    assert (chain.tasks, chain.key) == ("one task", "")
    assert "share no grouping" in chain.why
    assert "query1 by ip, query2 by city" in chain.why
    assert (keyed.key, keyed.tasks) == ("k of R", "one task per partition (--partitions)")
    assert (free.key, free.why) == ("", "no state")


def test_the_block_says_why_real_time_mode_does_not_fit():
    lines = stage_lines(compile_app(APP).app)
    assert lines[0] == "on Spark"
    assert lines[2] == (
        "├─ stage query3: shuffled by k of R, one task per partition (--partitions)"
    )
    assert lines[-1] == f"└─ {REAL_TIME}"
