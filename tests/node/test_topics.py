import operator

import pytest

from edgewise.edge.merge import Merge
from edgewise.errors import SetupError
from edgewise.node.topics import options, topic_sink
from edgewise.plan.nodes import Annotation


def sink(**given):
    return Annotation("sink", tuple(given.items()))


def test_options_have_lower_case_keys_and_no_nameless_values():
    annotation = Annotation("sink", (("Path", "a"), ("", "b")))
    assert options(annotation) == {"path": "a"}


def test_a_merge_must_be_known_and_fit_the_recovery():
    assert topic_sink(sink(path="a", conflate="merge(mean)")).policy.conflate == "merge(mean)"
    with pytest.raises(SetupError, match="no merge 'own'"):
        topic_sink(sink(path="a", conflate="merge(own)"))
    own = Merge("own", operator.add, samples=(1, 2))
    assert topic_sink(sink(path="a", conflate="merge(own)"), [own]).path == "a"
    with pytest.raises(SetupError, match="not idempotent"):
        topic_sink(sink(path="a", conflate="merge(own)", recovery="rollback"), [own])
