"""Find all members whose selector names a path: an index by segment. Pure.

Fanout finds subscriptions by it, requests find their handlers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class _Fork(Generic[T]):
    __slots__ = ("children", "members")

    def __init__(self) -> None:
        self.children: dict[str, _Fork[T]] = {}
        self.members: dict[T, None] = {}


class SelectorIndex(Generic[T]):
    """Who selects a path: the mirror of `TopicTree.select`, for topics that appear later."""

    def __init__(self) -> None:
        self._root: _Fork[T] = _Fork()

    def add(self, selector: tuple[str, ...], member: T) -> None:
        fork = self._root
        for segment in selector:
            fork = fork.children.setdefault(segment, _Fork())
        fork.members[member] = None

    def discard(self, selector: tuple[str, ...], member: T) -> None:
        trail = [self._root]
        for segment in selector:
            child = trail[-1].children.get(segment)
            if child is None:
                return
            trail.append(child)
        trail[-1].members.pop(member, None)
        for depth in range(len(selector), 0, -1):
            if trail[depth].members or trail[depth].children:
                break
            del trail[depth - 1].children[selector[depth - 1]]

    def match(self, path: tuple[str, ...]) -> Iterator[T]:
        return self._match(self._root, path, 0)

    def _match(self, fork: _Fork[T], path: tuple[str, ...], depth: int) -> Iterator[T]:
        wild = depth > 0 or not path[0].startswith("$")
        if wild and "#" in fork.children:
            yield from fork.children["#"].members
        if depth == len(path):
            yield from fork.members
            return
        if path[depth] in fork.children:
            yield from self._match(fork.children[path[depth]], path, depth + 1)
        if wild and "+" in fork.children:
            yield from self._match(fork.children["+"], path, depth + 1)
