"""A real Kafka broker (KRaft, one node) for tests: started, stopped, killed and started again."""

import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tests.support.brokers import free_port

ROOT = Path(__file__).parents[2]
START_S_MAX = 120


class KafkaBroker:
    def __init__(self, directory, host="127.0.0.1"):
        self.directory = directory
        self.port, controller = free_port(), free_port()
        self.address = f"{host}:{self.port}"
        fetched = subprocess.run(
            [ROOT / "scripts/fetch-kafka"], stdout=subprocess.PIPE, text=True, check=True
        )
        self._jars = f"{fetched.stdout.strip()}/*"
        self._process = None
        self._config = directory / "server.properties"
        self._config.write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://{host}:{self.port},CONTROLLER://127.0.0.1:{controller}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={directory / 'data'}\n"
            "offsets.topic.replication.factor=1\n"
            "offsets.topic.num.partitions=1\n"
            "transaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\n"
            "transaction.state.log.num.partitions=1\n"
            "group.initial.rebalance.delay.ms=0\n"
            "group.min.session.timeout.ms=1000\n"
            "log.cleaner.dedupe.buffer.size=4000000\n"
            # A killed broker is let in again when its old session is over: 9 s, if unsaid.
            "broker.session.timeout.ms=2000\n"
            "broker.heartbeat.interval.ms=200\n"
        )
        cluster = uuid.UUID(int=7).hex[:22]
        self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", self._config)

    def _command(self, main, *words):
        return [
            "java", "-Xmx400m", "-Xms100m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
            "-cp", self._jars, main, *[str(w) for w in words],
        ]  # fmt: skip

    def _java(self, main, *words):
        subprocess.run(self._command(main, *words), check=True, capture_output=True)

    def start(self):
        with (self.directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", self._config), stdout=log, stderr=log
            )
        admin = AdminClient(
            {
                "bootstrap.servers": self.address,
                "log_level": 0,
                "reconnect.backoff.max.ms": 100,
            }
        )
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            try:
                admin.list_topics(timeout=2)
            except KafkaException:
                assert self._process.poll() is None, (self.directory / "broker.log").read_text()
            else:
                return self
        raise AssertionError("the broker did not start")

    def freeze(self):
        """To its clients this is a network that was cut: nothing answers, nothing is refused."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self._process.pid, signal.SIGCONT)

    def stop(self):
        self._end(signal.SIGTERM)

    def kill(self):
        self._end(signal.SIGKILL)

    def _end(self, how):
        if self._process and self._process.poll() is None:
            os.kill(self._process.pid, how)
            self._process.wait(60)
