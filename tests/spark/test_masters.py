"""Where tasks run, and which settings a user may give."""

import pytest

from edgewise.errors import SetupError
from edgewise.spark.masters import FIXED_SETTINGS, Master, parse_settings


@pytest.mark.parametrize("url", ["local", "local[*]", "local[4]", "local-cluster[2,1,512]"])
def test_tasks_of_a_local_master_run_here(url):
    assert not Master.parse(url).elsewhere


@pytest.mark.parametrize("url", ["spark://a:7077,b:7077", "k8s://https://api:6443", "yarn"])
def test_tasks_of_a_cluster_run_elsewhere(url):
    assert Master.parse(url).elsewhere


def test_a_connect_server_is_refused_with_what_to_use_instead():
    with pytest.raises(SetupError, match=r"Connect server.*--master spark://.*edgewise\.spark"):
        Master.parse("sc://host:15002")


def test_what_is_no_master_is_refused():
    with pytest.raises(SetupError, match=r"--master locla: use local\[N\]"):
        Master.parse("locla")


def test_settings_and_packages_go_to_spark_as_given():
    assert parse_settings(["spark.executor.memory=2g", "spark.a=b=c"], ["g:n:1,g:m:2"]) == {
        "spark.executor.memory": "2g",
        "spark.a": "b=c",
        "spark.jars.packages": "g:n:1,g:m:2",
    }


@pytest.mark.parametrize("key", sorted(FIXED_SETTINGS))
def test_settings_that_would_change_rows_are_refused(key):
    with pytest.raises(SetupError, match="is fixed"):
        parse_settings([f"{key}=1"])


@pytest.mark.parametrize(
    ("options", "packages", "why"),
    [(["spark.a"], [], r"spark\.KEY=VALUE"), (["a=b"], [], "spark.KEY"), ([], ["g:n"], "Maven")],
)
def test_half_a_setting_is_refused(options, packages, why):
    with pytest.raises(SetupError, match=why):
        parse_settings(options, packages)
