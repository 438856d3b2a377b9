from pathlib import Path

import pytest

from edgewise.errors import LogError, SetupError
from edgewise.lang import compile_app
from edgewise.node.homes import Homes

APP = compile_app("define stream Orders (v int); from Orders select v insert into Large;").app
HERE = Path("/data/log/Orders")


def place(*words, stream="Orders"):
    return Homes.of(words, APP).place(stream, HERE)


def test_a_log_lives_where_it_was_said():
    assert place() == str(HERE)
    assert place("kafka://h:1/shop") == "kafka://h:1/shop-Orders"
    assert place("kafka://h:1/shop", "Orders=kafka://h:1/o") == "kafka://h:1/o"
    assert place("Large=kafka://h:1/l") == str(HERE)
    assert place("/fast/disk/") == "/fast/disk/Orders"
    assert place("Orders=/fast/disk") == "/fast/disk"


def test_what_another_process_is_told_means_the_same():
    said = Homes.of(["kafka://h:1/shop", "Large=/fast/l"], APP)
    assert Homes.of(said.words(), APP) == said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["Order=kafka://h:1/o"], "did you mean 'Orders'"),
        (["redis://h:1/o"], "a directory or in kafka://host:port/topic"),
        (["Orders="], "a directory or in kafka://host:port/topic"),
        (["kafka://h:1/a", "kafka://h:1/b"], "live in kafka://h:1/a already"),
    ],
)
def test_a_place_that_cannot_be_is_refused(words, why):
    with pytest.raises(SetupError, match=why):
        Homes.of(words, APP)


def test_half_an_address_is_refused():
    with pytest.raises(LogError, match="kafka://host:port/topic"):
        Homes.of(["kafka://h:1"], APP)


def test_explain_says_where_logs_live_and_how_spark_reads_them():
    assert Homes().lines(APP) == []
    lines = Homes.of(["kafka://h:1/shop", "Large=/fast/l"], APP).lines(APP)
    assert lines[1].startswith("  Orders: kafka://h:1/shop-Orders; Spark reads it through")
    assert lines[2] == "  Large: /fast/l"
