import pytest

from edgewise.lang import compile_app
from edgewise.spark.choose import SparkConfig
from edgewise.spark.warmup import warm_up


@pytest.mark.spark
def test_warming_up_leaves_nothing_behind(spark, tmp_path):
    app = compile_app(
        "define stream S (k string, v int);"
        "from S[v > 1]#window.time(1 sec) select k, sum(v) as n group by k insert into O;"
    ).app
    warm_up(spark, app, SparkConfig(state=str(tmp_path / "state")), tmp_path / "scratch")
    assert [p.name for p in tmp_path.rglob("*")] == ["scratch"]
