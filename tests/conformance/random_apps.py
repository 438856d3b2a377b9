"""Apps at random, by family, with events for them: what laws and the original are tried with.

Everything comes from the dice given, so that a seed names a case. Times are short (tens of
milliseconds), so that a virtual clock may walk through them. Of a family with a known difference
from the original (`docs/reference/language.md`) only what both understand alike is made.
"""

import re

START = 1_000_000
COLUMNS = "k string, v int, l long, f float, p double, b bool"
HEAD = f"define stream S ({COLUMNS}); define stream T ({COLUMNS}); "
GAPS_MS = (0, 0, 1, 3, 10, 25, 60)
LATE_MS = (0, 0, 0, 0, 5, 20)  # how far an event may be behind the clock
ANYHOW = ("expressions", "sequences")  # late events change nothing in what is alike
KEYS = ("x", "y", "z")
OPTIONAL = ("*", "?", "<:2>")  # counts that nothing may match


FINE = (0.0, 0.1, 1.1, 2.5, -3.3, 1e10)  # values that show how a float is rounded
PLAIN = (0.0, 0.5, 1.25, 2.5, -3.25)  # sums of these are exact, in whatever order they are made


def case(family, dice, count=60):
    """The text of an app, and `(stream, ts, values)` in order of time."""
    text = HEAD + FAMILIES[family](dice)
    late = LATE_MS if family in ANYHOW and " within " not in text else (0,)
    made = events(dice, count, FINE if family == "expressions" else PLAIN, late)
    return text, _apart(made) if family == "joins" else made


def _apart(made):
    """S on even, T on odd milliseconds: what two windows let go never falls together."""
    found, now = [], START
    for stream, ts, values in made:
        now = max(now, ts)
        now += now % 2 != "ST".index(stream)
        found.append((stream, now, values))
    return found


def events(dice, count, floats=PLAIN, late=(0,)):
    now, made = START, []
    for _ in range(count):
        now += dice.choice(GAPS_MS)
        ts = max(START, now - dice.choice(late))
        made.append((dice.choice("SST"), ts, row(dice, floats)))
    return made


def row(dice, floats):
    def may(value):
        return None if dice.random() < 0.08 else value

    return [
        may(dice.choice(KEYS)),
        may(dice.randint(-3, 9)),
        may(dice.choice([0, 1, 5, -7, 2**40, 2**31])),
        may(dice.choice(floats)),
        may(dice.choice(floats)),
        may(dice.random() < 0.5),
    ]


_RANK = ("int", "long", "float", "double")
_FIELDS = {"v": "int", "l": "long", "f": "float", "p": "double"}
_CONSTS = {"2": "int", "0": "int", "3L": "long", "0.5f": "float", "1.5": "double", "1.1f": "float"}


def number(dice, depth=2, slot=""):
    """The text of an expression and its type."""
    roll = dice.random()
    if depth == 0 or roll < 0.25:
        if dice.random() < 0.3:
            return dice.choice(list(_CONSTS.items()))
        name = dice.choice(list(_FIELDS))
        return slot + name, _FIELDS[name]
    left, a = number(dice, depth - 1, slot)
    if roll < 0.75:
        right, b = number(dice, depth - 1, slot)
        kind = max(a, b, key=_RANK.index)
        return f"({left} {dice.choice('+-*/%')} {right})", kind
    if roll < 0.83:
        kind = dice.choice(_RANK)
        return f"convert({left}, '{kind}')", kind
    if roll < 0.9:
        return f"ifThenElse({condition(dice, depth - 1, slot)}, {left}, {left})", a
    if roll < 0.95:
        return f"coalesce({left}, {left})", a
    return f"{dice.choice(['maximum', 'minimum'])}(v, 3)", "int"


def condition(dice, depth=1, slot=""):
    roll = dice.random()
    if depth > 0 and roll < 0.35:
        joint = dice.choice(["and", "or"])
        left, right = condition(dice, depth - 1, slot), condition(dice, depth - 1, slot)
        return f"({left} {joint} {right})"
    if depth > 0 and roll < 0.45:
        return f"(not ({condition(dice, depth - 1, slot)}))"
    if roll < 0.55:
        return f"{slot}k {dice.choice(['==', '!='])} '{dice.choice(KEYS)}'"
    if roll < 0.62:
        return f"{slot}{dice.choice('kvlfpb')} is null"
    if roll < 0.68:
        return f"{slot}b == {dice.choice(['true', 'false'])}"
    left, _ = number(dice, 1, slot)
    right, _ = number(dice, 0, slot)
    return f"{left} {dice.choice(['<', '<=', '>', '>=', '==', '!='])} {right}"


