"""Read and write small files in a local directory, or on any file system that pyarrow reaches.

State must outlive a machine, so its files may be on an object store; one contract, `Storage`,
keeps the state store free of the difference. A file appears complete or not at all: locally by a
temporary name, fsync and rename; an object store shows an object when it is complete; elsewhere by
a temporary name and a move. Used by the state store, the checkpoint of Spark and `edgewise state`.
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

ATOMIC_AT_CLOSE = frozenset({"s3", "gcs", "abfs"})
FILE_SYSTEMS_MAX = 64  # connections kept by a process; opening one takes longer than a write
TEMPORARY = "."  # names that start like this are leftovers of a process that was killed


class Storage(Protocol):
    """One directory of files; names are without slashes."""

    def inside(self, name: str) -> Storage: ...
    def names(self) -> list[str]: ...
    def sizes(self) -> dict[str, int]: ...
    def read(self, name: str) -> bytes:
        """FileNotFoundError where there is none."""
        ...

    def write(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def clear(self) -> None:
        """Remove the directory and everything in it."""
        ...


def open_storage(where: str | Path) -> Storage:
    """`where` is a path, or a URI such as `s3://bucket/prefix?region=eu-west-1` or `hdfs://host/path`."""
    text = str(where)
    if "://" not in text:
        return LocalStorage(Path(text))
    if text.startswith("file://"):
        return LocalStorage(Path(text.removeprefix("file://")))
    return ArrowStorage(*_connect(text))


def join_path(where: str, *names: str) -> str:
    """The path or URI of a directory inside `where`; the query of a URI stays at its end."""
    if "://" not in where:
        return "/".join([where.rstrip("/"), *names])
    parts = urlsplit(where)
    path = "/".join([parts.path.rstrip("/"), *names])
    return parts._replace(path=path).geturl()


@functools.lru_cache(FILE_SYSTEMS_MAX)
def _connect(uri: str) -> tuple[Any, str]:
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError) as why:
        parts = urlsplit(uri)
        public = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"  # no secret
        reason = str(why).replace(uri, public)
        raise SetupError(f"{public} cannot be reached: {reason}") from None
    return found


def _temporary(name: str) -> str:
    return f"{TEMPORARY}{name}.{os.getpid()}.{threading.get_ident()}"


class LocalStorage:
    """A directory on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def inside(self, name: str) -> LocalStorage:
        return LocalStorage(self.path / name)

    def names(self) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(p.name for p in self.path.iterdir())
        return []

    def sizes(self) -> dict[str, int]:
        """Of the files that still exist: another process may remove some meanwhile."""
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
                LocalStorage(path).clear()
            else:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # removed already, or still written to: the next call removes it
            self.path.rmdir()


class ArrowStorage:
    """A directory on a file system of pyarrow: s3, gcs, abfs, hdfs."""

    def __init__(self, filesystem: Any, path: str) -> None:
        self.filesystem = filesystem
        self.path = path.rstrip("/")

    def __str__(self) -> str:
        return f"{self.filesystem.type_name}:{self.path}"

    def inside(self, name: str) -> ArrowStorage:
        return ArrowStorage(self.filesystem, f"{self.path}/{name}")

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
        atomic = self.filesystem.type_name in ATOMIC_AT_CLOSE
        if not atomic:  # an object store has no directories to make
            self.filesystem.create_dir(self.path, recursive=True)
        written = target if atomic else f"{self.path}/{_temporary(name)}"
        with self.filesystem.open_output_stream(written) as file:
            file.write(data)
        if not atomic:
            self.filesystem.move(written, target)

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
