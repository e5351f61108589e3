"""Ctrl-C that ends a computation without losing its results so far."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Halt:
    """Request of the user to stop.

    Examples
    --------
    >>> stop = Halt()
    >>> stop.ask()
    >>> stop.wanted
    True
    """

    def __init__(self) -> None:
        self.wanted = False

    def ask(self) -> None:
        """Request to stop at the next opportunity."""
        self.wanted = True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Record the first Ctrl-C as a request; raise at the second."""
        if self.wanted:
            signal.default_int_handler(number, frame)
        self.wanted = True


_current: Halt | None = None  # in the main thread, which alone receives signals


@contextlib.contextmanager
def deferred() -> Iterator[Halt]:
    """Record a Ctrl-C instead of raising KeyboardInterrupt; a second one is raised at once.

    Code inside checks `wanted` and ends early. Nested blocks share one request. If the program handles Ctrl-C itself,
    and in threads other than the main one, nothing is changed.

    Examples
    --------
    >>> with deferred() as stop:
    ...     signal.raise_signal(signal.SIGINT)
    ...     stop.wanted
    True
    """
    global _current
    if _current is not None:
        yield _current
        return
    stop = Halt()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGINT)
    handles = before is signal.default_int_handler
    try:
        _current = stop
        if handles:
            signal.signal(signal.SIGINT, stop._on_signal)
        yield stop
    finally:
        _current = None
        if handles:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold a Ctrl-C back until the end of the block, where it takes effect as usual.

    For calls of libraries that call Python back: what is raised there is printed and lost, and the library goes on
    without the result. In threads other than the main one no Ctrl-C is raised.

    Examples
    --------
    >>> try:
    ...     with held():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("complete")
    ... except KeyboardInterrupt:
    ...     print("stopped")
    complete
    stopped
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)


def deferring(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function inside :func:`deferred`, so that no Ctrl-C is raised in it.

    Examples
    --------
    >>> @deferring
    ... def compute():
    ...     signal.raise_signal(signal.SIGINT)
    ...     return 42
    >>> compute()
    42
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with deferred():
            return function(*args, **kwargs)

    return wrapped


__all__ = ["Halt", "deferred", "deferring", "held"]
