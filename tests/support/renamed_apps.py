"""Apps of every kind of query whose names can be chosen, and the rows they give.

In a text `$k` stands for a name that a user chose. `rows_of` plays an app under a naming and gives
its rows with the names taken out, so that two namings can be compared.
"""

import io
import tokenize
from dataclasses import dataclass
from string import Template

from edgewise.engines.embedded import InMemoryEngine
from edgewise.event.event import EventKind
from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.kernel.operators import vectors
from edgewise.lang import compile_app, compile_query
from edgewise.plan.fragments import Fragment

START = 1000
HEAD = """
define function $f[python] return int { return None if data[0] is None else data[0] + 1 };
@OnError(action='stream') define stream $S ($k string, $v int, $p double, $t long);
define stream $R ($k string, $v int);
"""
GROUPED = (
    "select $k, sum($v) as $a, count() as $n, max($p) as $b group by $k having $n > 0 "
    "order by $a desc, $k limit 3 insert all events into $O;"
)
WINDOWS = {
    "length": "length(3)",
    "time": "time(40 milliseconds)",
    "length batch": "lengthBatch(3)",
    "time batch": "timeBatch(30 milliseconds)",
    "external time": "externalTime($t, 30 milliseconds)",
    "external time batch": "externalTimeBatch($t, 30 milliseconds)",
    "time length": "timeLength(50 milliseconds, 3)",
    "delay": "delay(20 milliseconds)",
    "sort": "sort(3, $v, 'desc', $p)",
    "session": "session(20 milliseconds, $k)",
    "frequent": "frequent(2, $k)",
    "lossy frequent": "lossyFrequent(0.3, 0.1, $k)",
    "batch": "batch()",
    "cron": "cron('* * * * * ?')",
    "expression": "expression('sum($v) < 20 and count() < 5')",
    "expression batch": "expressionBatch('count() < 3 and last.$v > 0')",
}
QUERIES = {
    "filter": (
        "from $S[$v > 2 and $k != 'y'] select $k, $f($v) as $a having $a < 15 insert into $O;"
    ),
    "mask": "from $S[$v > 2] select $v, $k, $t insert into $O;",
    "pass": "from $S select $S.$k as $b, $S.$v as $k insert into $O;",
    "total": (
        "from $S select $v, sum($f($v)) as $a, count() as $n, $f($v) as $b having $n > 0 "
        "insert into $O;"
    ),
    **{
        name: f"from $S[$v > 0]#window.{text} {GROUPED}" for name, text in WINDOWS.items()
    },
    "sliding": "from $S#window.length(3) select $k, avg($v) as $a, $p group by $k insert into $O;",
    "sliding by two": (
        "from $S#window.length(4) select $k, sum($v) + 1 as $a, count() as $n, $v as $b "
        "group by $k, $v insert into $O;"
    ),
    "sliding filtered": (
        "from $S[$v > 1]#window.length(2) select sum($v + 1) as $a, count() as $n "
        "having $n > 1 insert into $O;"
    ),
    "batches": (
        "from $S#window.externalTimeBatch($t, 20 milliseconds) "
        "select $p, $k, avg($v) as $a, count() as $n, sum($v) as $b group by $k insert into $O;"
    ),
    "batches of groups": (
        "from $S#window.externalTimeBatch($t, 20 milliseconds) "
        "select sum($t) as $a, $k group by $k, $v insert into $O;"
    ),
    "two readers": (
        "from $S select $k, $v insert into $M; from $M[$v > 3] select $k insert into $O; "
        "from $M select $v, $k insert into $P;"
    ),
    "filter index": " ".join(
        f"@info(name='$q{n}') from $S[$k == '{'xyz'[n % 3]}'] select $v, {n} as $n insert into $O;"
        for n in range(6)
    ),
    "rate of events": (
        "from $S select $k, sum($v) as $a group by $k output last every 3 events insert into $O;"
    ),
    "rate of time": "from $S select $k, $v output first every 30 milliseconds insert into $O;",
    "snapshot": (
        "from $S#window.length(3) select $k, sum($v) as $a group by $k "
        "output snapshot every 20 milliseconds insert into $O;"
    ),
    "join": (
        "from $S#window.length(3) as $x join $R#window.time(50 milliseconds) as $y "
        "on $x.$k == $y.$k select $x.$k as $k, $y.$v as $a, $x.$v as $b order by $y.$v, $x.$v "
        "insert into $O;"
    ),
    "outer join": (
        "from $S#window.length(2) as $x left outer join $R#window.length(2) as $y "
        "on $x.$k == $y.$k select $x.$k as $k, $y is null as $n, $y.$v as $a insert into $O;"
    ),
    "pair": (
        "from every $x=$S[$v > 3] -> $y=$S[$k == $x.$k and $v < $x.$v] within 90 milliseconds "
        "select $x.$k as $k, $x.$v as $a, $y.$v as $b insert into $O;"
    ),
    "pair of two streams": (
        "from every $x=$S -> $y=$R[$x.$k == $k] select $x.$v as $a, $y.$v as $b insert into $O;"
    ),
    "keyed pair": (
        "partition with ($k of $S) begin from every $x=$S[$v > 4] -> $y=$S[$v < 5] "
        "within 90 milliseconds select $x.$v as $a, $y.$v as $b insert into $O; end;"
    ),
    "chain": (
        "from every $x=$S[$f($v) > 2] -> $y=$R[$v >= $x.$v] -> $z=$S within 200 milliseconds "
        "select $x.$k as $k, $y.$v as $a, $z.$p as $b, eventTimestamp($x) as $n insert into $O;"
    ),
    "counted": (
        "from every $x=$S[$v > 2]<1:3> -> $y=$R select $x[0].$v as $a, $x[last].$v as $b, "
        "$x[1] is null as $n, $y.$k as $k having $a > 0 insert into $O;"
    ),
    "logical": (
        "from every $x=$S[$v > 4] and $y=$R select $x.$k as $k, $y.$v as $a insert into $O;"
    ),
    "either": "from every $x=$S[$v > 6] or $y=$R select $x.$k as $k, $y.$v as $a insert into $O;",
    "absent": (
        "from every $x=$S[$v > 4] -> not $R[$k == $x.$k] for 15 milliseconds "
        "select $x.$k as $k, $x.$v as $a insert into $O;"
    ),
    "sequence": (
        "from every $x=$S[$v > 1], $y=$S[$v > $x.$v]+, $z=$S[$v < 7] "
        "select $x.$v as $a, $y[0].$v as $b, $z.$k as $k insert into $O;"
    ),
    "keyed sequence": (
        "partition with ($k of $S) begin from every $x=$S[$v > 1], $y=$S[$v > 2]?, $z=$S "
        "within 100 milliseconds select $x.$v as $a, $y.$v as $b, $z.$k as $k insert into $O; end;"
    ),
    "sequence with two counts": (
        "from every $x=$S[$v > 1]+, $y=$S[$v < 5]*, $z=$R "
        "select $x[0].$v as $a, $y[0].$v as $b, $z.$k as $k insert into $O;"
    ),
    "partition": (
        "partition with ($k of $S) begin from $S select $k, count() as $n insert into #$M; "
        "from #$M[$n > 1] select $k, $n insert into $O; from $S#window.length(2) "
        "select $k, sum($v) as $a insert into $P; end; "
        "partition with ($k of $R) begin from $R select $v, $k insert into #$M; end;"
    ),
    "ranges": (
        "partition with ($v < 4 as 'low' or $v >= 4 as 'high' of $S) begin "
        "from $S select $k, count() as $n, $v insert into $O; end;"
    ),
    "table": (
        "@PrimaryKey('$key') define table $T ($k string, $v int); "
        "from $S[not ($k is null)] select $k, $v update or insert into $T set $T.$v = $S.$v "
        "on $T.$k == $S.$k; "
        "from $R[($k == $T.$k and $T.$v > 2) in $T] select $k insert into $O; "
        "from $R as $x join $T as $y on $x.$k == $y.$k select $y.$v as $a insert into $P;"
    ),
    "changes of a table": (
        "define table $T ($k string, $v int); from $S select $k, $v insert into $T; "
        "from $R select $k update $T set $T.$v = $T.$v + $R.$v on $T.$k == $R.$k; "
        "from $R[$v > 5] delete $T on $T.$k == $k; "
        "from $R join $T on $R.$k == $T.$k select $T.$v as $a, $T.$k as $b insert into $O;"
    ),
    "named window": (
        "define window $W ($k string, $v int) length(3) output all events; "
        "from $S select $k, $v insert into $W; from $W select $k, sum($v) as $a insert into $O; "
        "from $R join $W as $x on $R.$k == $x.$k select $x.$v as $b insert into $P;"
    ),
    "aggregation": (
        "define aggregation $G from $S select $k, sum($v) as $a, avg($p) as $b group by $k "
        "aggregate by $t every sec ... min; "
        "from $R as $x join $G as $y on $x.$k == $y.$k within 0L, 100000L per 'seconds' "
        "select $y.$k as $k, $y.$a as $n insert into $O;"
    ),
    "trigger": (
        "define trigger $Z at every 50 milliseconds; "
        "from $Z join $S#window.length(2) as $x select $x.$k as $k, $x.$v as $v insert into $O;"
    ),
    "faults": (
        "from $S select $k, math:sqrt($v - 3) as $a, str:upper($k) as $b insert into $O; "
        "from !$S select $k, _error as $n insert into $P;"
    ),
}  # fmt: skip
ON_DEMAND = {
    "table": (
        "from $T as $x on $x.$v > 1 select $x.$k as $k, sum($x.$v) as $a group by $x.$k",
        "select 'q' as $k, 5 as $v update or insert into $T set $T.$v = $v on $T.$k == $k",
        "from $T select $k, $v",
    ),
    "named window": ("from $W on $v > 1 select $k, $v order by $v desc",),
    "aggregation": ("from $G within 0L, 100000L per 'seconds' select $k, $a",),
}
KEYED = frozenset({"time", "sliding", "pair", "chain"})  # run again with `k` as the fragment's key
NAMES = (*"SROPMkvptabnxyzfqTWGZ",)
EVENTS = [
    ("S", 0, ("x", 5, 1.5)), ("S", 10, ("y", 2, 2.5)), ("R", 20, ("x", 6)),
    ("S", 30, ("x", 3, 0.5)), ("S", 35, ("z", 8, None)), ("R", 40, ("y", 2)),
    ("S", 60, ("y", 1, 4.0)), ("S", 62, ("x", 9, 2.0)), ("S", 64, (None, 7, 1.0)),
    ("S", 80, ("x", None, 1.0)), ("R", 90, ("x", 1)), ("S", 95, ("z", 4, 3.0)),
    ("S", 96, ("x", 6, 3.0)), ("R", 120, ("z", 9)), ("S", 121, ("y", 7, 8.0)),
    ("S", 122, ("y", 3, 8.0)), ("S", 123, ("x", 2, 5.0)), ("R", 160, ("x", 4)),
    ("S", 200, ("x", 8, 5.0)), ("R", 1500, ("x", 3)),
]  # fmt: skip


