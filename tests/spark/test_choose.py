"""How a batch runs follows from its size, its logs and the fragment; `explain` says the same."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import SetupError
from edgewise.event.types import AttrType
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS, TEXT, scalar
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.native_spark import Projection
from edgewise.spark.choose import (
    SCANS_MAX,
    BatchTraits,
    FragmentTraits,
    InDriver,
    LogScan,
    Native,
    Shuffle,
    SparkConfig,
    StageScan,
    TimeSlices,
    choose,
    explain_choices,
    find_traits,
)

KEYED = FragmentTraits(keyed=True, stateless=False)
ALONE = FragmentTraits(keyed=False, stateless=False)
STATELESS = FragmentTraits(keyed=False, stateless=True)
WINDOW = FragmentTraits(keyed=False, stateless=False, sliceable=True)
PROJECTIONS = (Projection("S", "O", (), {}),)
NATIVE = FragmentTraits(keyed=False, stateless=True, projections=PROJECTIONS)
ONLY_NATIVE = FragmentTraits(False, True, has_kernel=False, projections=PROJECTIONS)
SMALL, LARGE = BatchTraits(50_000), BatchTraits(50_001)
IN_KAFKA = BatchTraits(50_001, in_files=False)
LATER_STAGE = BatchTraits(50_001, from_stage=True)

TABLE = [
    (KEYED, SMALL, 3, InDriver(3)),
    (ALONE, SMALL, 3, InDriver(1)),
    (ONLY_NATIVE, SMALL, 3, Native(PROJECTIONS)),
    (KEYED, LARGE, 3, LogScan(3)),
    (KEYED, LARGE, SCANS_MAX + 1, Shuffle(SCANS_MAX + 1)),
    (ALONE, LARGE, 3, LogScan(1)),
    (STATELESS, LARGE, 3, LogScan(3)),
    (NATIVE, LARGE, SCANS_MAX + 1, LogScan(SCANS_MAX + 1)),
    (WINDOW, LARGE, 3, TimeSlices(3)),
    (WINDOW, LARGE, 1, LogScan(1)),
    (WINDOW, LARGE, SCANS_MAX + 1, LogScan(1)),
    (KEYED, IN_KAFKA, 3, Shuffle(3)),
    (WINDOW, IN_KAFKA, 3, Shuffle(1)),
    (NATIVE, IN_KAFKA, 3, Native(PROJECTIONS)),
    (KEYED, LATER_STAGE, 3, StageScan(3)),
    (KEYED, LATER_STAGE, SCANS_MAX + 1, Shuffle(SCANS_MAX + 1)),
    (ONLY_NATIVE, LATER_STAGE, 3, Native(PROJECTIONS)),
]


@pytest.mark.parametrize(("fragment", "batch", "partitions", "expected"), TABLE)
def test_the_choice_follows_the_table(fragment, batch, partitions, expected):
    assert choose(fragment, batch, SparkConfig(partitions=partitions)) == expected


FRAGMENTS = st.builds(
    FragmentTraits,
    keyed=st.booleans(),
    stateless=st.booleans(),
    has_kernel=st.booleans(),
    sliceable=st.booleans(),
    projections=st.just(PROJECTIONS),
)
BATCHES = st.builds(
    BatchTraits, rows=st.integers(0, 200_000), in_files=st.booleans(), from_stage=st.booleans()
)


@given(FRAGMENTS, BATCHES, st.integers(1, 20))
def test_a_choice_never_asks_for_what_is_not_there(fragment, batch, partitions):
    found = choose(fragment, batch, SparkConfig(partitions=partitions))
    if not fragment.has_kernel:
        assert found == Native(PROJECTIONS)
    if isinstance(found, LogScan | TimeSlices | StageScan):
        assert batch.in_files
        assert isinstance(found, StageScan) == batch.from_stage
    if isinstance(found, InDriver):
        assert batch.rows <= SparkConfig().small_batch_rows
    if not fragment.keyed and isinstance(found, InDriver | StageScan | Shuffle):
        assert found.partitions == 1


APP = """
define stream S (ip string, city string, v int);
define stream R (ip string, v int);
from S#window.time(1 min) select ip, city, count() as n group by ip insert into M;
from M select city, sum(n) as total group by city insert into O;
from R[v > 3] select ip insert into F;
"""


def test_explain_says_by_stage_how_small_and_large_batches_run():
    small = "batches up to 50,000 rows: in the driver, "
    assert explain_choices(compile_app(APP).app, SparkConfig(partitions=3)) == {
        "query1": (f"{small}3 key partitions", "larger batches: log scan, 3 tasks"),
        "query2": (
            f"{small}3 key partitions",
            "larger batches: scan of the earlier stage's rows, 3 tasks",
        ),
        "query3": (f"{small}1 key partition", "larger batches: log scan, 3 tasks"),
    }
    in_kafka = explain_choices(compile_app(APP).app, SparkConfig(), in_files=False)
    assert {stage: lines[1] for stage, lines in in_kafka.items()} == {
        "query1": "larger batches: shuffle, 2 tasks",
        "query2": "larger batches: shuffle, 2 tasks",
        "query3": "larger batches: in Spark's own expressions",
    }


def test_a_function_that_only_spark_has_is_native_in_all_batches():
    soundex = scalar("my:soundex", TEXT, returns=lambda _: AttrType.STRING, spark="soundex")
    text = "define stream S (k string); from S select my:soundex(k) as k insert into O;"
    app = compile_app(text, functions=FUNCTIONS.with_(soundex)).app
    assert list(explain_choices(app, SparkConfig()).values()) == [
        ("all batches: in Spark's own expressions",)
    ]


def test_taps_need_the_kernel():
    app = compile_app("define stream S (v int); from S[v > 1] select v insert into O;").app
    [fragment] = split_into_stages(app)
    assert find_traits(app, fragment).projections
    assert find_traits(app, fragment, ("query1",)).projections == ()


def test_partitions_out_of_range_are_refused():
    with pytest.raises(SetupError, match="partitions must be"):
        SparkConfig(partitions=0).validate()


def test_choosing_imports_no_pyspark():
    code = "import sys, edgewise.spark.choose; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
