from edgewise.event.types import AttrType
from edgewise.plan.exprs import Const
from edgewise.plan.functions import FUNCTIONS, NUMBER, same, scalar


def test_names_are_found_whatever_their_case():
    assert FUNCTIONS["STDDEV"].name == "stdDev"
    assert "nope" not in FUNCTIONS


def test_every_function_knows_its_type_for_any_legal_arguments():
    for function in FUNCTIONS.values():
        args = tuple(Const(min(types, key=lambda t: t.value), "int") for types in function.takes)
        assert isinstance(function.type_of(args), AttrType), function.name


def test_a_new_row_does_not_change_the_old_table():
    mine = scalar("my:f", NUMBER, returns=same, spark="abs")
    assert FUNCTIONS.with_(mine)["my:f"].spark == "abs"
    assert "my:f" not in FUNCTIONS