def maybe(dice, text, chance=0.5):
    return text if dice.random() < chance else ""


def filtered(dice, chance=0.4):
    return maybe(dice, f"[{condition(dice)}]", chance)


AGGREGATES = (
    "count()", "sum(v)", "sum(l)", "sum(f)", "sum(p)", "avg(v)", "avg(f)", "avg(p)",
    "distinctCount(k)", "minForever(v)", "maxForever(p)", "and(default(b, true))",
    "or(default(b, false))", "sum(v * 2)", "avg(f + 1.5f)",
)  # fmt: skip
EXTREMES = ("min(v)", "max(f)", "min(p)", "max(l)")
IN_TURN = re.compile(r"(length|time|timeLength|externalTime)\(")


def in_turn(window):
    """Rows leave it in the order they came, and no app here asks for its min or max.

    The original forgets a value that is still inside when an equal one leaves before it.
    """
    return IN_TURN.match(window.removeprefix("#window."))


def aggregate(dice, window=""):
    return dice.choice(AGGREGATES if in_turn(window) else AGGREGATES + EXTREMES)


SLIDING = ("length(3)", "length(1)", "time(40)", "timeLength(40, 2)", "externalTime(t, 40)",
           "sort(2, v)", "sort(3, p, 'desc')")  # fmt: skip
BATCHED = ("lengthBatch(3)", "lengthBatch(2, true)", "timeBatch(50)", "timeBatch(40, 0)",
           "batch()", "externalTimeBatch(t, 50)", "externalTimeBatch(t, 40, 0)")  # fmt: skip
WINDOWS = (*SLIDING, *BATCHED, "delay(30)", "session(30 millisec)", "session(25 millisec, k)",
           "expression('count() <= 3')", "expressionBatch('count() <= 2')",
           "expression('sum(v) < 12')", "frequent(2, k)")  # fmt: skip


def kinds(dice):
    return dice.choice(["", "", "all events ", "expired events "])


def expressions(dice):
    items = ", ".join(f"{number(dice, 3)[0]} as c{n}" for n in range(3))
    picked = f"k, {items}, {condition(dice)} as d"
    return f"@info(name='q') from S{filtered(dice)} select {picked} insert into O;"


def windows(dice):
    window = dice.choice(WINDOWS)
    source = "S"
    before = ""
    if "(t," in window:
        before = "from S select k, v, l, f, p, b, eventTimestamp() as t insert into U; "
        source = "U"
    if window.startswith(("sort", "expression('sum")):
        before = "from S[not (v is null or p is null)] select * insert into U; "
        source = "U"
    picked = dice.random()
    if picked < 0.25:
        items, group, having = "k, v", "", ""
    else:
        items = f"k, {aggregate(dice, window)} as a, {aggregate(dice, window)} as c"
        group = maybe(dice, "group by k ")
        having = maybe(dice, "having not (a is null) ", 0.2)
    after = "" if "atch" in window else maybe(dice, f"[{condition(dice, 0)}]", 0.15)
    return (
        f"{before}@info(name='q') from {source}{filtered(dice, 0.25)}#window.{window}{after} "
        f"select {items} {group}{having}insert {kinds(dice)}into O;"
    )


JOINED = ("length(2)", "length(1)", "time(50)", "timeLength(60, 2)", "lengthBatch(2)", "batch()",
          "timeBatch(50)", "lengthBatch(2, true)", "session(30 millisec)", "delay(30)",
          "expression('count() <= 2')")  # fmt: skip


def joins(dice):
    left, right = dice.choice(JOINED), dice.choice(JOINED)
    how = dice.choice(["join", "left outer join", "right outer join", "full outer join"])
    one_way = dice.choice(["", "", "unidirectional "])
    on = dice.choice(["on a.k == b.k ", "on a.v < b.v ", "on a.k == b.k and a.p <= b.p ", ""])
    other = "S" if "ength(" in left[:7] and "ength(" in right[:7] and dice.random() < 0.4 else "T"
    picked, group = "a.k as ak, b.v as bv, a.p as ap, b.f as bf", ""
    if how == "join" and not one_way:
        picked = dice.choice([picked, "a.k as ak, count() as n, sum(b.v) as s"])
        group = maybe(dice, "group by a.k ") if "count" in picked else ""
    return (
        f"@info(name='q') from S{filtered(dice, 0.2)}#window.{left} as a {one_way}{how} "
        f"{other}#window.{right} as b {on}select {picked} {group}insert {kinds(dice)}into O;"
    )


