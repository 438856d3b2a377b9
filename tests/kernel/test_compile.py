from tests.support.kernel_runs import STREAMS

from edgewise.kernel.compile import TAP, Kernel, compile_kernel
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

KEYS = (("A", ("k",)),)
PAIR = (
    "from every e1=A[v > 3] -> e2=A[k == e1.k and v != e1.v] within 1 sec "
    "select e1.v as a insert into O;"
)


def compiled(query, taps=(), keys=()):
    app = compile_app(STREAMS + query).app
    return compile_kernel(app, Fragment("f", ("query1",), ("A",), keys), taps)


def test_a_fragment_becomes_a_kernel_with_readable_source():
    kernel = compiled("from A[v > 1] select k insert into O;")
    assert isinstance(kernel, Kernel)
    assert kernel.source.startswith("def build(rt):")


def test_only_tapped_queries_give_their_own_rows():
    query = "from A select k insert into O;"
    assert f"emit('{TAP}query1'" in compiled(query, taps=["query1"]).source
    assert f"emit('{TAP}query1'" not in compiled(query).source


def test_a_query_that_keeps_its_state_by_the_fragment_s_key_has_no_state_around_it():
    assert "dirty.add(" in compiled(PAIR, keys=KEYS).source
    assert "dirty.add(" not in compiled(PAIR).source


def test_the_fingerprint_of_a_state_tells_one_plan_from_another():
    one, same, other = (
        compiled(q, keys=KEYS) for q in (PAIR, PAIR, PAIR.replace("1 sec", "2 sec"))
    )
    assert one.layout.cells == same.layout.cells != other.layout.cells
