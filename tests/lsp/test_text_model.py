import random

import pytest

from edgewise.lang import compile_app
from edgewise.lsp.text_model import TextModel

APP = """
define stream Trades (symbol string, price double);
define table Names (symbol string, name string);
from Trades#window.time(1 min) as t join Names as n on t.symbol == n.symbol
select n.name, sum(t.price) as total insert into Totals;
from every e1=Trades[price > 3.0] -> e2=Trades[price > e1.price]
select e1.price as low, str:upper(e2.symbol) as s insert into Pairs;
from Totals select total insert into Out;
"""
MODEL = TextModel(APP, compile_app(APP).app)


def at(text, nth=0):
    offset = -1
    for _ in range(nth + 1):
        offset = APP.index(text, offset + 1)
    return offset + len(text) - 1


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (at("t.pric"), "Trades.price double"),
        (at("n.nam"), "Names.name string"),
        (at("e1.pric"), "Trades.price double"),
        (at("join Name"), "table Names (symbol string, name string)"),
        (at("from Total"), "stream Totals (name string, total double)"),
        (at("select tota"), "Totals.total double"),
        (at("sum"), "sum(number) -> by arguments (aggregate)"),
        (at("str:up"), "str:upper(string) -> string"),
        (at("window.ti"), "#window.time(time int|long)"),
        (at("e1", 0), "e1: stream Trades (symbol string, price double)"),
        (at("select"), ""),
    ],
)
def test_a_word_is_described_with_its_types(place, said):
    assert MODEL.describe(place).split("\n")[0] == said


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (at("join Name"), at("table N")),
        (at("n.nam"), at("string, n")),
        (at("from Total"), at("into T")),
        (at("on t"), at("as t")),
        (at("price > e"), at("every e")),
    ],
)
def test_a_name_is_found_where_it_is_defined(place, found):
    assert MODEL.define(place)[0] == found


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("from ", {"Trades", "Names", "Totals"}, {"select"}),
        ("from Trades as t select t.", {"symbol", "price"}, {"name", "select"}),
        ("from Trades#", {"window.time", "log"}, {"price"}),
        ("from Trades#window.", {"time", "lengthBatch"}, {"window.time"}),
        ("from Trades select str:", {"upper", "length"}, {"str:upper"}),
        ("from Trades select ", {"price", "symbol", "sum"}, {"name"}),
        ("@", {"sink", "source", "info"}, {"select"}),
        ("from e1=Trades -> ", {"Trades"}, {"price"}),
        ("from e1=Trades -> e2=Trades[price > e1.pr", {"price"}, {"Trades"}),
    ],
)
def test_what_may_follow_is_offered(text, wanted, unwanted):
    model = TextModel(APP + text, compile_app(APP).app)
    labels = {found.label for found in model.complete(len(APP + text))}
    assert wanted <= labels
    assert not unwanted & labels


def test_any_broken_text_gets_an_answer():
    dice = random.Random(7)
    for _ in range(60):
        cut = "".join(c for c in APP if dice.random() > 0.08)[: dice.randrange(len(APP))]
        model = TextModel(cut)
        offset = dice.randrange(len(cut) + 1)
        model.describe(offset)
        model.define(offset)
        model.complete(offset)
        list(model.outline())
