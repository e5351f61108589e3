"""A run or a drive as a page, a film or a picture."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.output.drawing import RunLike
from loopdyn.output.viewer.page import write_page
from loopdyn.quantities.labels import dataset
from loopdyn.quantities.wording import nearest
from loopdyn.results.drive import Drive

Array = NDArray[np.float64]


def animate(run: RunLike, path: str | Path, **options: Any) -> Path:
    """Write a run as a page, a film or a picture, by the ending of the file's name.

    Parameters
    ----------
    run : Run
    path : str or Path
        ``.html``: a page, see :func:`loopdyn.output.viewer.page.write_page`; ``.gif``, ``.mp4`` or ``.png``: see
        :func:`loopdyn.output.plot.film.write_film`.
    **options
        Options of the function that writes it.
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


def animate_drive(drive: Drive, path: Path, seconds: float, **options: Any) -> Path:
    """Write a kinematic analysis by :func:`animate`; a range takes `seconds`."""
    if not drive.steps:
        raise LoopdynError("there is no pose to show: the analysis ended at its start. Give another range.")
    return animate(_Film(drive, seconds), path, **options)


class _Film:
    """Kinematic analysis with the attributes of a run that pages and films need; a range takes a given time."""

    def __init__(self, drive: Drive, seconds: float):
        self.system, self._drive = drive.system, drive
        s, d = drive.system, drive.data
        time, rate = d["time"].values, np.ones(drive.steps)
        if drive.parameter != "time":  # uniformly along the parameter, forward and back
            way = np.diff(d["parameter"].values, prepend=d["parameter"].values[:1])
            total = float(np.abs(way).sum()) or 1.0
            time = seconds * np.cumsum(np.abs(way)) / total
            rate = np.sign(np.append(way[1:], way[-1:])) * total / seconds
        self._rate = rate
        self.data = dataset(
            {
                "q": (("time", "coordinate"), d["q"].values[:, : s.nq]),
                "v": (("time", "speed"), d["v"].values[:, : s.nv] * rate[:, None]),
                "a": (("time", "speed"), d["a"].values[:, : s.nv] * rate[:, None] ** 2),
            },
            {"time": time, "coordinate": list(s.coordinates), "speed": list(s.speeds)},
        )

    def poses(self) -> tuple[Array, Array]:
        """Poses of the analysis."""
        return self._drive.poses()

    def velocities(self) -> tuple[Array, Array]:
        """Velocities and angular velocities at this pace."""
        linear, angular = self._drive.velocities()
        return linear * self._rate[:, None, None], angular * self._rate[:, None, None]
