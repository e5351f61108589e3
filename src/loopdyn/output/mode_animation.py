"""Modes as pages and films: the mechanism moved along the shape of a mode, loops closed, over periods of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.loops.projection import project
from loopdyn.output.animation import animate
from loopdyn.quantities.labels import dataset
from loopdyn.results.units import dimensions, shown
from loopdyn.system.system import State, System
from loopdyn.tree.functions import body_motion, increment

Array = NDArray[np.float64]

FRAMES = 49  # of one period
DISPLAYED = 0.2  # largest motion, natural units, by default: rad, or fraction of the size of the mechanism
SECONDS = 2.0  # of one period in the film: what is fast or slow in fact is seen, too


class ModeFilm:
    """Oscillation in one mode with the attributes of a run that pages and films need.

    Parameters
    ----------
    system : System
    state : State
    motion : (nv,) array
        Increments of the tree, complex; their real parts turn with the phase.
    size : float
        Factor of the motion.
    """

    def __init__(self, system: System, state: State, motion: NDArray[np.complex128], size: float):
        self.system = system
        phases = np.linspace(0.0, 2.0 * np.pi, FRAMES)
        self._states = []
        for phase in phases:
            q = increment(system, state.q, size * (motion * np.exp(1j * phase)).real)
            self._states.append(project(system, State(state.t, q, np.zeros(system.nv))).state)
        q = np.array([s.q for s in self._states])
        still = np.zeros((FRAMES, system.nv))
        q = shown(system, q, dimensions(system, "coordinate"))
        self.data = dataset(
            {"q": (("time", "coordinate"), q), "v": (("time", "speed"), still), "a": (("time", "speed"), still)},
            {
                "time": SECONDS * phases / (2.0 * np.pi),
                "coordinate": list(system.coordinates),
                "speed": list(system.speeds),
            },
        )

    def poses(self) -> tuple[Array, Array]:
        """Positions and rotations of all bodies."""
        motions = [body_motion(self.system, s) for s in self._states]
        return np.array([m.position for m in motions]), np.array([m.rotation for m in motions])

    def velocities(self) -> tuple[Array, Array]:
        """None: the speeds of a mode are not shown."""
        still = np.zeros((FRAMES, len(self.system.bodies), 3))
        return still, still


def mode_film(system: System, state: State, motion: NDArray[np.complex128], size: float | None = None) -> ModeFilm:
    """One period of a mode whose largest motion, in natural units, is `size`."""
    largest = float(np.abs(motion / system.speed_units).max(initial=0.0))
    if not largest > 0.0:
        raise LoopdynError("no position moves in this mode. Choose another.")
    if size is not None and not 0.0 < size < np.inf:
        raise LoopdynError(f"the size of the motion is {size}. Give a positive number, in natural units.")
    return ModeFilm(system, state, motion, (size or DISPLAYED) / largest)


def animate_mode(film: ModeFilm, path: str | Path, **options: Any) -> Path:
    """Write one period of a mode by :func:`loopdyn.output.animation.animate`."""
    return animate(film, path, **{"forces": False, **options} if Path(path).suffix == ".html" else options)