@dataclass(frozen=True)
class Naming:
    """What users call things: logical name -> name."""

    names: tuple[tuple[str, str], ...] = ()

    def text(self, template):
        """Names stand in backticks, so that words of the language are names too."""
        chosen = {**{n: n for n in NAMES}, **dict(self.names)}
        quoted = {n: f"`{name}`" for n, name in chosen.items()}
        raw = {f"q{n}": f"{chosen['q']}{n}" for n in range(6)}
        return Template(template).substitute(quoted, **raw, key=chosen["k"])

    def name(self, logical):
        return dict(self.names).get(logical, logical)

    def logical(self, stream):
        """The stream's logical name; inner, fault and tapped streams with their sign."""
        back = {name: logical for logical, name in self.names}
        return (
            stream[0] + back.get(stream[1:], stream[1:])
            if stream[0] in "!@"
            else back.get(stream, stream)
        )


BASE = Naming()


def compiled(title, naming):
    return compile_app(naming.text(HEAD + QUERIES[title])).app


def _data(stream, ts, row):
    return (*row, ts) if stream == "S" else row


def rows_of(title, naming):
    """The rows one event at a time, in long runs, with the queries tapped, and on demand."""
    app = compiled(title, naming)
    found = [_singly(app, naming, ()), _singly(app, naming, [q.name for q in app.queries])]
    found.append(_in_runs(app, naming, ()))
    if title in KEYED:
        key = (naming.name("k"),)
        keys = tuple((naming.name(s), key) for s in "SR")
        found.append(_in_runs(app, naming, keys))
    running = InMemoryEngine(app, start=START)
    _send(running, naming)
    asked = [compile_query(naming.text(text), app) for text in ON_DEMAND.get(title, ())]
    return [*found, *map(running.query, asked)]


