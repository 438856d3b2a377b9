import operator

import pytest

from edgewise.edge.topics.merges import Merge
from edgewise.errors import SetupError
from edgewise.node.app.topic_options import parse_topic_sink, read_options
from edgewise.plan.nodes import Annotation


def sink(**given):
    return Annotation("sink", tuple(given.items()))


def test_options_have_lower_case_keys_and_no_nameless_values():
    annotation = Annotation("sink", (("Path", "a"), ("", "b")))
    assert read_options(annotation) == {"path": "a"}


def test_a_merge_must_be_known_and_fit_the_recovery():
    assert (
        parse_topic_sink(sink(path="a", conflate="merge(mean)")).policy.conflate == "merge(mean)"
    )
    with pytest.raises(SetupError, match="no merge 'own'"):
        parse_topic_sink(sink(path="a", conflate="merge(own)"))
    own = Merge("own", operator.add, samples=(1, 2))
    assert parse_topic_sink(sink(path="a", conflate="merge(own)"), [own]).path == "a"
    with pytest.raises(SetupError, match="not idempotent"):
        parse_topic_sink(sink(path="a", conflate="merge(own)", recovery="rollback"), [own])


def test_an_unknown_option_is_refused_with_the_nearest_name():
    with pytest.raises(SetupError, match=r"conflat='replace': .* did you mean 'conflate'"):
        parse_topic_sink(sink(path="a", conflat="replace"))
