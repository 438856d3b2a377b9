"""Read the principals whose tokens no longer hold, one name per line of a file.

A token lives until it expires; this ends it sooner, on open sessions too. The file is read again
when it changes; `#` begins a comment. A file that cannot be read keeps what was known, so that a
mistake grants nothing. `auth.py` asks it.
"""

from __future__ import annotations

from pathlib import Path

from edgewise.errors import SetupError

NAMES_MAX = 100_000


class RevocationList:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: tuple[int, int, int] | None = None
        self._names: frozenset[str] = frozenset()
        try:
            self._take(self._stat())
        except OSError as error:
            raise SetupError(f"cannot read {path}: {error.strerror}") from None

    @property
    def names(self) -> frozenset[str]:
        """The same object as long as nothing changed."""
        try:
            mark = self._stat()
            if mark != self._mark:
                self._take(mark)
        except OSError:
            pass
        return self._names

    def _stat(self) -> tuple[int, int, int]:
        found = self._path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _take(self, mark: tuple[int, int, int]) -> None:
        lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        names = [name for line in lines if (name := line.partition("#")[0].strip())]
        self._names = frozenset(names[:NAMES_MAX])
        self._mark = mark
