"""The examples of docs/how-to/connect as a person runs them, each against the real other side.

The stream that comes in goes out by the page's own sink; only addresses are put in place.
"""

import asyncio
import io
import json
import logging
import re
import struct
import threading
import tomllib
import urllib.request
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import aio_pika
import fastavro
import paho.mqtt.client as paho
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zmq
from confluent_kafka import Consumer, Producer
from paho.mqtt.enums import CallbackAPIVersion
from tests.support.brokers import free_port, mosquitto, tls_listener
from tests.support.program import ROOT, Program, until
from websockets.sync.client import connect

from edgewise.gateway.logging_handler import EdgewiseHandler

TOPIC = aio_pika.ExchangeType.TOPIC
WAIT_S = 60
DOCS = ROOT / "docs"
PAGES = {
    "maps": DOCS / "reference" / "payloads.md",
    "own": DOCS / "how-to" / "extend" / "source-or-sink-plugin.md",
}


def example(page, number=0, language="sql"):
    path = PAGES.get(page, DOCS / "how-to" / "connect" / f"{page}.md")
    text = path.read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[number]


@contextmanager
def running(home: Path, text: str, query: str):
    """The app of a page; answers the address of its HTTP door."""
    app = home / "app.siddhi"
    app.write_text(f"{text}\n{query}\n")
    arguments = ["run", str(app), "--engine", "embedded", "--data", str(home / "data")]
    arguments += ["--http-port", "0", "--edge-port", "0"]
    with Program.start(*arguments, home=home / "home") as program:
        door = program.wait_for_line(r"ingest +(http://\S+?)/streams", WAIT_S)[1]
        program.wait_for_line("engine running", WAIT_S)
        yield door


LOGINS = "from login_stream select ip, 3L as loginCount insert into alerts;"
EVENT = b'{"ip": "10.0.0.1", "cityId": "c1"}'
ALERT = {"ip": "10.0.0.1", "loginCount": 3}


@pytest.mark.integration
def test_mqtt(tmp_path):
    got = []
    tls, extra = tls_listener(tmp_path)
    with mosquitto(tmp_path, *extra) as broker:
        text = example("mqtt").replace("127.0.0.1:1883", f"127.0.0.1:{broker.port}")
        text = text.replace("broker:8883", f"localhost:{tls}")
        text = text.replace("/etc/ssl/broker.pem", str(tmp_path / "cert"))
        peer = paho.Client(CallbackAPIVersion.VERSION2)
        peer.on_message = lambda _c, _u, m: got.append((m.topic, json.loads(m.payload)))
        peer.connect("127.0.0.1", broker.port)
        peer.subscribe("alerts/#", 1)
        peer.loop_start()
        with running(tmp_path, text, LOGINS):
            peer.publish("logins/a", EVENT, 1).wait_for_publish(WAIT_S)
            until(lambda: got == [("alerts/10.0.0.1", ALERT)], WAIT_S)
        peer.disconnect()
        peer.loop_stop()


@pytest.mark.integration
@pytest.mark.timeout(240)
def test_kafka(tmp_path, kafka_broker):
    producer = Producer({"bootstrap.servers": kafka_broker.address})
    producer.produce("logins", EVENT)
    assert producer.flush(WAIT_S) == 0
    text = example("kafka").replace("127.0.0.1:9092", kafka_broker.address)
    with running(tmp_path, text, LOGINS):
        settings = {"group.id": "g", "auto.offset.reset": "earliest"}
        peer = Consumer({"bootstrap.servers": kafka_broker.address, **settings})
        peer.subscribe(["alerts"])
        found = []

        def arrived():
            message = peer.poll(0.2)
            if message is not None and message.error() is None:
                found.append((message.key(), json.loads(message.value())))
            return bool(found)

        until(arrived, WAIT_S)
        peer.close()
    assert found == [(b"10.0.0.1", ALERT)]


