"""Where versioned files live: a local directory, or any file system that pyarrow reaches.

A file appears whole or not at all. Locally that is a temporary name, fsync and rename; an object
store shows an object when it is complete; elsewhere it is a temporary name and a move.
"""

from __future__ import annotations

import functools
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from edgewise.errors import SetupError

WHOLE_AT_CLOSE = frozenset({"s3", "gcs", "abfs"})
FILE_SYSTEMS_KEPT = 64  # connections of a process; to make one takes longer than to write a file
TEMPORARY = "."  # names that start like this are leftovers of somebody who was killed


class Home(Protocol):
    """One directory of files; names are without slashes."""

    def inside(self, name: str) -> Home: ...
    def names(self) -> list[str]: ...
    def sizes(self) -> dict[str, int]: ...
    def read(self, name: str) -> bytes:
        """FileNotFoundError where there is none."""
        ...

    def write(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def clear(self) -> None:
        """The directory and everything in it is gone."""
        ...


def home(where: str | Path) -> Home:
    """A path, or a URI such as `s3://bucket/prefix?region=eu-west-1` or `hdfs://host/path`."""
    text = str(where)
    if "://" not in text:
        return LocalHome(Path(text))
    if text.startswith("file://"):
        return LocalHome(Path(text.removeprefix("file://")))
    return ArrowHome(*_reached(text))


def below(where: str, *names: str) -> str:
    """The place of that name inside; what a URI asks for after its path stays behind it."""
    if "://" not in where:
        return "/".join([where.rstrip("/"), *names])
    parts = urlsplit(where)
    path = "/".join([parts.path.rstrip("/"), *names])
    return parts._replace(path=path).geturl()


@functools.lru_cache(FILE_SYSTEMS_KEPT)
def _reached(uri: str) -> tuple[Any, str]:
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError) as why:
        place = urlsplit(uri)
        named = f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path}"
        reason = str(why).replace(uri, named)
        raise SetupError(f"{named} cannot be reached: {reason}") from None
    return found


def _temporary(name: str) -> str:
    return f"{TEMPORARY}{name}.{os.getpid()}.{threading.get_ident()}"


class LocalHome:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def inside(self, name: str) -> LocalHome:
        return LocalHome(self.path / name)

    def names(self) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(p.name for p in self.path.iterdir())
        return []

    def sizes(self) -> dict[str, int]:
        """Of what is still there: the owner may clear up meanwhile."""
        found = {}
        for name in self.names():
            with suppress(FileNotFoundError):
                found[name] = (self.path / name).stat().st_size
        return found

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        temporary = self.path / _temporary(name)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path / name)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def clear(self) -> None:
        for path in self.path.iterdir() if self.path.exists() else ():
            if path.is_dir():
                LocalHome(path).clear()
            else:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # gone, or somebody still writes here: it goes the next time
            self.path.rmdir()


class ArrowHome:
    def __init__(self, filesystem: Any, path: str) -> None:
        self.filesystem = filesystem
        self.path = path.rstrip("/")

    def __str__(self) -> str:
        return f"{self.filesystem.type_name}:{self.path}"

    def inside(self, name: str) -> ArrowHome:
        return ArrowHome(self.filesystem, f"{self.path}/{name}")

    def names(self) -> list[str]:
        return sorted(info.base_name for info in self._infos())

    def sizes(self) -> dict[str, int]:
        return {info.base_name: info.size or 0 for info in self._infos()}

    def read(self, name: str) -> bytes:
        with self.filesystem.open_input_stream(f"{self.path}/{name}") as file:
            data: bytes = file.read()
        return data

    def write(self, name: str, data: bytes) -> None:
        target = f"{self.path}/{name}"
        whole = self.filesystem.type_name in WHOLE_AT_CLOSE
        if not whole:  # where a file appears with its path there are no directories to make
            self.filesystem.create_dir(self.path, recursive=True)
        place = target if whole else f"{self.path}/{_temporary(name)}"
        with self.filesystem.open_output_stream(place) as file:
            file.write(data)
        if not whole:
            self.filesystem.move(place, target)

    def remove(self, name: str) -> None:
        if name in self.names():
            self.filesystem.delete_file(f"{self.path}/{name}")

    def clear(self) -> None:
        if self.filesystem.get_file_info(self.path).type is fs.FileType.Directory:
            self.filesystem.delete_dir(self.path)

    def _infos(self) -> list[Any]:
        found: list[Any] = self.filesystem.get_file_info(
            fs.FileSelector(self.path, allow_not_found=True)
        )
        return found
