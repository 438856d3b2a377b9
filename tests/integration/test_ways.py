"""MQTT and a file in, a file and MQTT out: one app, a real broker, the program as it is run."""

import json

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from tests.support.brokers import mosquitto
from tests.support.program import Program, request, until

from edgewise.log.segment_reader import SegmentReader
from edgewise.node.data_dir import DataDirectory

APP = """
@source(type='mqtt', url='mqtt://127.0.0.1:{port}', topic='in/+')
@source(type='file', path='{home}/in.csv', @map(type='csv'))
define stream Readings (sensor string, value int);

@sink(type='file', path='{home}/out.csv', @map(type='csv'))
@sink(type='mqtt', url='mqtt://127.0.0.1:{port}', topic='out/{{{{sensor}}}}')
define stream Alerts (sensor string, value int);

from Readings[value > 10] select sensor, value insert into Alerts;
"""
ONCE = """
@source(type='mqtt', url='mqtt://127.0.0.1:{port}', topic='in/+', dedup='id',
        delivery='effectively-once')
define stream S (id string, v int);
define stream O (v int);
from S select v insert into O;
"""
WAIT_S = 60
AGAIN = b'duplicates_total{connector="mqtt to S",stream="S"} 40'


@pytest.mark.integration
def test_events_of_every_way_in_reach_every_way_out(tmp_path):
    got = []
    out = tmp_path / "out.csv"
    (tmp_path / "in.csv").write_text("file,1\nfile,11\n")
    with mosquitto(tmp_path) as broker:
        app = tmp_path / "app.siddhi"
        app.write_text(APP.format(port=broker.port, home=tmp_path))
        peer = paho.Client(CallbackAPIVersion.VERSION2)
        peer.on_message = lambda _c, _u, m: got.append((m.topic, json.loads(m.payload)["value"]))
        peer.connect("127.0.0.1", broker.port)
        peer.subscribe("out/#", 1)
        peer.loop_start()
        arguments = ["run", str(app), "--engine", "embedded", "--data", str(tmp_path / "data")]
        arguments += ["--http-port", "0", "--edge-port", "0"]
        with Program.start(*arguments, home=tmp_path / "home"):
            until(lambda: ("out/file", 11) in got, WAIT_S)
            for value in (5, 50):
                body = json.dumps({"sensor": "mqtt", "value": value})
                peer.publish("in/a", body, 1).wait_for_publish(10)
            until(lambda: ("out/mqtt", 50) in got, WAIT_S)
            until(lambda: "mqtt,50" in out.read_text(), WAIT_S)
        peer.disconnect()
        peer.loop_stop()
    assert out.read_text() == "sensor,value\nfile,11\nmqtt,50\n"


@pytest.mark.integration
def test_an_event_sent_again_by_any_way_after_a_restart_is_in_the_log_once(tmp_path):
    data, app = tmp_path / "data", tmp_path / "app.siddhi"
    arguments = ["run", str(app), "--engine", "embedded", "--data", str(data)]
    arguments += ["--http-port", "0", "--edge-port", "0"]
    events = [json.dumps({"id": f"e{n}", "v": n}).encode() for n in range(20)]
    with mosquitto(tmp_path) as broker:
        app.write_text(ONCE.format(port=broker.port))
        peer = paho.Client(CallbackAPIVersion.VERSION2)
        peer.connect("127.0.0.1", broker.port)
        peer.loop_start()
        for life in range(2):
            with Program.start(*arguments, home=tmp_path / "home") as program:
                door = program.wait_for_line(r"(http://\S+/streams/S)", WAIT_S).group(1)
                program.wait_for_line(rf"S by id: {20 * life} ids read from its log", WAIT_S)
                program.wait_for_line(r"source +mqtt to S", WAIT_S)
                for event in (*events, *events):
                    peer.publish("in/a", event, 1).wait_for_publish(10)
                status, body = request("POST", door, b"[" + b",".join(events) + b"]")
                answer = json.loads(body)
                assert (status, answer["accepted"]) == (200, 20), body
                if life:
                    assert answer["duplicates"] == 20
                    page = door.replace("/streams/S", "/metrics")
                    until(lambda page=page: AGAIN in request("GET", page)[1], WAIT_S)
                program.ctrl_c()
                program.all_gone_after_s(WAIT_S)
        peer.disconnect()
        peer.loop_stop()
    reader = SegmentReader.open(DataDirectory(data).log_directory("S"))
    rows = [r for b in reader.read(0, reader.head().offset) for r in b.rows.to_pylist()]
    reader.close()
    assert sorted(r["v"] for r in rows if r["id"]) == list(range(20))
