from edgewise.event.types import AttrType
from edgewise.plan.exprs import Const
from edgewise.plan.functions.language import AGGREGATES, SCALARS


def test_sums_are_long_or_double():
    total = next(f for f in AGGREGATES if f.name == "sum")
    assert total.type_of((Const(AttrType.INT, 1),)) is AttrType.LONG
    assert total.type_of((Const(AttrType.FLOAT, 1.0),)) is AttrType.DOUBLE


def test_functions_of_the_language_have_no_namespace():
    assert not [f.name for f in (*AGGREGATES, *SCALARS) if ":" in f.name]
