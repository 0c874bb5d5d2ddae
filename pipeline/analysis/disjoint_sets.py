"""Disjoint sets: what is known to be the same, as it becomes known."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class DisjointSets(Generic[T]):
    """Sets of which each member is in one (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def find(self, member: T) -> T:
        """The member that stands for the set of this one, which is alone in it until it is joined to others."""
        parent = self._parent.setdefault(member, member)
        if parent != member:
            self._parent[member] = parent = self.find(parent)
        return parent

    def join(self, left: T, right: T) -> None:
        """Makes two sets one."""
        self._parent[self.find(left)] = self.find(right)

    def classes(self) -> list[list[T]]:
        """The sets, in the order of their first members; those in the order in which they came."""
        found: dict[T, list[T]] = {}
        for member in self._parent:
            found.setdefault(self.find(member), []).append(member)
        return list(found.values())
