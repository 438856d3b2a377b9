import pickle

from edgewise.plan.scripts import Script


def test_a_script_is_called_with_its_arguments_in_data():
    script = Script("f", "\n    x = data[0]\n    return x + len(data)\n")
    assert script(1, 2) == 3


def test_a_script_travels():
    script = Script("f", "return data[0]")
    assert script(1) == 1
    assert pickle.loads(pickle.dumps(script))(2) == 2
