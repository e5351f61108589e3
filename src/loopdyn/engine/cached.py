"""`cached_property` without a lock: that of `functools` has one for all instances before Python 3.12.

Threads that compute the same property of different objects would wait for each other there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """Property that is computed once, as :class:`functools.cached_property`."""

    def __init__(self, func: Callable[[Any], T]):
        self.func, self.__doc__ = func, func.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.attrname = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[T] | T:
        if instance is None:
            return self
        found = instance.__dict__[self.attrname] = self.func(instance)
        return found


__all__ = ["cached_property"]