def link(dice, names):
    """A filter of an element that may look back."""
    options = ["", f"[v > {dice.randint(0, 4)}]", f"[k == '{dice.choice(KEYS)}']"]
    if names:
        back = dice.choice(names)
        options += [f"[k == {back}.k]", f"[v > {back}.v]", f"[p != {back}.p]"]
    return dice.choice(options)


def chain(dice, joint):
    """Elements of a pattern or sequence: texts, and the items one may select."""
    texts, items, names = [], [], []
    sequence = joint == ", "
    size = dice.randint(2, 3)
    streams = "S" if sequence and dice.random() < 0.9 else "SST"
    for n in range(size):
        name, stream = f"e{n}", dice.choice(streams)
        count = ""
        if dice.random() < (0.1 if sequence and n == size - 1 else 0.3):
            some = (
                ["+", "*", "?", "<2>", "<1:2>"] if sequence else ["<2>", "<1:3>", "<2:>", "<:2>"]
            )
            some = [c for c in some if c not in OPTIONAL or 0 < n < size - 1]
            count = dice.choice(some)
        back = "" if sequence and dice.random() < 0.7 else link(dice, names)
        texts.append(f"{name}={stream}{back}{count}")
        if count:
            items += [f"{name}[0].v as v{n}a", f"{name}[1].v as v{n}b", f"{name}[last].k as k{n}"]
        else:
            items += [f"{name}.v as v{n}", f"{name}.k as k{n}"]
            names.append(name)
    return texts, items


def patterns(dice):
    texts, items = chain(dice, " -> ")
    within = maybe(dice, " within 70 millisec")
    text = " -> ".join(texts)
    form = dice.choice(["every {}", "every ({})", "{}", "every {}"])
    source = form.format(text) + within
    return f"@info(name='q') from {source} select {', '.join(items)} insert into O;"


def sequences(dice):
    texts, items = chain(dice, ", ")
    within = maybe(dice, " within 70 millisec", 0.3)
    every = maybe(dice, "every ", 0.93)
    source = every + ", ".join(texts) + within
    return f"@info(name='q') from {source} select {', '.join(items)} insert into O;"


def logical(dice):
    both = dice.choice(["and", "or"])
    left, right = f"e1=S{link(dice, [])}", f"e2=T{link(dice, [])}"
    every = maybe(dice, "every ", 0.7)
    within = maybe(dice, " within 70 millisec", 0.3)
    last = dice.choice([f"-> e3=S{link(dice, [])}", ""])
    picked = "e0.v as v0, e1.v as v1, e2.v as v2" + (", e3.v as v3" if last else "")
    return (
        f"@info(name='q') from {every}e0=S[v > 2] -> {left} {both} {right} {last}{within} "
        f"select {picked} insert into O;"
    )


def absence(dice):
    every = maybe(dice, "every ", 0.8)
    absent = f"not T{link(dice, [])} for {dice.choice([10, 30, 60])} millisec"
    form = dice.choice([
        f"{every}e1=S{link(dice, [])} -> {absent}",
        f"{absent} -> e1=S{link(dice, [])}",
        f"{every}e1=S{link(dice, [])} -> not T{link(dice, [])} and e2=S[v > 5]",
        f"{every}e1=S[v > 3] -> {absent} -> e2=S[v < 3]",
    ])  # fmt: skip
    picked = "e1.v as a, e2.v as c" if "e2=" in form else "e1.v as a, e1.k as k"
    return f"@info(name='q') from {form} select {picked} insert into O;"


def partitions(dice):
    window = dice.choice(("", "#window.length(2)", "#window.lengthBatch(2)", "#window.time(40)"))
    plain = (
        f"from S{filtered(dice, 0.3)}{window} select k, {aggregate(dice, window)} as a "
        f"insert {kinds(dice) if window else ''}into O;"
    )
    texts, items = chain(dice, " -> ")
    pattern = f"from every {' -> '.join(texts)} select {', '.join(items)} insert into O;"
    inner = """from S select k, v, sum(v) as s insert into #I;
    from #I[s > 3]#window.lengthBatch(2) select k, max(s) as m insert into O;"""
    body = dice.choice([plain, plain, pattern, inner])
    keys = "k of S, k of T"
    if dice.random() < 0.25 and body is not pattern:
        keys = "v > 4 as 'big' or v > 2 as 'some' of S, k of T"
    return f"partition with ({keys}) begin {body} end;"


