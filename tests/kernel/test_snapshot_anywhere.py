"""A random app, cut between any two events: saved, restored in a fresh kernel, the same rows.

Families are those of the differential test, and here the rest of what holds state.
"""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.random_apps import FAMILIES, HEAD, KEYS, START, aggregate, case, events

from edgewise.kernel import compile_kernel
from edgewise.kernel import serialize as snapshot
from edgewise.kernel.api import EventRun
from edgewise.lang import compile_app, compile_query
from edgewise.plan.fragments import Fragment
from edgewise.plan.rules.keys import split_into_fragments

EVENTS, LINGER_MS = 40, 300
RATES = ("all every 40 millisec", "first every 40 millisec", "last every 40 millisec",
         "snapshot every 40 millisec", "last every 3 events")  # fmt: skip
MORE_WINDOWS = (
    "hopping(60, 20)", "cron('*/1 * * * * ?')", "lossyFrequent(0.3, 0.1, k)", "frequent(2)",
    "session(30, k, 20)", "externalTimeBatch(l, 9, 0, 50)", "timeBatch(40, true)",
    "expressionBatch('sum(v) < 9', true)", "timeLength(60, 4)", "delay(45)", "batch(2)",
)  # fmt: skip


def rated(dice):
    window = dice.choice(["", "#window.length(3)", "#window.time(50)", "#window.lengthBatch(2)"])
    group = dice.choice(["", "group by k "])
    events_wanted = dice.choice(["", "all events "]) if window else ""
    return (
        f"from S{window} select k, sum(v) as s {group}output {dice.choice(RATES)} "
        f"insert {events_wanted}into O;"
    )


def rarer_windows(dice):
    return (
        f"from S#window.{dice.choice(MORE_WINDOWS)} select k, {aggregate(dice)} as a group by k "
        "insert all events into O;"
    )


def triggers(dice):
    kept = dice.choice(["length(2)", "time(60)"])
    return (
        "define trigger Tick at every 35 millisec; define trigger Boot at 'start'; "
        f"from Tick join S#window.{kept} as s select triggered_time as t, s.v as v insert into O; "
        "from Boot select triggered_time as t insert into P;"
    )


def aggregations(dice):
    by = dice.choice(["", "by l "])
    kept = "@retentionPeriod(sec='200 millisec')"
    purge = dice.choice(["", f"@purge(enable='true', interval='90 millisec', {kept}) "])
    return (
        f"{purge}define aggregation G from S[not (l is null)] select k, sum(v) as s, avg(p) as a, "
        "min(f) as m, count() as n, distinctCount(v) as d "
        f"group by k aggregate {by}every sec, min; "
        "from T join G within 0L, 9000000000000L per 'seconds' "
        "select AGG_TIMESTAMP as at, G.k as k, s, a, m, n, d insert into O;"
    )


def purged(dice):
    body = dice.choice([
        "from S#window.length(3) select k, sum(v) as s insert into O;",
        "from every e1=S[v > 2] -> e2=S[v < 2] within 90 millisec select e1.v as a insert into O;",
        """from S select k, count() as n insert into #I;
        from #I#window.time(40) select k, max(n) as m insert into O;""",
    ])  # fmt: skip
    return (
        "@purge(enable='true', interval='50 millisec', idle.period='120 millisec') "
        f"partition with (k of S) begin {body} end;"
    )


def chained(dice):
    return (
        "@PrimaryKey('k') define table R (k string, v int); "
        "define window W (k string, v int) timeBatch(50) output all events; "
        "from S[not (k is null)] select k, v update or insert into R on R.k == k; "
        "from S[v > 2] select k, v insert into W; "
        "from W select k, sum(v) as s group by k insert all events into M; "
        "from M join R on M.k == R.k select M.k as k, s, R.v as v insert into O; "
        "from every not T for 45 millisec select currentTimeMillis() as t insert into P;"
    )


HELD = {
    **FAMILIES,
    "rates": rated,
    "rarer windows": rarer_windows,
    "triggers": triggers,
    "aggregations": aggregations,
    "purged partitions": purged,
    "chained": chained,
}


def made(family, seed):
    dice = random.Random(f"{family} {seed}")
    if family in FAMILIES:
        text, sent = case(family, dice, EVENTS)
    else:
        text, sent = HEAD + HELD[family](dice), events(dice, EVENTS)
    return compile_app(text).app, sent


def runs(sent):
    """One run an event, with the app's clock."""
    clock = 0
    for offset, (stream, ts, row) in enumerate(sent):
        clock = max(clock, ts)
        yield EventRun(stream, [ts], [[v] for v in row], [offset], [clock], [offset])


