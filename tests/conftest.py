"""What every test may ask for."""

import os
from functools import partial

import pytest
from hypothesis import settings
from tests.golden import check, check_block

# Speed is for bench/, not for tests. By hand every run tries other examples; in CI the same ones,
# so that what lands was tried by the very run that is repeated after it.
settings.register_profile("edgewise", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "edgewise")
# A Spark of a test lives for seconds: the second compiler pays off after minutes, and without it
# a start takes half the processor time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_addoption(parser):
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write what came out into tests/golden and the generated parts of docs",
    )
    parser.addoption(
        "--pages", action="store_true", help="only write the generated parts of docs (make pages)"
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--pages"):
        items[:] = [item for item in items if "generated_block" in item.fixturenames]


@pytest.fixture
def golden(request):
    """`golden(path, run)`: each command of the script prints what the script says."""
    return partial(check, rewrite=request.config.getoption("--rewrite-golden"))


@pytest.fixture
def generated_block(request):
    """`generated_block(path, name, text)`: the named part of a page is up to date."""
    option = request.config.getoption
    return partial(check_block, rewrite=option("--rewrite-golden") or option("--pages"))


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory):
    """A real Kafka, one for all tests that need it; who stops it starts it again."""
    from tests.support.kafka_broker import KafkaBroker

    running = KafkaBroker(tmp_path_factory.mktemp("kafka")).start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def rabbit(tmp_path_factory):
    """A real RabbitMQ, one for all tests that need it."""
    from tests.support.brokers import RabbitMq

    broker = RabbitMq(tmp_path_factory.mktemp("rabbit"))
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def spark():
    """A real Spark, one for all tests that need it."""
    from edgewise.spark.session import start_session

    session = start_session("local[2]")
    yield session
    session.stop()
