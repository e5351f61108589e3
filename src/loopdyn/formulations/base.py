"""The contract of a formulation: ten rules that every method keeps.

1. Options live in a frozen dataclass; an unknown option raises.
2. ``supports(system)`` returns None, or the reason in words why not. Nothing falls back in silence.
3. ``prepare(system, rank)`` does everything that does not depend on the state; ``plan(system)`` explains it.
4. A solver called with ``(t, q, v)`` returns a :class:`Solution`: accelerations of the tree coordinates and
   multipliers of the constraint rows, ``M a = h + J^T lam``, ``J a = gamma``.
5. A method that is approximate by nature (penalty) says so in ``approximate`` and is tested by convergence.
6. Kernels return status codes; the solver turns them into errors in words. Inputs are never written.
7. Rank is decided in :mod:`loopdyn.loops.rank`; a solver receives the count and has no tolerance of its own.
8. A singular body inertia is legal whenever M is positive definite on the null space of J.
9. Reactions come from :mod:`loopdyn.loops.reactions`, whatever the formulation.
10. It passes :func:`loopdyn.check_formulation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.loops.rank import Rank
from loopdyn.system.system import System

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """What a formulation computes at one state.

    Attributes
    ----------
    a : (nv,) array
        Accelerations of the tree coordinates.
    lam : (nc,) array
        Multipliers of the constraint rows; under redundancy one of many, of minimum norm where the method says so.
    diagnostics : mapping
        What the method noticed: rows dropped, residual reached, iterations.
    """

    a: Array
    lam: Array
    diagnostics: Mapping[str, float] = field(default_factory=dict)


class Solver(Protocol):
    """A formulation prepared for one system."""

    def __call__(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state."""


@dataclass(frozen=True)
class Compiled:
    """What an integrator needs to run a solver in compiled loops: kernels, and the arrays they are called with.

    A solver that has it offers it as its attribute ``compiled``.

    Attributes
    ----------
    kernel : kernel
        ``kernel(ints, floats, work) -> int``: reads t, q, v from `work` (:class:`loopdyn.engine.records.Work`) and
        writes the accelerations to ``work.a``; returns -1 if all is well, -2 if they are not finite numbers, -3 to be
        prepared anew (`again`), else a status code from 0 on.
    correct : kernel or None
        ``correct(ints, floats, work) -> int``: one linear correction of q and v in `work` back to the constraints,
        smallest in the mass metric. None if there are no constraints.
    ints, floats, work : arrays
        They begin as those of the system do.
    explain : callable
        Turns a status code into the error that is meant.
    again : callable, optional
        Called where the kernel returned -3, with the state that it was called with in `work`: prepares the solver anew
        there and gives what to go on with. It raises where the solver cannot go on.
    remember : callable, optional
        What the solver has chosen on its way, as named arrays that a checkpoint can keep: results depend on it in their
        last digits.
    recall : callable, optional
        Takes such arrays and gives what to go on with as if the choices had been made here.
    accepted : kernel, optional
        ``accepted(ints, floats, work) -> int``: called at the end of every step that is taken, with the state and its
        accelerations in `work`; -1 to go on, -3 to be prepared anew first.
    keeps : tuple of str
        Levels, "position" and "velocity", at which `kernel` itself brings the state in `work` to the constraints.
    """

    kernel: Any
    correct: Any
    ints: NDArray[np.int64]
    floats: Array
    work: Array
    explain: Callable[[int], LoopdynError]
    again: Callable[[], Compiled] | None = None
    remember: Callable[[], Mapping[str, NDArray[Any]]] | None = None
    recall: Callable[[Mapping[str, NDArray[Any]]], Compiled] | None = None
    accepted: Any = None
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Formulation:
    """Base of all formulations; subclasses add their options as fields."""

    name: ClassVar[str] = ""
    approximate: ClassVar[bool] = False
    steps: ClassVar[bool] = False  # it makes steps itself: integrators of its own drive it

    def passes(self, system: System) -> bool:
        """Whether runs of `system` go through singular poses, and may start in one."""
        return False

    def explains(self, system: System, solver: Solver) -> str:
        """What a prepared solver has chosen, for the record of a run; empty if there was nothing to choose."""
        return str(getattr(solver, "explained", ""))

    def supports(self, system: System) -> str | None:
        """None if the method can treat `system`, else the reason in words."""
        return None

    def plan(self, system: System) -> str:
        """What the method would do with `system`, in words."""
        raise NotImplementedError

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Do everything that does not depend on the state.

        Called by :func:`loopdyn.prepare`, which first asks `supports`, decides the rank and refuses motions without
        inertia; whoever calls it directly answers for all three.
        """
        raise NotImplementedError
