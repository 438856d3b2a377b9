from tests.support.kernel_runs import STREAMS

from edgewise.kernel.codegen.feeder_loop import Feeder
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

APP = compile_app(f"{STREAMS} from A[v > 1] select k insert into O;").app


def feeder_of(fragment):
    return Feeder(FragmentBuilder(APP, fragment, frozenset()), "A", None)


def test_a_loop_has_a_variable_for_each_column():
    left, right = feeder_of(Fragment("f", ("query1",))).loop()
    assert left == "ts, offset, clock, at, c_k, c_v"
    assert right == "run.ts, run.offset, run.clock, run.at, *run.columns"


def test_a_loop_over_some_attributes_reads_their_columns_only():
    left, right = feeder_of(Fragment("f", ("query1",))).loop(["v"])
    assert left.endswith("at, c_v")
    assert right.endswith("run.at, columns[1]")


def test_keyed_events_have_no_one_state():
    assert feeder_of(Fragment("f", ("query1",))).straight
    assert not feeder_of(Fragment("f", ("query1",), keys=(("A", ("k",)),))).straight
