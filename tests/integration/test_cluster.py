"""A node on a Spark cluster whose workers share neither disk nor network with it.

`make test-cluster` runs it, as root: a standalone master, two workers in namespaces of their own,
a real Kafka, a real S3 server.
"""

import json
import urllib.request
from collections import defaultdict

import pytest
from tests.support.kafka_broker import KafkaBroker
from tests.support.program import Program, until
from tests.support.s3_server import S3Server
from tests.support.spark_cluster import HOST, SparkCluster

from edgewise.event.arrow import record_batch
from edgewise.event.schema import Schema
from edgewise.log.locations import open_reader, open_writer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

START_S_MAX = 180
ROWS = 120_000  # more than run in the driver: executors have to
KEYS = 50
SCHEMA = Schema.of("S", k="string", v="long")
TOTALS = """
@app:name('totals')
define stream S (k string, v long);
@info(name='totals') from S select k, sum(v) as total group by k insert into O;
"""
WITH_COUNTS = (
    f"{TOTALS}@info(name='counts') from S select k, count() as n group by k insert into C;"
)


@pytest.fixture(scope="module")
def hidden(tmp_path_factory):
    return tmp_path_factory.mktemp("hidden")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, hidden):
    running = SparkCluster(tmp_path_factory.mktemp("cluster"), hidden)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory, cluster):
    running = KafkaBroker(tmp_path_factory.mktemp("kafka"), HOST).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def s3(tmp_path_factory, cluster):
    running = S3Server(tmp_path_factory.mktemp("s3"), HOST)
    yield running
    running.stop()


def start(cluster, home, text, *options):
    """A node on the cluster, its data directory relative to a home that workers do not see."""
    home.mkdir(exist_ok=True)
    (home / "app.siddhi").write_text(text)
    ports = ("--http-port", "0", "--edge-port", "0")
    return Program.start("run", "app.siddhi", "--master", cluster.url, *ports, *options, home=home)


def fill(location, first, count):
    writer = open_writer(location, SCHEMA)
    numbers = list(range(first, first + count))
    columns = [[f"k{n % KEYS}" for n in numbers], [1] * count]
    writer.append(record_batch(writer.schema, numbers, numbers, [0] * count, columns))
    writer.close()


def totals_of(location, value):
    """By key, the values in the order of the log."""
    reader = open_reader(location)
    found = defaultdict(list)
    for batch in reader.read(reader.earliest(), reader.head().offset):
        for row in batch.rows.to_pylist():
            found[row["k"]].append(row[value])
    reader.close()
    return dict(found)


def rows_in(location):
    reader = open_reader(location)
    try:
        return reader.head().offset
    finally:
        reader.close()


def test_file_logs_on_a_private_disk_are_refused_at_the_start(cluster, hidden):
    with start(cluster, hidden / "files", TOTALS) as node:
        said = node.wait_for_line(r"the engine cannot start: .*", START_S_MAX).group()
        assert node.process.wait(START_S_MAX) == 2
    assert "the log of S is in" in said
    assert "--log kafka://host:port/PREFIX" in said


def test_kafka_logs_without_a_state_that_executors_reach_are_refused(cluster, broker, hidden):
    with start(
        cluster, hidden / "no-state", TOTALS, "--log", f"kafka://{broker.address}/refused"
    ) as node:
        said = node.wait_for_line(r"the engine cannot start: .*", START_S_MAX).group()
        assert node.process.wait(START_S_MAX) == 2
    assert "give --state a URI that every executor reaches" in said
    assert rows_in(f"kafka://{broker.address}/refused-O") == 0


def test_executors_compute_each_row_once_and_a_changed_app_keeps_its_state(
    cluster, broker, s3, hidden
):
    logs = f"kafka://{broker.address}/sums"
    options = ("--log", logs, "--state", s3.uri("sums"), "--partitions", "4")
    fill(f"{logs}-S", 0, ROWS)
    with start(cluster, hidden / "sums", TOTALS, *options) as node:
        page = node.wait_for_line(r"Spark's page: (http\S+)", START_S_MAX).group(1)
        assert "127.0.0.1" not in page
        node.wait_for_line("query running", START_S_MAX)
        until(lambda: rows_in(f"{logs}-O") == ROWS, START_S_MAX)
        [app] = read_json(f"{page}/api/v1/applications")
        jobs = read_json(f"{page}/api/v1/applications/{app['id']}/jobs")
        assert any(j.get("description", "").startswith("totals: totals (") for j in jobs)
        node.ctrl_c()
        node.all_gone_after_s(START_S_MAX)
    fill(f"{logs}-S", ROWS, ROWS)
    with start(cluster, hidden / "sums", WITH_COUNTS, *options) as node:
        node.wait_for_line("query running", START_S_MAX)
        cluster.kill_worker(0)
        until(lambda: rows_in(f"{logs}-O") == 2 * ROWS, START_S_MAX)
        until(lambda: rows_in(f"{logs}-C") == ROWS, START_S_MAX)
        cluster.start_worker(0)
    each = 2 * ROWS // KEYS
    assert totals_of(f"{logs}-O", "total") == {
        f"k{n}": list(range(1, each + 1)) for n in range(KEYS)
    }
    assert totals_of(f"{logs}-C", "n") == {
        f"k{n}": list(range(1, each // 2 + 1)) for n in range(KEYS)
    }


def test_a_worker_whose_link_is_cut_is_replaced_and_no_row_is_lost(cluster, broker, s3, hidden):
    logs = f"kafka://{broker.address}/cut"
    options = ("--log", logs, "--state", s3.uri("cut"), "--partitions", "4")
    settings = (
        "network.timeout=10s",
        "network.timeoutInterval=5s",
        "executor.heartbeatInterval=2s",
    )
    impatient = [word for setting in settings for word in ("--conf", f"spark.{setting}")]
    fill(f"{logs}-S", 0, ROWS)
    with start(cluster, hidden / "cut", TOTALS, *options, *impatient) as node:
        node.wait_for_line("query running", START_S_MAX)
        assert rows_in(f"{logs}-O") == 0, "executors are at work"
        cluster.cut(1)
        until(lambda: rows_in(f"{logs}-O") == ROWS, START_S_MAX)
        cluster.mend(1)
    each = ROWS // KEYS
    assert totals_of(f"{logs}-O", "total") == {
        f"k{n}": list(range(1, each + 1)) for n in range(KEYS)
    }


def read_json(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)
