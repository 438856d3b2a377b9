"""A grammar fuzzer, bounded and seeded: `python -m tests.lang.fuzz [inputs] [seed]`.

Inputs are pieces of real apps cut, doubled, swapped and spliced, words of the language in any
order, deep nesting, and now and then a megabyte, in turn of every shape there is. Whatever comes
in, a plan that can be explained or an AppError comes out, within a time that grows with the length
and no faster.
"""

import random
import string
import sys
import time

from tests.support.large_texts import SHAPES, megabyte

from edgewise.errors import AppError
from edgewise.lang import compile_app, compile_query, format_app
from edgewise.plan.explain import explain_text

SEED = 20
INPUTS = 1_000_000
BIG_EVERY = 20_000  # one input of a megabyte in so many
REPORT_EVERY = 100_000
EXPLAINED_MAX = 10_000  # characters; the plan of a large app has its own tests
SECONDS_MAX = 2.0  # for an ordinary input
SECONDS_PER_MB_MAX = 90.0  # on a busy machine; ten times that would be no longer linear

SEEDS = [
    "define stream A (k string, v int, p double); define stream B (k string, v int);",
    "@app:name('x') @sink(type='log', @map(type='json', a.b='c')) define stream O (k string);",
    "define table T (k string, v int); define window W (v int) length(3) output expired events;",
    "define trigger X at every 5 sec; define function f[python] return int { return 1 };",
    "define aggregation G from A select k, sum(v) as t group by k aggregate every sec...year;",
    """from A[v > 5 and not (p / 2 >= 1.5e3 or k is null)]#window.time(1 min 30 sec) select k,
    sum(v) as t group by k having t > 1L order by t desc limit 5 output last every 3 events
    insert all events into C;""",
    """from every e1=A[v>1] -> e2=B[k == e1.k]<2:5> -> not A for 1 sec within 5 min select
    e1.k as k, e2[last-1].v as v insert into D;""",
    "from every a=A+, b=B?, c=A* select a[0].v as x insert into E;",
    """from A#window.length(2) as a left outer join B#window.time(1 sec) as b on a.k == b.k
    select a.k, b.v insert into F;""",
    """partition with (k of A, v > 5 as 'x' or v <= 5 as 'y' of B) begin from A insert into #I;
    from #I select str:concat(k, 'x') as y insert into H; end;""",
    "from A select k, v update or insert into T set T.v = T.v + 1 on T.k == k;",
    "from (from A select k, v return)[v > 1] select * insert into K;",
    "from A[T.k == k in T] select ifThenElse(v > 1, 'a', `b c`) as x insert into L;",
    """@purge(enable='true', interval='1 min', idle.period='1 hour') partition with (k of A)
    begin from every a=A[v > 1] -> not B[k == a.k] for 5 sec select a.k as k return; end;""",
    """from A#window.timeBatch(5 sec) select k, avg(p) as m, count() as n, max(v) as x group by k
    having n > 2 order by m desc limit 3 offset 1 output snapshot every 2 sec insert into N;""",
    """@sink(type='topic', path='a/{k}', conflate='replace') define stream P (k string, n long);
    from A#window.session(1 min, k) select k, count() as n group by k insert into P;""",
    """from A[math:round(p) == 1 and str:length(k) > 2 and not (k == 'x')]#log('seen') select
    convert(v, 'double') as d, eventTimestamp() as t, time:extract(1L, 'hour') as h return;""",
    """from every (a=A and b=B) -> c=A or not B for 1 sec select coalesce(a.k, c.k) as k delete
    T on T.k == k;""",
    """from T on k == 'x' select k, v; from G within 1L, 2L per 'days' select k, t;
    select 'a' as k, 1 as v insert into T; delete T on T.v > 1; from W select count() as n;""",
]
ALPHABET = string.printable + "`äß\u2028\0"


def tokens(text):
    return text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")


WORDS = sorted({word for text in SEEDS for word in tokens(text)})


def words(dice):
    return " ".join(dice.choices(WORDS, k=dice.randint(1, 40)))


def spliced(dice):
    """Real apps with a few words dropped, doubled, swapped or replaced."""
    found = tokens(SEEDS[0] + " ".join(dice.sample(SEEDS[1:], dice.randint(1, 2))))
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(found))
        match dice.randrange(4):
            case 0:
                del found[place]
            case 1:
                found.insert(place, found[dice.randrange(len(found))])
            case 2:
                found[place] = dice.choice(WORDS)
            case _:
                other = dice.randrange(len(found))
                found[place], found[other] = found[other], found[place]
        found = found or [""]
    return " ".join(found)


def scratched(dice):
    """Real apps with single characters changed."""
    text = list(SEEDS[0] + dice.choice(SEEDS))
    for _ in range(dice.randint(1, 6)):
        text[dice.randrange(len(text))] = dice.choice(ALPHABET)
    return "".join(text)


def noise(dice):
    return "".join(dice.choices(ALPHABET, k=dice.randint(0, 120)))


def nested(dice):
    """Deep, and now and then very deep."""
    opener = dice.choice(["(", "[", "not ", "f(", "every (", "(from ", "@a(", "-", "{", "a + "])
    closer = dice.choice(["", ")", "]", "}", ") == true"])
    depth = dice.randint(1, 90) if dice.randrange(50) else dice.randint(1_000, 5_000)
    start = SEEDS[0] + "from A[" * dice.randint(0, 1)
    return start + opener * depth + "v > 1" * dice.randint(0, 1) + closer * depth


def big(number):
    """About a megabyte, the next shape each time; in between real apps, spliced."""
    shapes = [*SHAPES, ""]
    shape = shapes[number % len(shapes)]
    if shape:
        return megabyte(shape)
    dice = random.Random(number)
    return "\n".join(spliced(dice) for _ in range(1_500))


MAKERS = (words, spliced, spliced, spliced, scratched, scratched, noise, nested)


def feed(text):
    """One input through every door; only an AppError may come out."""
    started = time.process_time()
    try:
        app = compile_app(text).app
        if len(text) < EXPLAINED_MAX:
            explain_text(app)
        format_app(text)
    except AppError as error:
        assert error.problems
    try:
        compile_query(text[:200], APP)
    except AppError as error:
        assert error.problems
    return time.process_time() - started


APP = compile_app(" ".join(SEEDS[:5])).app


def run(inputs, seed=SEED):
    """Feeds so many inputs; raises with the input at hand where one misbehaves."""
    slowest = 0.0
    for number in range(inputs):
        dice = random.Random(seed * 1_000_003 + number)
        large = number % BIG_EVERY == BIG_EVERY - 1
        text = big(number // BIG_EVERY) if large else dice.choice(MAKERS)(dice)
        try:
            taken = feed(text)
        except Exception as problem:
            message = f"input {number} of seed {seed}: {text[:300]!r}"
            raise AssertionError(message) from problem
        limit = SECONDS_PER_MB_MAX if large else SECONDS_MAX
        assert taken < limit, f"input {number} of seed {seed} took {taken:.1f} s: {text[:200]!r}"
        slowest = max(slowest, taken if not large else 0.0)
        if number % REPORT_EVERY == REPORT_EVERY - 1:
            print(f"{number + 1:,} inputs of seed {seed}", file=sys.stderr, flush=True)
    return slowest


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else INPUTS
    begun = time.perf_counter()
    worst = run(count, int(sys.argv[2]) if len(sys.argv) > 2 else SEED)
    spent = time.perf_counter() - begun
    print(f"{count:,} inputs in {spent:.0f} s, no crash; the slowest took {worst * 1e3:.0f} ms")
