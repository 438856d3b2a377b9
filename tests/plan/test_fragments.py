from edgewise.plan.fragments import Fragment


def test_a_fragment_without_keys_is_one_task():
    assert not Fragment("f", ("q",)).keyed
    assert Fragment("f", ("q",), keys=(("S", ("ip",)),)).key_of("S") == ("ip",)
