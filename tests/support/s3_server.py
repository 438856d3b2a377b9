"""A server that speaks S3, for tests: started on a free port, with a bucket, gone afterwards."""

import subprocess
import sys
import time
from pathlib import Path

from pyarrow import fs
from tests.support.brokers import free_port

ROOT = Path(__file__).parents[2]
START_S_MAX = 60
BUCKET = "states"


class S3Server:
    def __init__(self, directory, host="127.0.0.1"):
        port = free_port()
        self._address = f"{host}:{port}"
        fetched = subprocess.run(
            [ROOT / "scripts/fetch-s3"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={"PYTHON": sys.executable, "HOME": str(Path.home()), "PATH": "/usr/bin:/bin"},
        )
        with (directory / "s3.log").open("ab") as log:
            command = [fetched.stdout.strip(), "-m", "moto.server", "-H", host]
            self._process = subprocess.Popen(
                [*command, "-p", str(port)], stdout=log, stderr=log, cwd=directory
            )
        self.files = fs.S3FileSystem(
            access_key="me",
            secret_key="secret",
            endpoint_override=self._address,
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )
        self._until_there()

    def _until_there(self):
        deadline = time.monotonic() + START_S_MAX
        while True:
            try:
                self.files.create_dir(BUCKET)
            except OSError:
                assert self._process.poll() is None, "the S3 server ended"
                assert time.monotonic() < deadline, "the S3 server does not answer"
                time.sleep(0.1)
            else:
                return

    def uri(self, path):
        """As a user writes it after `--state`."""
        options = f"scheme=http&endpoint_override={self._address}&region=us-east-1"
        return f"s3://me:secret@{BUCKET}/{path}?{options}"

    def stop(self):
        self._process.terminate()
        self._process.wait()