def _send(running, naming):
    for stream, after, row in EVENTS:
        running.send(naming.name(stream), START + after, _data(stream, START + after, row))
    running.advance(START + 2000)


def _singly(app, naming, taps):
    running = InMemoryEngine(app, taps=taps, start=START)
    _send(running, naming)
    rows = running.take()
    shown = [
        (r.stream, r.ts, r.kind is EventKind.EXPIRED, r.data) for r in rows if r.stream[0] != "@"
    ]
    return [(naming.logical(s), *rest) for s, *rest in shown], len(rows)


def _in_runs(app, naming, keys):
    """Events that follow each other in one stream as one run, taken as columns."""
    fragment = Fragment("f", tuple(q.name for q in app.queries), (), keys)
    kernel = compile_kernel(app, fragment)
    kept, vectors.LEAST_EVENTS = vectors.LEAST_EVENTS, 2
    try:
        run = None
        for offset, (stream, after, row) in enumerate(EVENTS):
            ts = START + after
            if run is None or run.stream != naming.name(stream):
                if run is not None:
                    kernel.feed(run)
                run = EventRun(
                    naming.name(stream), [], [[] for _ in _data(stream, ts, row)], [], [], []
                )
            for column, value in zip(run.columns, _data(stream, ts, row), strict=True):
                column.append(value)
            for column, value in (
                (run.ts, ts),
                (run.offset, offset),
                (run.clock, ts),
                (run.at, 0),
            ):
                column.append(value)
        kernel.feed(run)
        kernel.advance(START + 2000, 0)
        rows = [row for part in kernel.take_columns() for row in part.rows()]
    finally:
        vectors.LEAST_EVENTS = kept
    rows.sort(key=lambda r: r[1:5])
    return [(naming.logical(r[0]), *r[1:]) for r in rows]


def identifiers(title, naming=BASE):
    """Every name in the generated source of an app."""
    app = compiled(title, naming)
    source = compile_kernel(app, Fragment("f", tuple(q.name for q in app.queries))).source
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sorted({t.string for t in tokens if t.type == tokenize.NAME})
