"""A notice at the first compilation of a process, which may take minutes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from numba.core import event

LOG = logging.getLogger("loopdyn")
PACKAGE = Path(__file__).parents[1]
COMPILING = "numba:compile"  # sent by Numba where a function is not found in its cache


class FirstCompilation(event.Listener):  # type: ignore[misc]
    """Says once, by `logging`, that kernels of loopdyn are being compiled, and why an installed pack is not used.

    Where logging is not set up, Python writes warnings to standard error.

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
        LOG.warning(
            "loopdyn: compiling kernels, once for each version; this takes some minutes "
            "(all of them in advance: loopdyn warm --all)%s",
            _about_the_pack(),
        )

    def on_end(self, event: Any) -> None:
        """It has been compiled."""


def _about_the_pack() -> str:
    """Reason why kernels are compiled although a pack is installed; empty if there is none."""
    from loopdyn.engine import packs

    pack, refusal = packs.found()
    if refusal:
        return f". The installed {packs.DISTRIBUTION} is not used: {refusal}"
    if pack is not None:
        return f". The installed {packs.DISTRIBUTION} {pack.version} does not have them: other sources, or further uses"
    return ""


NOTICE = FirstCompilation()