def whole(app):
    return compile_kernel(app, Fragment("f", tuple(q.name for q in app.queries)))


def ending(kernel, sent):
    kernel.advance(sent[-1][1] + LINGER_MS, 9)
    return kernel.take()


@pytest.mark.parametrize("family", HELD)
@settings(max_examples=12)
@given(st.integers(0, 10**6), st.lists(st.integers(0, EVENTS), min_size=1, max_size=3))
def test_cut_anywhere_saved_and_restored_the_rows_are_the_same(family, seed, cuts):
    app, sent = made(family, seed)
    parts = list(runs(sent))
    straight = whole(app)
    straight.start(START)
    for run in parts:
        straight.feed(run)
    kernel, rows = whole(app), []
    kernel.start(START)
    for low, high in itertools.pairwise([0, *sorted(cuts), len(parts)]):
        for run in parts[low:high]:
            kernel.feed(run)
        rows += kernel.take()
        saved = [(k, s) for k, s in kernel.changed() if s is not None]
        kernel = whole(app)
        kernel.restore(saved)
    assert rows + ending(kernel, sent) == straight.take() + ending(straight, sent)


KEYED = {
    "partitions": FAMILIES["partitions"],
    "purged partitions": purged,
    "groups": lambda dice: (
        f"from S#window.time({dice.choice([20, 60])}) "
        f"select k, {aggregate(dice)} as a group by k insert all events into O;"
    ),
    "pairs": lambda dice: (
        "from every e1=S[v > 2] -> e2=T[k == e1.k and v < 4] "
        f"within {dice.choice([30, 200])} millisec select e1.v as a, e2.v as b insert into O;"
    ),
    "joins": lambda dice: (
        f"from S#window.time({dice.choice([15, 40])}) as a join T#window.time(60) as b "
        "on a.k == b.k select a.v as x, b.v as y insert all events into O;"
    ),
}


def keyed(family, seed):
    """An app, its events, and its fragments that have a key."""
    dice = random.Random(f"{family} {seed}")
    app = compile_app(HEAD + KEYED[family](dice)).app
    return app, events(dice, EVENTS), [f for f in split_into_fragments(app) if f.keyed]


@pytest.mark.parametrize("family", KEYED)
@settings(max_examples=15)
@given(st.integers(0, 10**6), st.lists(st.integers(0, EVENTS), min_size=1, max_size=4))
def test_increments_by_key_laid_over_each_other_are_the_state(family, seed, cuts):
    app, sent, fragments = keyed(family, seed)
    for fragment in fragments:
        parts = [r for r in runs(sent) if r.stream in fragment.inputs]
        first, second, straight = (compile_kernel(app, fragment) for _ in range(3))
        cuts = sorted(min(cut, len(parts)) for cut in cuts)
        stored = {}
        for low, high in itertools.pairwise([0, *cuts]):
            for run in parts[low:high]:
                first.feed(run)
            stored.update(first.changed())
        second.restore([(k, s) for k, s in stored.items() if s is not None])
        for run in parts[cuts[-1] :]:
            second.feed(run)
        for run in parts:
            straight.feed(run)
        assert first.take() + ending(second, sent) == ending(straight, sent)


@pytest.mark.parametrize("family", KEYED)
@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(KEYS))
def test_only_keys_that_changed_are_written(family, seed, key):
    app, sent, fragments = keyed(family, seed)
    for fragment in fragments:
        kernel = compile_kernel(app, fragment)
        for run in runs(sent):
            if run.stream in fragment.inputs:
                kernel.feed(run)
        now = sent[-1][1]
        kernel.advance(now, 0)
        list(kernel.changed())
        assert list(kernel.changed()) == []
        stream = fragment.inputs[0]
        schema = app.stream(stream).schema
        if set(fragment.key_of(stream)) != {"k"}:
            continue
        row = [key if a.name == "k" else None for a in schema.attributes]
        # No time passes, so no timer of another key fires.
        kernel.feed(EventRun(stream, [now], [[v] for v in row], [EVENTS], [now], [0]))
        assert {k for k, _ in kernel.changed()} <= {snapshot.pack_key((key,))}


def test_an_answer_on_demand_is_the_same_after_a_restore():
    app, sent = made("aggregations", 3)
    asked = compile_query("from G within 0L, 9000000000000L per 'minutes' select *", app)
    kernel = whole(app)
    for run in runs(sent):
        kernel.feed(run)
    restored = whole(app)
    restored.restore([(k, s) for k, s in kernel.changed() if s is not None])
    assert restored.answer(asked) == kernel.answer(asked) != []
