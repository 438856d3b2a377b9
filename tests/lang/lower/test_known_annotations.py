"""Annotations that are misspelt, unknown or misplaced are reported, never ignored in silence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import AppError
from edgewise.lang.compiler import compile_app
from edgewise.lang.lower.known_annotations import STREAM, TARGETS

STREAM_S = "define stream S (a int);"
QUERY = "from S select a insert into O;"


def problems(text):
    with pytest.raises(AppError) as refused:
        compile_app(text)
    return [(p.message, p.hint) for p in refused.value.problems]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("@sinc(type='log') define stream S (a int);", "no annotation '@sinc'", "'@sink'"),
        ("@soruce(type='http') define stream S (a int);", "'@soruce'", "'@source'"),
        ("define stream S (a int); @inof(name='q')", "'@inof'", "'@info'"),
        ("@app:nmae('x') define stream S (a int);", "'@app:nmae'", "'@app:name'"),
        (f"{STREAM_S} @PrimryKey('k') define table T (k int);", "'@PrimryKey'", "'@PrimaryKey'"),
        (f"{STREAM_S} @sink(type='log')", "no effect on a query", "front of a stream"),
        ("@map(type='json') define stream S (a int);", "no effect", "inside @source(...)"),
    ],
)  # fmt: skip
def test_a_misspelt_or_misplaced_annotation_is_an_error_with_its_fix(text, message, hint):
    [(found, fix)] = problems(f"{text} {QUERY}")
    assert message in found
    assert hint in fix


@pytest.mark.parametrize(
    "text",
    [
        "@Foo('x') define stream S (a int);",
        "@info(name='q') define stream S (a int);",
        f"{STREAM_S} partition with (a of S) begin @Foo {QUERY} end;",
    ],
)
def test_an_annotation_that_siddhi_would_ignore_is_a_warning(text):
    text = text if "partition" in text else f"{text} {QUERY}"
    [warning] = compile_app(text).warnings[:1]
    assert "no effect" in warning.message


@given(st.sampled_from(sorted(name for name, at in TARGETS.items() if STREAM in at)), st.data())
def test_a_known_annotation_in_any_case_is_never_called_unknown(name, data):
    spelled = "".join(data.draw(st.sampled_from([c.lower(), c.upper()])) for c in name)
    text = f"@{spelled}(type='log') define stream S (a int); {QUERY}"
    try:
        told = compile_app(text).warnings
    except AppError as refused:
        told = refused.problems
    assert not [p for p in told if "no annotation" in p.message or "not known" in p.message]
