"""The windows of the kernels and those of `eep` give the same results where they mean the same.

| eep | in a query | where they differ |
|---|---|---|
| `sliding(a, n)` | `length(n)` | a query speaks before n events are in |
| `tumbling(a, n)` | `lengthBatch(n)` | |
| `periodic(a, t, EventTime(..))` | `externalTimeBatch(.., t)` | |
| `monotonic(a, EventTime(..))` | `batch()` over chunks of one moment | a chunk is over at once |
"""

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise import eep
from edgewise.eep import laws
from edgewise.eep.language import DEFINITIONS
from edgewise.engines.embedded import InMemoryEngine
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS, Function

STREAM = "define stream S (t long, v double); "
OWN = {"sum": eep.Sum(), "last": eep.Last(), "max": eep.Max(), "variance": eep.Variance()}
TABLE = FUNCTIONS.with_(
    *(
        Function(f"my:{name}", FUNCTIONS["sum"].takes, FUNCTIONS["avg"].returns, aggregate=True,
                 body=body)
        for name, body in OWN.items()
    )
)  # fmt: skip
# The aggregate of the window, and what computes the same in a query.
PAIRS = {f"my:{name}": body for name, body in OWN.items()} | {
    name: DEFINITIONS[name.lower()] for name in ("sum", "avg", "min", "max", "stdDev", "count")
}
EVENTS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(-800, 800).map(lambda n: n / 8)), max_size=40
)


def in_time(events):
    """Steps of time as times."""
    now, found = 1000, []
    for step, value in events:
        now += step
        found.append((now, value))
    return found


class OfSecond(eep.Aggregate):
    """An aggregate over the values of pairs (time, value)."""

    def __init__(self, inner):
        self.inner, self.invertible = inner, inner.invertible

    def init(self):
        return self.inner.init()

    def accumulate(self, state, value):
        return self.inner.accumulate(state, value[1])

    def compensate(self, state, value):
        return self.inner.compensate(state, value[1])

    def merge(self, earlier, later):
        return self.inner.merge(earlier, later)

    def emit(self, state):
        return self.inner.emit(state)


def rows_of(window, name):
    text = f"{STREAM} from S#window.{window} select {name}(v) as a insert into O;"

    def run(events):
        engine = InMemoryEngine(compile_app(text, functions=TABLE).app)
        for pair in events:
            engine.send("S", pair[0], pair)
        return [event.data[0] for event in engine.take()]

    return run


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=25)
@given(events=EVENTS, n=st.integers(1, 5))
def test_sliding_is_a_length_window_once_it_is_full(name, events, n):
    run = rows_of(f"length({n})", name)
    window = eep.sliding(OfSecond(PAIRS[name]), n)
    laws.windows_agree(window, lambda values: run(values)[n - 1 :], in_time(events))


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=25)
@given(events=EVENTS, n=st.integers(1, 5))
def test_tumbling_is_a_length_batch(name, events, n):
    window = eep.tumbling(OfSecond(PAIRS[name]), n)
    laws.windows_agree(window, rows_of(f"lengthBatch({n})", name), in_time(events))


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=25)
@given(events=EVENTS, span=st.integers(1, 30))
def test_periodic_in_event_time_is_an_external_time_batch(name, events, span):
    clock = eep.EventTime(lambda pair: pair[0])
    window = eep.periodic(OfSecond(PAIRS[name]), span, clock)
    run = rows_of(f"externalTimeBatch(t, {span})", name)
    laws.windows_agree(window, run, in_time(events))


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=25)
@given(events=EVENTS)
def test_monotonic_is_a_batch_of_what_comes_at_one_moment(name, events):
    text = f"{STREAM} from S#window.batch() select {name}(v) as a insert into O;"

    def run(values):
        engine = InMemoryEngine(compile_app(text, functions=TABLE).app)
        for now, chunk in groupby(values, key=lambda pair: pair[0]):
            engine.send_chunk("S", [(now, pair) for pair in chunk])
        return [event.data[0] for event in engine.take()][:-1]  # ours waits for time to move on

    window = eep.monotonic(OfSecond(PAIRS[name]), eep.EventTime(lambda pair: pair[0]))
    laws.windows_agree(window, run, in_time(events))
