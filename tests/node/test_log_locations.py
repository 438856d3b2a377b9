from pathlib import Path

import pytest

from edgewise.errors import LogError, SetupError
from edgewise.lang import compile_app
from edgewise.node.log_locations import LogLocations

APP = compile_app("define stream Orders (v int); from Orders select v insert into Large;").app
HERE = Path("/data/log/Orders")


def place(*words, stream="Orders"):
    return LogLocations.parse(words, APP).locate(stream, HERE)


def test_a_log_is_where_an_option_says():
    assert place() == str(HERE)
    assert place("kafka://h:1/shop") == "kafka://h:1/shop-Orders"
    assert place("kafka://h:1/shop", "Orders=kafka://h:1/o") == "kafka://h:1/o"
    assert place("Large=kafka://h:1/l") == str(HERE)
    assert place("/fast/disk/") == "/fast/disk/Orders"
    assert place("Orders=/fast/disk") == "/fast/disk"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["Order=kafka://h:1/o"], "did you mean 'Orders'"),
        (["redis://h:1/o"], "a directory or in kafka://host:port/topic"),
        (["Orders="], "a directory or in kafka://host:port/topic"),
        (["kafka://h:1/a", "kafka://h:1/b"], "are in kafka://h:1/a already"),
    ],
)
def test_a_location_that_is_none_is_refused(words, why):
    with pytest.raises(SetupError, match=why):
        LogLocations.parse(words, APP)


def test_half_an_address_is_refused():
    with pytest.raises(LogError, match="kafka://host:port/topic"):
        LogLocations.parse(["kafka://h:1"], APP)


def test_explain_says_where_logs_are_and_how_spark_reads_them():
    assert LogLocations().explain(APP) == []
    lines = LogLocations.parse(["kafka://h:1/shop", "Large=/fast/l"], APP).explain(APP)
    assert lines[1].startswith("  Orders: kafka://h:1/shop-Orders; Spark reads it through")
    assert lines[2] == "  Large: /fast/l"
