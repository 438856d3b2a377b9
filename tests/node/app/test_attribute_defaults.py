import pytest

from edgewise.errors import LogError
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.lang import compile_app
from edgewise.log.api import DEFAULTS
from edgewise.log.locations import open_reader, open_writer
from edgewise.node.app.attribute_defaults import find_default_errors, read_defaults

QUERY = "define stream O (ip string);\nfrom S select ip insert into O;\n"
OLD = "define stream S (ip string);\n"
NEW = "define stream S (ip string, city string, level int, share double, known bool);\n"
SAID = "@default(city='unknown', level='-1', share='0.5', known='false')\n"


def stream_of(text):
    return next(s for s in compile_app(text + QUERY).app.streams if s.name == "S")


def test_words_become_values_of_the_attributes():
    assert read_defaults(stream_of(SAID + NEW)) == {
        "city": "unknown",
        "level": -1,
        "share": 0.5,
        "known": False,
    }
    assert read_defaults(stream_of("@default(level='null')\n" + NEW)) == {"level": None}
    assert read_defaults(stream_of(NEW)) == {}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("@default(town='x')", "S has no attribute 'town'"),
        ("@default(level='many')", "level='many' is not a valid int"),
        ("@default(level='9999999999')", "level='9999999999' is not a valid int"),
        ("@default(known='0')", "known='0' is not a valid bool"),
        ("@default(share='half')", "share='half' is not a valid double"),
    ],
)
def test_what_no_attribute_can_have_is_found_with_its_place(said, words):
    text = f"{said}\n{NEW}{QUERY}"
    [problem] = find_default_errors(compile_app(text).app, text)
    assert words in problem.message
    assert (problem.span.line, problem.span.column) == (1, 1)


def test_a_log_takes_an_attribute_that_an_app_gave_a_default(tmp_path):
    place = str(tmp_path / "S")
    old, new = stream_of(OLD), stream_of(SAID + NEW)
    writer = open_writer(place, old.schema)
    writer.append(record_batch(to_arrow(old.schema), [1], [1], [0], [["a"]]))
    writer.close()
    with pytest.raises(LogError, match=r"@default\(city='...'\) before the stream"):
        open_writer(place, new.schema)
    open_writer(place, new.schema, DEFAULTS, defaults=read_defaults(new)).close()
    open_writer(place, new.schema).close()  # the log knows it now
    reader = open_reader(place)
    [batch] = reader.read(0, 1)
    reader.close()
    assert batch.rows.to_pylist()[0] | {"_ts": 0, "_at": 0} == {
        "_ts": 0, "_at": 0, "_kind": 0,
        "ip": "a", "city": "unknown", "level": -1, "share": 0.5, "known": False,
    }  # fmt: skip