async def ask_rabbit(url, exchange, key):
    """Sends the event and waits for its alert."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        alerts = await channel.declare_exchange("alerts", TOPIC, durable=True)
        watch = await channel.declare_queue("watch", exclusive=True)
        await watch.bind(alerts, "alert.#")
        place = await channel.get_exchange(exchange) if exchange else channel.default_exchange
        await place.publish(aio_pika.Message(EVENT), key)
        async with watch.iterator(timeout=WAIT_S, no_ack=True) as messages:
            message = await anext(aiter(messages))
            return message.routing_key, json.loads(message.body)


async def prepare_rabbit(url):
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        await channel.declare_queue("logins", durable=True)
        await channel.declare_exchange("alerts", TOPIC, durable=True)


@pytest.mark.integration
@pytest.mark.timeout(240)
def test_both_versions_of_amqp(tmp_path, rabbit):
    asyncio.run(prepare_rabbit(rabbit.url))
    for page, exchange, key in (("amqp", "events", "login.a"), ("amqp1", "", "logins")):
        home = tmp_path / page
        home.mkdir()
        text = example(page).replace("@127.0.0.1", f"@127.0.0.1:{rabbit.port}")
        with running(home, text, LOGINS):
            got = asyncio.run(ask_rabbit(rabbit.url, exchange, key))
        assert got == ("alert.10.0.0.1", ALERT)


@pytest.mark.integration
def test_zeromq(tmp_path):
    ways = {"tcp://127.0.0.1:5555": free_port(), "tcp://127.0.0.1:5556": free_port()}
    text = example("zeromq")
    for old, port in ways.items():
        text = text.replace(old, f"tcp://127.0.0.1:{port}")
    into, out = ways.values()
    query = "from readings select sensor, value insert into alerts;"
    with (
        running(tmp_path, text, query),
        zmq.Context() as context,
        context.socket(zmq.PUSH) as push,
        context.socket(zmq.SUB) as sub,
    ):
        push.connect(f"tcp://127.0.0.1:{into}")
        sub.subscribe("alerts")
        sub.connect(f"tcp://127.0.0.1:{out}")

        def arrived():  # a subscriber misses what was sent before it was known
            push.send(b'{"sensor": "s", "value": 1.5}')
            return sub.poll(200)

        until(arrived, WAIT_S)
        assert sub.recv_multipart() == [b"alerts", b'{"sensor":"s","value":1.5}']


@pytest.mark.integration
def test_file(tmp_path):
    shop, home = tmp_path / "shop", tmp_path / "home"
    for folder in (shop, home / "old", home / "lake"):
        folder.mkdir(parents=True)
    (home / "old" / "a.csv").write_text("price;item\n2.5;old\n")
    pq.write_table(pa.table({"item": ["lake"], "price": [3.5]}), home / "lake" / "a.parquet")
    (shop / "a.json").write_text('{"item": "first", "price": 1.5}\n')
    text = example("file").replace("/var/log/shop", str(shop)) + example("file", 1)
    query = "\n".join(
        f"from {name} select item, price insert into alerts;"
        for name in ("sales", "old_sales", "lake_sales")
    )
    with running(tmp_path, text, query):
        with (shop / "a.json").open("a") as file:
            file.write('{"item": "later", "price": 4.5}\n')
        out = home / "out" / "alerts.csv"
        until(lambda: out.exists() and out.read_text().count("\n") == 5, WAIT_S)
    lines = out.read_text().splitlines()
    assert lines[0] == "item,price"
    assert sorted(lines[1:]) == ["first,1.5", "lake,3.5", "later,4.5", "old,2.5"]


def avro(**datum):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(FAILURE), datum)
    return out.getvalue()


FAILURE = re.search(r'schema="""(.*?)"""', example("maps"), re.DOTALL)[1]
PAYLOADS = {  # each says a failure on port 22
    "json": b'{"client": {"ips": ["10.0.0.1", "::1"]}, "port": 22}',
    "csv": b"p;address\n22;10.0.0.2\n",
    "text": b"10.0.0.3 failed on port 22\n",
    "binary": struct.pack(">BH15s", 9, 22, b"10.0.0.4"),
    "avro": avro(ip="10.0.0.5", port=22),
}


@pytest.mark.integration
def test_payloads(tmp_path):
    text = example("maps") + example("maps", 1)
    ports = {"5557": free_port(), "5558": free_port()}
    for old, port in ports.items():
        text = text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{port}")
    query = "".join(f"from from_{kind} select ip, port insert into failures;" for kind in PAYLOADS)
    out = tmp_path / "home"
    with zmq.Context() as context, ExitStack() as ends:
        binary, datums = (ends.enter_context(context.socket(zmq.PULL)) for _ in ports)
        for end, port in zip((binary, datums), ports.values(), strict=True):
            end.set(zmq.RCVTIMEO, WAIT_S * 1000)
            end.bind(f"tcp://127.0.0.1:{port}")
        with running(tmp_path, text, query) as door:
            for kind, payload in PAYLOADS.items():
                request = urllib.request.Request(f"{door}/{kind}", payload)
                with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                    assert json.loads(answer.read())["accepted"] == 1
            records = {struct.unpack(">15sH", binary.recv()) for _ in PAYLOADS}
            read = {datums.recv() for _ in PAYLOADS}
            until(lambda: (out / "out.txt").read_text().count("\n") == len(PAYLOADS), WAIT_S)
            until(lambda: (out / "out.csv").read_text().count("\n") > len(PAYLOADS), WAIT_S)
            until(lambda: (out / "out.json").read_text().count("\n") == len(PAYLOADS), WAIT_S)
    ips = [f"10.0.0.{number}" for number in range(1, 6)]
    assert records == {(ip.encode().ljust(15, b"\0"), 22) for ip in ips}
    assert read == {avro(ip=ip, port=22) for ip in ips}
    assert sorted((out / "out.txt").read_text().splitlines()) == [
        f"{ip} failed on port 22" for ip in ips
    ]
    head, *lines = (out / "out.csv").read_text().splitlines()
    assert (head, sorted(lines)) == ("ip;port", [f"{ip};22" for ip in ips])
    said = [json.loads(line) for line in (out / "out.json").read_text().splitlines()]
    assert sorted(row["data"]["address"] for row in said) == ips
    assert all(row["data"]["p"] == 22 and row["ts"] > 0 for row in said)


class Received(BaseHTTPRequestHandler):
    bodies: ClassVar = []

    def do_POST(self):
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_words):
        pass


@pytest.mark.integration
def test_http_and_a_websocket_and_a_programs_log(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Received)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    there = f"http://127.0.0.1:{server.server_port}/alerts"
    text = example("http") + example("http", 1) + example("http", 2) + example("logging")
    text = text.replace("https://example.org/alerts", there)
    more = "from csv_logins select ip, 4L as loginCount insert into alerts;"
    more += "from app_log select message as ip, 5L as loginCount insert into alerts;"

    def rows():
        return [json.loads(line) for body in Received.bodies for line in body.splitlines()]

    def post(path, body, kind):
        request = urllib.request.Request(door + path, body, {"Content-Type": kind})
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.loads(answer.read())

    with running(tmp_path, text, LOGINS + more) as door:
        assert post("/logins", EVENT, "application/json")["accepted"] == 1
        assert post("/logins.csv", b"10.0.0.2;c2\n", "text/csv")["accepted"] == 1
        handler = EdgewiseHandler(door, "app_log")
        logger = logging.getLogger("shop")
        logger.addHandler(handler)
        logger.warning("disk %d", 7, extra={"user": "ada"})
        logger.removeHandler(handler)
        handler.close()
        with connect(f"{door.replace('http', 'ws')}/streams/login_stream/publish") as socket:
            assert json.loads(socket.recv())["credit"] > 0
            socket.send(json.dumps({"id": 1, "events": [{"ip": "10.0.0.3", "cityId": "c"}]}))
            assert json.loads(socket.recv())["ack"] == 1
        until(lambda: len(rows()) == 4, WAIT_S)
    server.shutdown()
    server.server_close()
    got = sorted((row["ip"], row["loginCount"]) for row in rows())
    assert got == [("10.0.0.1", 3), ("10.0.0.2", 4), ("10.0.0.3", 3), ("disk 7", 5)]


@pytest.mark.integration
def test_a_source_and_a_sink_of_ones_own(tmp_path):
    home = tmp_path / "home"
    info = home / "pigeons-1.0.dist-info"
    for folder in (info, home / "in", home / "out"):
        folder.mkdir(parents=True)
    (home / "pigeons.py").write_text(example("own", language="python"))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeons\nVersion: 1.0\n")
    groups = tomllib.loads(example("own", language="toml"))["project"]["entry-points"]
    (info / "entry_points.txt").write_text(
        "\n".join(
            f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in doors.items())
            for group, doors in groups.items()
        )
    )
    query = "from letters select str:upper(text) as text insert into answers;"
    with running(tmp_path, example("own"), query):
        for name in ("a", "b"):  # a pigeon lands at once or not at all
            (home / "in" / name).write_text(json.dumps({"text": f"coo {name}"}))
            (home / "in" / name).rename(home / "in" / f"{name}.letter")
        until(lambda: len(list((home / "out").glob("*.letter"))) == 2, WAIT_S)
        until(lambda: not list((home / "in").iterdir()), WAIT_S)
    assert sorted(p.read_text() for p in (home / "out").iterdir()) == ["COO A", "COO B"]
    promised = example("own").replace("at-least-once", "effectively-once")
    (tmp_path / "app.siddhi").write_text(f"{promised}\n{query}\n")
    with Program.start("check", str(tmp_path / "app.siddhi"), home=home) as program:
        said = r"'pigeon' cannot give 'effectively-once' delivery; it gives: at-least-once"
        program.wait_for_line(said, WAIT_S)
        assert program.process.wait(WAIT_S) != 0
