"""Random apps, events for them, and engines that run over these in the driver, cut anywhere.

Apps are of the first slice of the language, or of every family that the original is tried with.
"""

import dataclasses
import random

from tests.conformance import random_apps

from edgewise.engines.batch import run
from edgewise.engines.batch.inputs import InputLogs
from edgewise.event.event import Event, EventKind
from edgewise.event.values import convert_value
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import _add_final_tick, load_logs, merge_by_time, read_rows
from edgewise.node.data_dir import DataDirectory
from edgewise.spark.choose import SparkConfig
from edgewise.spark.execution import SparkEngine

DEFINITIONS = (
    "define stream S (k string, v int, p double); define stream T (k string, v int, p double);"
)
WINDOWS = (
    "",
    "#window.time(2 sec)",
    "#window.time(500 milliseconds)",
    "#window.timeBatch(1 sec)",
    "#window.length(3)",
)
FILTERS = (
    "",
    "[v > 3]",
    "[p < 5.0 and not (k == 'a')]",
    "[k != 'b' or v * 2 >= 9]",
    "[v is null]",
)
AGGREGATES = ("count() as n", "sum(v) as n", "avg(p) as n", "min(v) as n", "max(p) as n")
GROUPS = ("", "group by k")
OUTPUTS = ("", "all events", "expired events")


def app_text(dice):
    """One to three queries: on S, on T, on what another query made."""
    queries = [_query(dice, "S", "O1")]
    if dice.random() < 0.5:
        queries.append(_query(dice, "T", dice.choice(["O1", "O2"])))
    if dice.random() < 0.6:
        queries.append(
            f"from O1{dice.choice(['', '[n > 1]'])}{dice.choice(WINDOWS)} "
            f"select k, count() as m {dice.choice(GROUPS)} insert into O3;"
        )
    return "\n".join([DEFINITIONS, *queries])


def _query(dice, source, target):
    # `n` has one type, so that two queries may write the same stream.
    having = dice.choice(["", "having n > 2"])
    return (
        f"from {source}{dice.choice(FILTERS)}{dice.choice(WINDOWS)} "
        f"select k, convert({dice.choice(AGGREGATES).removesuffix(' as n')}, 'double') as n "
        f"{dice.choice(GROUPS)} {having} insert {dice.choice(OUTPUTS)} into {target};"
    )


def events(dice, count):
    """In order of time, mostly; marks now and then; nulls."""
    now = 1_000_000
    made = []
    for _ in range(count):
        now += dice.choice([0, 0, 1, 10, 200, 700])
        if dice.random() < 0.05:
            made.append(Event("", now, (), EventKind.TICK))
            continue
        late = dice.choice([0] * 9 + [300])
        data = (
            dice.choice(["a", "b", "c", None]),
            dice.choice([None, *range(10)]),
            dice.choice([None, *(x / 4 for x in range(40))]),
        )
        made.append(Event(dice.choice(["S", "S", "T"]), now - late, data))
    return made


def case(seed, count=120):
    dice = random.Random(seed)
    return app_text(dice), events(dice, count), dice


ASKED = """
@lateness('250 millisec') define stream S (k string, v int, p double);
define stream T (k string, v int, p double);
from every e1=S[v > 3] -> e2=T[k == e1.k] within 900 millisec
select e1.k as k, e1.v as v, e2.v as w insert timeout events into O1;
@state(idle='700 millisec')
from every e1=S -> e2=T[k == e1.k and v > e1.v] -> e3=S[k == e1.k]
select e1.k as k, e2.v as v, e3.v as w insert into O2;
@state(idle='500 millisec')
partition with (k of S)
begin from S select k, count() as n insert into O3; end;
"""


def asked_case(seed, count=120):
    """Time-outs and bounds on state, keyed, behind events that are put in order."""
    _, made, dice = case(seed, count)
    return ASKED, made, dice


def late_case(seed, count=120):
    """Events of S come out of order: most as far as it declares, some beyond."""
    text, made, dice = case(seed, count)
    text = text.replace("define stream S", "@lateness('250 millisec') define stream S", 1)
    return text, made, dice


LATE_MS = ((0,), (0, 0, 0, 15), (0,) * 9 + (90_000,))  # in order, a little behind, far behind


def family_case(family, seed, count=60):
    """An app of a family; its events in one of three kinds of disorder, with marks between."""
    dice = random.Random(f"{family} {seed} on Spark")
    text, made = random_apps.case(family, dice, count)
    app = compile_app(text).app
    late, clock, events = dice.choice(LATE_MS), 0, []
    for stream, ts, values in made:
        clock = max(clock, ts)
        kinds = [a.type for a in app.stream(stream).schema.attributes]
        data = tuple(map(convert_value, values, kinds))
        events.append(Event(stream, ts - dice.choice(late), data))
        if dice.random() < 0.05:
            events.append(Event("", clock, (), EventKind.TICK))
    return text, [*events, Event("", clock + 200, (), EventKind.TICK)], dice


def plain(rows):
    """Rows without the moment they were captured."""
    return [dataclasses.replace(e, at=0) for e in rows]


def in_driver(directory, app, events, dice, state=""):
    """What comes out when every batch is one of an engine that starts anew, with any number of
    partitions, after an orderly stop or a crash.
    """
    layout = DataDirectory(directory)
    load_logs(app, _add_final_tick(app, events), layout)
    writers = {
        s.name: SegmentWriter.open(layout.log_directory(s.name), s.schema) for s in app.outputs
    }
    logs = {s.name: str(layout.log_directory(s.name)) for s in app.inputs}
    inputs = InputLogs(logs)
    place, heads = inputs.earliest(), inputs.heads()
    while place != heads:
        place = inputs.limit_end(place, heads, dice.choice([1, 9, 40]))
        run._live._kernels.clear()
        parts, rows = dice.randint(1, 4), dice.choice([5, 1000])
        job = SparkEngine.open(
            None,
            app,
            logs=logs,
            writers=writers,
            checkpoint=layout.checkpoint("app"),
            config=SparkConfig(
                partitions=parts,
                history_rows_max=rows,
                state=state,
                save_interval_s=dice.choice([0, 1e9]),
            ),
        )
        job.run_history(place)
        if dice.random() < 0.5:
            job.close()
        else:  # a crash: what is in memory is gone; a save under way has ended
            if job.state is not None:
                job.state.saver.close()
            job.inputs.close()
    for part in (inputs, *writers.values()):
        part.close()
    names = [s.name for s in app.outputs]
    found = (r for s in app.outputs for r in read_rows(layout.log_directory(s.name), s.schema))
    return plain(merge_by_time(found, names))
