"""A run as a page, a film or a picture."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

from loopdyn.errors import LoopdynError
from loopdyn.output.drawing import RunLike
from loopdyn.output.viewer.page import write_page
from loopdyn.quantities.wording import nearest


def animate(run: RunLike, path: str | Path, **options: Any) -> Path:
    """Write a run as a page, a film or a picture, by the ending of the file's name.

    Parameters
    ----------
    run : Run
    path : str or Path
        ``.html``: a page, see :func:`loopdyn.output.viewer.page.write_page`; ``.gif``, ``.mp4`` or ``.png``: see
        :func:`loopdyn.output.plot.film.write_film`.
    **options
        Those of the function that writes it.
    """
    write: Callable[..., Path] = write_page
    kind = Path(path).suffix.lower()
    if kind in (".gif", ".mp4", ".png"):
        from loopdyn.output.plot.film import write_film

        write = write_film
    known = list(signature(write).parameters)[2:]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise LoopdynError(f"animate: there is no option '{unknown[0]}' for '{kind}'. {nearest(unknown[0], known)}")
    return write(run, path, **options)
