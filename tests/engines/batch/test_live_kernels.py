"""A kernel comes from memory only where it equals the one from the files."""

import dataclasses

import pytest
from tests.support.batch_jobs import COUNTS, build_batch, build_job, list_rows

from edgewise.engines.batch import run
from edgewise.engines.batch.live_kernels import LiveKernels, fingerprint_plan
from edgewise.engines.batch.run import run_key_partition
from edgewise.errors import StateError
from edgewise.event.types import AttrType
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS, TEXT, scalar
from edgewise.plan.rules.chain import split_into_stages

FILTER = "define stream S (k string); from S[k == '{}'] select k insert into O;"


def list_keys(output):
    return [row["k"] for row in list_rows(output).get("O", [])]


def run_versions(root, jobs):
    rows = [build_batch("a", "b", first=2 * n) for n in range(len(jobs))]
    return [run_key_partition(job, 0, [batch]) for job, batch in zip(jobs, rows, strict=True)]


def test_an_app_with_a_changed_filter_runs_its_own_kernel(tmp_path):
    jobs = [build_job(n, tmp_path, FILTER.format(key)) for n, key in enumerate("aba")]
    assert [list_keys(output) for output in run_versions(tmp_path, jobs)] == [["a"], ["b"], ["a"]]


def test_an_app_with_changed_state_is_refused_the_state_of_the_old_one(tmp_path):
    changed = COUNTS.replace("count() as n", "count() as n, count() as m")
    jobs = [build_job(0, tmp_path), build_job(1, tmp_path, changed)]
    with pytest.raises(StateError, match="the plan changed"):
        run_versions(tmp_path, jobs)


def test_other_taps_make_another_kernel(tmp_path):
    first, second = (build_job(n, tmp_path, FILTER.format("a")) for n in range(2))
    plan = fingerprint_plan(second.app, [second.fragment], ["query1"])
    tapped = dataclasses.replace(second, taps=("query1",), fingerprint=plan)
    assert [list(list_rows(o)) for o in run_versions(tmp_path, [first, tapped])] == [
        ["O"],
        ["@query1", "O"],
    ]


def make_function(body):
    function = scalar("my:f", TEXT, returns=lambda _: AttrType.STRING, python=body)
    return FUNCTIONS.with_(function)


def bind(suffix):
    def body(text):
        return text + suffix

    return body


def test_a_function_that_was_edited_makes_another_plan():
    text = "define stream S (k string); from S select my:f(k) as k insert into O;"
    bodies = [bind("x"), bind("y"), bind("x"), lambda t: t + "x", lambda t: t + "y", str.upper]
    plans = []
    for body in bodies:
        app = compile_app(text, functions=make_function(body)).app
        plans.append(fingerprint_plan(app, split_into_stages(app)))
    assert plans[0] == plans[2]
    assert len(set(plans)) == len(plans) - 1


def test_a_process_keeps_a_bounded_number_of_kernels(tmp_path, monkeypatch):
    live = LiveKernels(limit=2)
    monkeypatch.setattr(run, "_live", live)
    for key_partition in range(5):
        run_key_partition(build_job(0, tmp_path), key_partition, [build_batch("a", first=0)])
    assert len(live) == 2
