"""Store of ranks, plans and solvers that were prepared for a system, to be found again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")

# Things of one kind that are kept, the ones used first being dropped: a few poses, row choices or threads at a time.
MOST = 8


class Kept:
    """Store of everything prepared for one system: it lives as long as the system does, and has a bounded size.

    Parameters
    ----------
    origin : System, optional
        System of the same structure with other numbers, whose plans can be used again.

    Examples
    --------
    >>> kept = Kept()
    >>> kept.find("square", 3, lambda: 9), kept.find("square", 3, lambda: 0)
    (9, 9)
    """

    def __init__(self, origin: Any = None) -> None:
        self.origin = origin
        self._found: dict[str, dict[Hashable, Any]] = {}
        self._lock = Lock()

    def find(self, kind: str, key: Hashable, make: Callable[[], T]) -> T:
        """A thing that nobody changes, made where it is not there yet; all threads share it."""
        entries = self._found.setdefault(kind, {})
        kept: T
        found = entries.get(key, self)  # nobody keeps the keeper
        if found is not self:
            kept = found
            return kept
        made = make()
        with self._lock:
            if len(entries) >= MOST:
                del entries[next(iter(entries))]
            kept = entries.setdefault(key, made)
        return kept

    def take(self, key: Hashable, make: Callable[[], T]) -> T:
        """A thing that changes as it is used, a solver: whoever takes it has it alone, in whatever thread."""
        try:
            taken: T = self.find("idle", key, _pool).pop()
        except IndexError:
            return make()
        return taken

    def give(self, key: Hashable, thing: Any) -> None:
        """Give back what was taken, for the next one."""
        self.find("idle", key, _pool).append(thing)


def _pool() -> deque[Any]:
    return deque(maxlen=MOST)
