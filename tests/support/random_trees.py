"""Trees at random: every node the parser can make, in every place it can stand."""

from hypothesis import strategies as st

from edgewise.event.types import AttrType
from edgewise.lang.syntax import app as tree
from edgewise.lang.syntax import expr as e
from edgewise.lang.syntax import query as q

words = st.sampled_from(["a", "b1", "Stream", "select", "not", "year", "end", "two words", "$x"])
texts = st.text(alphabet="ab '\n*-/", max_size=5)
durations = st.integers(1, 10**8).map(e.Duration)
prefixes = st.sampled_from(["", "#", "!"])
names = st.builds(q.Name, words, prefixes)
events = st.sampled_from(["current", "expired", "all"])

literals = st.one_of(
    st.builds(e.Literal, st.just(AttrType.INT), st.integers(-(2**31), 2**31 - 1)),
    st.builds(e.Literal, st.just(AttrType.LONG), st.integers(-(2**63), 2**63 - 1)),
    st.builds(
        e.Literal,
        st.sampled_from([AttrType.FLOAT, AttrType.DOUBLE]),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    st.builds(e.Literal, st.just(AttrType.BOOL), st.booleans()),
    st.builds(e.Literal, st.just(AttrType.STRING), texts),
)
stream_refs = st.builds(e.StreamRef, words, prefixes, st.none() | st.integers(-5, 5))
attributes = st.builds(e.AttrRef, words, st.none() | stream_refs)
leaves = st.one_of(literals, durations, attributes)
indexed = st.builds(e.StreamRef, words, prefixes, st.integers(-5, 5))


def calls(inner):
    args = st.lists(inner, max_size=3).map(tuple)
    return st.builds(e.Call, words, args, st.sampled_from(["", "str"]), st.just(False))


def branches(inner):
    terms = st.lists(inner, min_size=2, max_size=4).map(tuple)
    operators = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(e.Not, inner),
        st.builds(e.Binary, operators, inner, inner),
        st.builds(e.Logical, st.sampled_from(["and", "or"]), terms),
        st.builds(e.IsNull, st.one_of(attributes, indexed, calls(inner))),
        st.builds(e.InTable, inner, words),
        calls(inner),
        st.just(e.Call("count", star=True)),
    )


expressions = st.recursive(leaves, branches, max_leaves=8)
handlers = st.lists(
    st.one_of(st.builds(q.Filter, expressions), st.builds(q.StreamFunction, calls(leaves))),
    max_size=2,
).map(tuple)
sources = st.builds(q.Source, names, handlers, st.none() | calls(leaves), st.just(()))
basics = st.builds(q.Source, names, handlers)
sides = st.builds(q.Source, names, handlers, st.none() | calls(leaves), st.just(()), words)
joins = st.builds(
    q.Join,
    sides,
    sides,
    st.sampled_from(["inner", "left", "right", "full"]),
    st.sampled_from(["", "left", "right"]),
    st.none() | expressions,
)
elements = st.builds(q.Element, basics, words)
absents = st.builds(q.Absent, basics, st.none() | durations)
singles = st.one_of(elements, absents)
states = st.one_of(
    singles,
    st.builds(q.Count, elements, st.integers(0, 3), st.none() | st.integers(3, 9)),
    st.builds(q.Both, st.sampled_from(["and", "or"]), singles, singles),
)
chains = st.lists(states, min_size=2, max_size=3).map(lambda found: q.Chain(tuple(found)))
links = st.one_of(states, st.builds(q.Every, st.one_of(states, chains)))
patterns = st.builds(
    q.StateInput,
    st.sampled_from(["pattern", "sequence"]),
    st.lists(links, min_size=2, max_size=3).map(lambda found: q.Chain(tuple(found))),
    st.none() | durations,
)
selections = st.builds(
    q.Selection,
    st.lists(st.builds(q.SelectItem, expressions, words), max_size=3).map(tuple),
    st.lists(attributes, max_size=2).map(tuple),
    st.none() | expressions,
    st.lists(st.builds(q.OrderItem, attributes, st.booleans()), max_size=2).map(tuple),
    st.none() | literals,
    st.none() | literals,
)
rates = st.one_of(
    st.builds(q.Rate, st.sampled_from(["all", "first", "last", "snapshot"]), durations),
    st.builds(q.Rate, st.sampled_from(["all", "first", "last"]), st.none(), st.integers(1, 9)),
)
assignments = st.lists(st.builds(q.Assignment, attributes, expressions), max_size=2).map(tuple)
outputs = st.one_of(
    st.builds(q.Output, st.just("insert"), names, events),
    st.builds(q.Output, st.just("delete"), names, events, st.just(()), st.none() | expressions),
    st.builds(
        q.Output, st.sampled_from(["update", "upsert"]), names, events, assignments, expressions
    ),
    st.builds(q.Output, st.just("return"), st.none(), events),
)
pairs = st.lists(st.tuples(st.sampled_from(["", "a", "b.c", "d-e"]), texts), max_size=2).map(tuple)
plain = st.builds(q.Annotation, st.sampled_from(["info", "sink", "Index"]), pairs)
annotations = st.lists(
    st.builds(
        q.Annotation, st.just("source"), pairs, st.lists(plain, max_size=1).map(tuple)
    ),
    max_size=1,
).map(tuple)  # fmt: skip
simple = st.builds(
    q.Query, annotations, sources, st.none() | selections, st.none() | rates, outputs
)
inner = st.builds(
    q.Source,
    st.builds(
        q.Query,
        st.just(()),
        sources,
        st.none() | selections,
        st.none(),
        st.builds(q.Output, st.just("return"), st.none(), events),
    ),
    handlers,
)
queries = st.builds(
    q.Query,
    annotations,
    st.one_of(sources, joins, patterns, inner),
    st.none() | selections,
    st.none() | rates,
    outputs,
)
ranges = st.lists(st.builds(q.RangeKey, expressions, texts), min_size=1, max_size=2).map(tuple)
partition_keys = st.one_of(
    st.builds(q.PartitionKey, names, expressions),
    st.builds(q.PartitionKey, names, st.none(), ranges),
)
partitions = st.builds(
    q.Partition,
    annotations,
    st.lists(partition_keys, min_size=1, max_size=2).map(tuple),
    st.lists(queries, min_size=1, max_size=2).map(tuple),
)
columns = st.lists(
    st.builds(tree.Column, words, st.sampled_from(AttrType)), min_size=1, max_size=3
).map(tuple)
bare = st.builds(q.Name, words)
definitions = st.one_of(
    st.builds(tree.StreamDefinition, bare, columns, annotations),
    st.builds(tree.TableDefinition, bare, columns, annotations),
    st.builds(tree.WindowDefinition, bare, columns, calls(leaves), events, annotations),
    st.builds(tree.TriggerDefinition, bare, durations, st.just("")),
    st.builds(tree.TriggerDefinition, bare, st.none(), texts),
    st.builds(
        tree.FunctionDefinition,
        bare,
        st.just("python"),
        st.sampled_from(AttrType),
        st.just(" return {1: '}'} "),
    ),
    st.builds(
        tree.AggregationDefinition,
        bare,
        sources,
        st.builds(q.Selection, selections.map(lambda found: found.items)),
        st.sampled_from([("sec",), ("sec", "min"), ("hour", "year")]),
        st.just(False),
        st.none() | attributes,
        annotations,
    ),
)
apps = st.builds(
    tree.App,
    st.just(()),
    st.lists(definitions, min_size=1, max_size=3).map(tuple),
    st.lists(st.one_of(queries, partitions), max_size=2).map(tuple),
)
