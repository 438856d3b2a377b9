from edgewise.event.types import AttrType
from edgewise.plan.exprs import Const
from edgewise.plan.functions import FUNCTIONS, NUMBER, same, scalar


def test_names_are_found_whatever_their_case():
    assert FUNCTIONS["STDDEV"].name == "stdDev"
    assert "nope" not in FUNCTIONS


def test_every_function_knows_its_type_for_any_legal_arguments():
    for function in FUNCTIONS.values():
        for shape in function.shapes or (function.takes,):
            args = tuple(Const(min(types, key=lambda t: t.value), "int") for types in shape)
            assert isinstance(function.type_of(args), AttrType), function.name


def test_a_new_row_does_not_change_the_old_table():
    mine = scalar("my:f", NUMBER, returns=same, spark="abs")
    assert FUNCTIONS.with_(mine)["my:f"].spark == "abs"
    assert "my:f" not in FUNCTIONS


def test_one_of_the_shapes_must_fit():
    function = FUNCTIONS["str:substr"]
    assert function.fits((AttrType.STRING, AttrType.INT))
    assert function.fits((AttrType.STRING, AttrType.STRING, AttrType.INT))
    assert not function.fits((AttrType.STRING, AttrType.STRING, AttrType.STRING))
    assert (function.least, function.most) == (2, 3)


def test_the_exact_name_comes_before_one_of_another_case():
    assert FUNCTIONS["unitconversion:kgToST"].name == "unitconversion:kgToST"
    assert FUNCTIONS["unitconversion:kgTost"].name == "unitconversion:kgTost"
    assert FUNCTIONS["STR:LENGTH"].name == "str:length"