def ratelimits(dice):
    which = dice.choice(["all ", "first ", "last ", ""])
    rate = f"output {which}every {dice.randint(2, 4)} events"
    if dice.random() < 0.2:
        rate = "output first every 50 millisec"
    window = maybe(
        dice, f"#window.{dice.choice(['length(2)', 'lengthBatch(2)', 'time(40)'])}", 0.6
    )
    group = maybe(dice, "group by k ")
    return (
        f"@info(name='q') from S{window} select k, sum(v) as s {group}{rate} "
        f"insert {kinds(dice) if window else ''}into O;"
    )


def tables(dice):
    write = dice.choice([
        "from S[not (k is null)] select k, v update or insert into R set R.v = v on R.k == k;",
        "from S[not (k is null)] select k, v insert into R;",
        "from S[not (k is null)] select k, v update or insert into R on R.k == k;",
    ])  # fmt: skip
    change = dice.choice([
        "from T[v > 6] delete R on R.k == k;",
        "from T[v > 3] select k, v update R set R.v = v + 1 on R.k == k;",
        "",
    ])  # fmt: skip
    read = dice.choice([
        "from T[k == R.k in R] select k, v insert into O;",
        "from T join R on T.k == R.k select T.k as k, R.v as rv, T.v as tv insert into O;",
        "from T left outer join R on T.k == R.k select T.k as k, R.v as rv insert into O;",
    ])  # fmt: skip
    key = "@PrimaryKey('k') "
    return f"{key}define table R (k string, v int); {write} {change} @info(name='q') {read}"


def ordered(dice):
    """Order, limit and offset act inside one chunk: batches show them."""
    window = dice.choice(["lengthBatch(4)", "timeBatch(60)", "lengthBatch(3)"])
    items, group = "k, v, p", ""
    if dice.random() < 0.5:
        items, group = "k, sum(v) as v, count() as p", "group by k "
    order = "order by " + dice.choice(["v", "v desc", "k, v", "p desc, v", "k desc"]) + " "
    limit = maybe(dice, f"limit {dice.randint(1, 3)} ") + maybe(dice, "offset 1 ", 0.3)
    return (
        f"@info(name='q') from S[not (v is null or k is null or p is null)]#window.{window} "
        f"select {items} {group}{maybe(dice, order, 0.8)}{limit}insert into O;"
    )


def chained(dice):
    """What one query makes another reads, depth first."""
    first = dice.choice(["", "#window.length(2)", "#window.lengthBatch(2)"])
    second = dice.choice(["#window.length(3)", "#window.time(40)", "#window.lengthBatch(2)"])
    picked = dice.choice(["sum(s)" if in_turn(second) else "max(s)", "count()"])
    return (
        f"from S{filtered(dice)}{first} select k, sum(v) as s insert into M; "
        f"from T select k, convert(v, 'long') as s insert into M; "
        f"from M[s > 2] select k, s insert into N; "
        f"@info(name='q') from M{second} select k, {picked} as a insert {kinds(dice)}into O;"
    )


def named_windows(dice):
    window = dice.choice(["length(2)", "time(40)", "lengthBatch(2)", "timeBatch(50)"])
    output = dice.choice(["", " output all events", " output current events"])
    output = output if "atch" not in window else ""  # joined, it would never empty
    read = dice.choice([
        "from W select k, sum(v) as s group by k insert all events into O;",
        "from W[v > 2] select k, v insert into O;",
        "from T join W on T.k == W.k select T.v as a, W.v as c insert into O;",
    ])  # fmt: skip
    return (
        f"define window W (k string, v int) {window}{output}; "
        f"from S select k, v insert into W; @info(name='q') {read}"
    )


FAMILIES = {
    "expressions": expressions,
    "windows": windows,
    "joins": joins,
    "patterns": patterns,
    "sequences": sequences,
    "logical": logical,
    "absence": absence,
    "partitions": partitions,
    "ratelimits": ratelimits,
    "tables": tables,
    "named_windows": named_windows,
    "ordered": ordered,
    "chained": chained,
}
