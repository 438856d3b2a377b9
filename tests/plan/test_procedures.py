import pytest

from edgewise.event.schema import Attribute
from edgewise.event.types import AttrType
from edgewise.plan.procedures import Procedure


class Twice(Procedure):
    name = "my:twice"
    appends = {"w": "long"}  # noqa: RUF012

    def process(self, event, state):
        state["seen"] = True
        return {"w": 2 * event["v"]}


def test_what_a_procedure_adds_is_typed():
    assert Twice.adds() == (Attribute("w", AttrType.LONG),)
    assert Twice().process({"v": 2}, {}) == {"w": 4}


def test_a_procedure_must_say_what_it_does():
    with pytest.raises(NotImplementedError):
        Procedure().process({}, {})
