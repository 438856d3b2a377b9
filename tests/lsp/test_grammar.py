import json
import re

import pytest

from edgewise.lang.tokens import KEYWORDS
from edgewise.lsp.grammar import build_grammar

RULES = build_grammar()["patterns"]


def colour(text):
    """Parts of the text with their scopes, as an editor finds them: first match, first rule."""
    found, at = [], 0
    while at < len(text):
        hits = []
        for order, rule in enumerate(RULES):
            hit = re.compile(rule.get("match") or rule["begin"]).search(text, at)
            if hit and hit.end() > hit.start():
                end = hit.end()
                if "end" in rule:
                    last = re.compile(rule["end"]).search(text, end)
                    end = last.end() if last else len(text)
                hits.append((hit.start(), order, end, rule["name"].removesuffix(".siddhi")))
        if not hits:
            break
        start, _, at, scope = min(hits)
        found.append((text[start:at], scope))
    return found


def test_an_app_is_coloured():
    text = (
        "@info(name='q') from S#window.time(5 min)[v == 1L] select sum(v) as s insert into O; -- x"
    )
    assert colour(text) == [
        ("@info", "entity.name.tag.annotation"), ("=", "keyword.operator"),
        ("'q'", "string.quoted.single"), ("from", "keyword.control"),
        ("#window.time", "support.function.window"), ("5", "constant.numeric"),
        ("min", "constant.numeric.unit"), ("==", "keyword.operator"), ("1L", "constant.numeric"),
        ("select", "keyword.control"), ("sum", "entity.name.function"), ("as", "keyword.control"),
        ("insert", "keyword.control"), ("into", "keyword.control"),
        ("-- x", "comment.line.double-dash"),
    ]  # fmt: skip


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_every_keyword_has_a_colour_in_any_case(word):
    assert colour(f"{word} ") == [(word, colour(f"{word.upper()} ")[0][1])]


def test_comments_and_strings_hide_what_is_inside():
    assert colour("/* from\nselect */ 'from' \"select\"") == [
        ("/* from\nselect */", "comment.block"),
        ("'from'", "string.quoted.single"),
        ('"select"', "string.quoted.double"),
    ]


def test_it_is_json():
    assert json.loads(json.dumps(build_grammar()))["scopeName"] == "source.siddhi"
