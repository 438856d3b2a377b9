"""Kafka as the home of the logs: capture, query and edge meet in topics of a real broker."""

import json

import pytest
from tests.support.program import Program, request, until

from edgewise.log.locations import open_reader

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

START_S_MAX = 120
APP = """
@app:name('sums')
define stream S (k string, v long);

@sink(type='topic', path='sums/{k}', conflate='replace', recovery='precise')
define stream O (k string, total long);

from S select k, sum(v) as total group by k insert into O;
"""


def total(edge):
    status, body = request("GET", f"{edge}/topics/sums/a")
    return json.loads(body)["total"] if status == 200 else 0


def post(door, count):
    events = json.dumps([{"ts": 1000, "data": {"k": "a", "v": 1}}] * count).encode()
    until(lambda: request("POST", door, events)[0] == 200, START_S_MAX)


def rows_of(place):
    reader = open_reader(place)
    try:
        batches = reader.read(reader.earliest(), reader.head().offset)
        return [r for b in batches for r in b.rows.to_pylist() if r["_kind"] != 2]
    finally:
        reader.close()


@pytest.mark.parametrize("engine", ["embedded", pytest.param("spark", marks=pytest.mark.slow)])
def test_events_go_from_the_door_through_kafka_to_the_edge(kafka_broker, tmp_path, engine):
    (tmp_path / "app.siddhi").write_text(APP)
    prefix = f"kafka://{kafka_broker.address}/{engine}"
    out = f"kafka://{kafka_broker.address}/{engine}-results"
    arguments = ["run", str(tmp_path / "app.siddhi"), "--engine", engine, "--master", "local[2]"]
    arguments += ["--data", str(tmp_path / "data"), "--http-port", "0", "--edge-port", "0"]
    arguments += ["--log", prefix, "--log", f"O={out}"]
    sent = 0
    for life in range(2):  # the second one goes on where the first one was
        with Program.start(*arguments, home=tmp_path / "home") as program:
            door = program.wait_for_line(r"(http://\S+/streams/S)", START_S_MAX).group(1)
            edge = program.wait_for_line(r"edge +(http://\S+:\d+)/", START_S_MAX).group(1)
            program.wait_for_line(f"S is in {prefix}-S", 1)
            program.wait_for_line(f"O is in {out}", 1)
            for _ in range(5):
                post(door, 10)
                sent += 10
            until(lambda edge=edge, sent=sent: total(edge) == sent, START_S_MAX)
            if engine == "embedded" and life == 0:
                kafka_broker.kill()
                kafka_broker.start()
                post(door, 10)  # perhaps more than once: at least once is what was asked for
                sent = len(rows_of(f"{prefix}-S"))
                assert sent >= 60
                until(lambda edge=edge, sent=sent: total(edge) == sent, START_S_MAX)
            program.ctrl_c()
            program.all_gone_after_s(START_S_MAX)
    assert len(rows_of(f"{prefix}-S")) == sent
    assert [r["total"] for r in rows_of(out)] == list(range(1, sent + 1))
    local = {p.name for p in (tmp_path / "data" / "log").glob("*")}
    assert not local & {"S", "O"}, "nothing of them in the data directory"
