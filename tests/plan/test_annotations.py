from edgewise.plan.annotations import Annotation


def test_a_value_without_a_key_has_the_empty_key():
    assert Annotation("info", (("", "x"), ("name", "q"))).get("") == "x"
