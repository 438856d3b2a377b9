from edgewise.lang import compile_app
from edgewise.plan.rules.rewrite import RULES, rewrite
from edgewise.plan.text import show_input

TEXT = "define stream S (v int); from S[2 > 1]#window.time(1 sec)[v > 2 * 3] insert into O;"


def test_one_rule_prepares_the_next():
    [query] = rewrite(compile_app(TEXT).app).queries
    assert show_input(query.input) == "S[v > 6]#window.time(1 sec)"


def test_rules_change_nothing_the_second_time():
    once = rewrite(compile_app(TEXT).app)
    for rule in RULES:
        assert rule(once) == once
