"""Brokers that the tests of several doors share."""

import pytest
from tests.gateway.brokers import RabbitMq


@pytest.fixture(scope="session")
def rabbit(tmp_path_factory):
    broker = RabbitMq(tmp_path_factory.mktemp("rabbit"))
    broker.start()
    yield broker
    broker.stop()
