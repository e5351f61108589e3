"""A notice at the first compilation of a process, which may take minutes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from numba.core import event

PACKAGE = Path(__file__).parents[1]
COMPILING = "numba:compile"  # sent by Numba where a function is not found in its cache


class FirstCompilation(event.Listener):  # type: ignore[misc]
    """Writes to standard error, once, that kernels of loopdyn are being compiled.

    Examples
    --------
    >>> notice = FirstCompilation()
    >>> notice.said
    False
    """

    def __init__(self) -> None:
        self.said = False

    def listen(self) -> None:
        """Begin to wait for it."""
        event.register(COMPILING, self)

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled."""
        file = Path(event.data["dispatcher"].py_func.__code__.co_filename)
        if self.said or not file.is_relative_to(PACKAGE):
            return
        self.said = True
        print(
            "loopdyn: compiling kernels, once for each version; this takes some minutes "
            "(all of them in advance: loopdyn warm --all)",
            file=sys.stderr,
        )

    def on_end(self, event: Any) -> None:
        """It has been compiled."""


NOTICE = FirstCompilation()
