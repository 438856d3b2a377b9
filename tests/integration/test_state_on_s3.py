"""Kernel state on S3: an engine that is killed goes on from what the object store has."""

import random
import re

import pytest
from tests.spark.test_crash import APPS, MASTER, Crash
from tests.support.random_batches import family_case, in_driver, plain
from tests.support.s3_server import BUCKET, S3Server
from tests.support.storage_laws import (
    LAST,
    PART,
    versions_are_kept_and_compacted,
    what_was_written_is_read_listed_and_removed,
)

from edgewise import cli
from edgewise.engines.state.storage import open_storage
from edgewise.engines.state.store import StateStore
from edgewise.errors import StateError
from edgewise.lang import compile_app
from edgewise.node.commands.replay import replay

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    server = S3Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.mark.integration
def test_files_are_whole_listed_replaced_and_removed(s3):
    what_was_written_is_read_listed_and_removed(open_storage(s3.uri("files")))


@pytest.mark.integration
def test_versions_are_kept_compacted_and_a_torn_one_is_refused(s3):
    store = versions_are_kept_and_compacted(s3.uri("versions"))
    store.storage.write(f"{LAST}.delta", store.storage.read(f"{LAST}.delta")[:-1])
    with pytest.raises(StateError, match=f"s3:{BUCKET}/versions/{PART}/{LAST}.delta is torn"):
        StateStore(s3.uri("versions"), PART).load(LAST)


@pytest.mark.integration
def test_every_batch_by_an_engine_that_starts_anew_with_any_number_of_partitions(s3, tmp_path):
    text, events, dice = family_case("partitions", 2)
    app = compile_app(text).app
    found = in_driver(tmp_path, app, events, dice, s3.uri("anew"))
    assert found == plain(replay(app, events, "embedded"))
    assert len(found) > 3


@pytest.mark.slow
def test_an_engine_that_is_killed_gives_every_row_once(s3, tmp_path, capsys):
    """First in the driver, then in tasks with another number of partitions."""
    state = s3.uri("window")
    crash = Crash(tmp_path, APPS["window"], "spark", "--max-rows", "500", "--state", state)
    crash.kill_driver(random.Random(7))
    in_tasks = ("--small-batch-rows", "0", "--master", MASTER, "--partitions", "3")
    crash.options = (*crash.options, *in_tasks)
    crash.finish()
    assert crash.killed == {"drivers": 1}
    assert not (crash.layout.checkpoint("app") / "state").exists()
    capsys.readouterr()
    assert cli.main(["state", state]) == 0
    head, _, *parts = capsys.readouterr().out.splitlines()
    assert re.match(rf"app s3:{BUCKET}/window: \d\d\d keys, .* on disk", head)
    assert len(parts) == 3
