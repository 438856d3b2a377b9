import subprocess
import sys

import pytest

from edgewise.errors import AppError, SetupError
from edgewise.gateway.connector_types import SINKS, SOURCES
from edgewise.gateway.siddhi_options import explain_unconnected
from edgewise.node.app import load as apps


def test_a_missing_file_is_said_in_one_sentence(tmp_path):
    with pytest.raises(SetupError, match="No such file"):
        apps.load(tmp_path / "none.siddhi")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "a.siddhi").write_bytes(b"define stream \xff")
    with pytest.raises(SetupError, match="UTF-8"):
        apps.load(tmp_path / "a.siddhi")


def test_an_error_names_the_file(tmp_path):
    (tmp_path / "a.siddhi").write_text("define strem S (a int);")
    with pytest.raises(AppError, match=r"a\.siddhi:1:8"):
        apps.load(tmp_path / "a.siddhi")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("define stream `a/b` (v int);", "1:1: error: 'a/b' names a directory"),
        ("define stream S (v int);\nfrom S select v insert into `..`;", "2:6: error: '..' names"),
        ("@app:name('../x') define stream S (v int);", "1:1: error: '../x' names a directory"),
        ("define stream `$faults` (v int);", "1:1: error: '$faults': names that begin with $"),
        (f"define stream {'x' * 300} (v int);", "1:1: error: a name has at most 200 bytes"),
    ],
)
def test_a_name_that_no_directory_can_have_is_refused(tmp_path, text, place):
    (tmp_path / "a.siddhi").write_text(text)
    with pytest.raises(AppError) as found:
        apps.load(tmp_path / "a.siddhi")
    assert place in str(found.value)


def test_a_name_in_any_language_is_a_name(tmp_path):
    text = (
        "define stream `Größe 1` (`数` int); from `Größe 1` select `数` insert into `Übersicht`;"
    )
    (tmp_path / "a.siddhi").write_text(text, encoding="utf-8")
    assert apps.load(tmp_path / "a.siddhi").app.stream("Größe 1")


NEEDED_TO_TALK = (
    *("asyncio", "ssl", "socket", "http.client", "pyarrow", "numpy", "pandas", "pyspark"),
    *("paho", "confluent_kafka", "zmq", "aio_pika", "proton", "sqlalchemy"),
)
EVERY_DOOR = """
@source(type='amqp', url='amqp://h', queue='q', dedup='v')
@source(type='amqp1', url='amqp://h', address='a', dedup='v')
@source(type='cdc', mode='polling', url='jdbc:mysql://h/d', table.name='t', polling.column='v')
@source(type='file', path='/f', @map(type='csv', delimiter=';'))
@source(type='http', path='/s', @map(type='json', @attributes(v='a.b')))
@source(type='http-call-response', sink.id='i', @map(type='json', @attributes(v='trp:v')))
@source(type='inMemory', topic='t')
@source(type='kafka', servers='h:1', topic='t')
@source(type='mqtt', url='mqtts://h', topic='a/+', @map(type='binary', layout='>i'))
@source(type='tcp')
@source(type='websocket', url='ws://h')
@source(type='zeromq', url='tcp://h:1')
define stream S (v int);
@sink(type='amqp', url='amqp://h', exchange='e', @map(type='csv'))
@sink(type='amqp1', url='amqp://h', address='a')
@sink(type='email', address='a@h', to='b@h', subject='{{v}}')
@sink(type='file', path='/f')
@sink(type='http', url='http://h')
@sink(type='http-call', url='http://h', sink.id='i')
@sink(type='inMemory', topic='t')
@sink(type='kafka', servers='h:1', topic='t')
@sink(type='log')
@sink(type='mqtt', url='mqtt://h', topic='b', @map(type='text', template='{{v}}'))
@sink(type='tcp', url='tcp://h:1/c')
@sink(type='websocket', url='ws://h')
@sink(type='zeromq', url='tcp://h:1')
define stream O (v int);
from S insert into O;
"""


def test_a_check_of_every_type_loads_no_client_library(tmp_path):
    assert all(f"@source(type='{kind}'" in EVERY_DOOR for kind in SOURCES)
    assert all(f"@sink(type='{kind}'" in EVERY_DOOR for kind in SINKS)
    file = tmp_path / "a.siddhi"
    file.write_text(EVERY_DOOR)
    code = "import sys; from edgewise.cli import main; main(['check', sys.argv[1]]);"
    code += "print(*[m for m in sys.argv[2:] if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code, str(file), *NEEDED_TO_TALK],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout == f"{file}: ok, 2 streams, 1 queries\n\n", out.stderr


FROM_SIDDHI = """
@source(type='twitter', track='x')
define stream S (v int);
@sink(type='kafka', bootstrap.servers='h:1', topic='t', partition.no='3')
define stream O (v int);
@store(type='influxdb', url='http://h')
define table T (v int);
from S insert into O;
"""


def test_an_app_of_siddhi_is_checked_with_warnings_where_it_is_not_connected(tmp_path):
    file = tmp_path / "a.siddhi"
    file.write_text(FROM_SIDDHI)
    warnings = apps.load(file).warnings
    instead = explain_unconnected("twitter")
    assert all(warning.severity == "warning" for warning in warnings)
    assert [(w.span.line, w.message) for w in sorted(warnings, key=lambda w: w.span.line)] == [
        (2, f"not connected: there is no source of type 'twitter': {instead}"),
        (4, "partition.no='3' has no effect: the key of the record chooses its partition"),
        (
            6,
            (
                "not connected: there is no store of type 'influxdb': known are rdbms; "
                "without @store the table is kept with the state of the app"
            ),
        ),
    ]
