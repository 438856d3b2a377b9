from edgewise.errors import AppError, BadEvent, Problem, Span


def test_every_problem_is_shown_with_its_line_and_a_caret():
    text = "define stream S (a int);\nfrom T select a insert into O;"
    error = AppError(
        (Problem(Span(2, 6, 1), "no stream 'T'", hint="did you mean 'S'?"),), text, "app.siddhi"
    )
    assert str(error).splitlines() == [
        "app.siddhi:2:6: error: no stream 'T'",
        "    from T select a insert into O;",
        "         ^",
        "    did you mean 'S'?",
    ]


def test_a_place_outside_the_text_is_still_a_message():
    assert str(AppError((Problem(Span(9, 1), "gone"),), "x")) == "<app>:9:1: error: gone"


def test_a_bad_event_names_its_place_and_field():
    assert str(BadEvent("must be an int", index=3, field="v")) == (
        "event 3, field 'v': must be an int"
    )
