from edgewise.kernel.codegen.code_writer import CodeWriter, comment_text, tuple_text


def test_blocks_indent_and_an_empty_one_passes():
    writer = CodeWriter()
    with writer.block("if x"):
        with writer.block("for y in z"):
            pass
        writer.line("done()")
    assert writer.text() == "if x:\n    for y in z:\n        pass\n    done()\n"


def test_an_assignment_of_nothing_is_no_line():
    writer = CodeWriter()
    writer.assign([], [])
    writer.assign(["x", "y"], ["1", "2"])
    assert writer.lines == ["x, y = 1, 2"]


def test_a_tuple_of_one_is_a_tuple():
    assert eval(tuple_text([])) == ()
    assert eval(tuple_text(["1"])) == (1,)
    assert eval(tuple_text(["1", "2"])) == (1, 2)


def test_a_comment_stays_on_its_line():
    text = comment_text("a\rb\nc\x0cd")
    assert compile(text, "<comment>", "exec").co_names == ()
    assert len(text.splitlines()) == 1


def test_an_object_is_bound_once_under_one_name():
    writer = CodeWriter()
    first, again = writer.bind(1, "f", len), writer.bind(1, "f", len)
    other = writer.bind(2, "f", max)
    assert first == again != other
    assert writer.bound == {first: len, other: max}
