"""A disk that fills up: ingest answers 503, what was acknowledged is there, room brings it back.

The disk is a small tmpfs in a mount namespace of the node's own, which needs no root.
"""

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.test_takeover import START_S_MAX
from tests.support.program import Program, request, until

from edgewise.log.segment_reader import SegmentReader
from edgewise.node.data_dir import DataDirectory

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

DISK = "24m"
BALLAST_BYTES = 12 * 1024 * 1024
REQUESTS_MAX = 400
APP = """
@app:name('sieve')
@source(type='http', @map(type='json'))
define stream S (n long, text string);
define stream O (n long);
from S[n < 0] select n insert into O;
"""


def events(first: int) -> bytes:
    """About 100 kB that do not shrink: 100 events, each with its own number."""
    made = [
        {"ts": 1000, "data": {"n": n, "text": f"{n:01000d}"}} for n in range(first, first + 100)
    ]
    return json.dumps(made).encode()


def test_a_full_disk_stops_ingest_and_loses_nothing_acknowledged(tmp_path):
    assert shutil.which("unshare"), "no unshare: sudo apt-get install -y util-linux"
    (tmp_path / "sieve.siddhi").write_text(APP)
    data = tmp_path / "home" / "data"
    data.mkdir(parents=True)
    small_disk = ("unshare", "-Urm", "sh", "-ec")
    mount = f'mount -t tmpfs -o size={DISK} none "{data}"; exec "$@"'
    run = ("run", str(tmp_path / "sieve.siddhi"), "--data", str(data), "--engine", "embedded")
    with Program.start(
        *run,
        *("--http-port", "0", "--edge-port", "0"),
        home=tmp_path / "home",
        before=(*small_disk, mount, "sh"),
    ) as program:
        ingest = program.wait_for_line(r"(http://\S+/streams/S)", START_S_MAX).group(1)
        inside = Path(f"/proc/{program.process.pid}/root") / data.relative_to("/")
        (inside / "ballast").write_bytes(b"\0" * BALLAST_BYTES)

        acknowledged, number = [], 0
        status, answer = 200, b""
        for _ in range(REQUESTS_MAX):
            status, answer = request("POST", ingest, events(number))
            if status != 200:
                break
            acknowledged.append(number)
            number += 100
        assert status == 503, (status, answer, program.said)
        assert acknowledged, "the disk was full before the first event"

        (inside / "ballast").unlink()
        until(lambda: request("POST", ingest, events(number))[0] == 200, START_S_MAX)
        acknowledged.append(number)

        with closing(SegmentReader.open(DataDirectory(inside).log_directory("S"))) as reader:
            kept = [
                n
                for batch in reader.read(reader.earliest(), reader.head().offset)
                for n in batch.rows.column("n").to_pylist()
                if n is not None
            ]
        assert kept == [n for first in acknowledged for n in range(first, first + 100)]
