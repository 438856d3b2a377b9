from edgewise.lang.syntax.app import App


def test_apps_with_the_same_parts_are_equal():
    assert App((), (), (), (0, 0)) == App((), (), (), (0, 9))
