"""The contract of a formulation, in types.

1. Options live in a frozen dataclass, a subclass of :class:`Formulation`; an unknown option raises.
2. ``supports(system)`` returns None, or the reason why not, in words. There is no silent fallback.
3. ``prepare(system, rank)`` does everything that does not depend on the state and returns a :class:`Solver`;
   ``plan(system)`` explains it.
4. A solver called with ``(t, q, v)`` returns a :class:`Solution`: accelerations of the tree coordinates and
   multipliers of the constraint rows, ``M a = h + J^T lam``, ``J a = gamma``. Its kernels, for compiled loops, are one
   :class:`SolverKernels`; what is optional is a named part of it: :class:`Choices`, :class:`CoordinateChoice`,
   :class:`SingularityMonitor`. A formulation that makes steps itself prepares a :class:`SteppingSolver`.
5. A method that is approximate by nature (penalty) says so in ``approximate`` and is tested by convergence.
6. Kernels return codes of :mod:`loopdyn.engine.status`; ``SolverKernels.explain`` turns them into errors in words, by
   :mod:`loopdyn.formulations.failures`. Inputs are never written. Kernels release the GIL; a solver serves one thread
   at a time, and raises if two use it at once.
7. Rank is decided in :mod:`loopdyn.loops.rank`; a solver receives the count and has no tolerance of its own.
8. A singular body inertia is legal whenever M is positive definite on the null space of J.
9. Reactions come from :mod:`loopdyn.loops.reactions`, whatever the formulation.
10. It passes :func:`loopdyn.formulations.check_formulation`.

No code outside a formulation's own module or folder checks the class of a solver: only this contract may be used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.loops.rank import Rank
from loopdyn.system.system import State, System

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """Result of a formulation at one state.

    Attributes
    ----------
    a : (nv,) array
        Accelerations of the tree coordinates.
    lam : (nc,) array
        Multipliers of the constraint rows; under redundancy one of many solutions, of minimum norm for some methods.
    diagnostics : mapping
        Figures of the method: rows dropped, residual reached, iterations.
    """

    a: Array
    lam: Array
    diagnostics: Mapping[str, float] = field(default_factory=dict)


class Solver(ABC):
    """A formulation prepared for one system. It serves one thread at a time: kernels write to its work array."""

    _free: Lock

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Make a solver that nobody uses."""
        made = super().__new__(cls)
        made._free = Lock()
        return made

    def __call__(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state; raises while another thread uses the solver."""
        if not self._free.acquire(blocking=False):
            raise LoopdynError("a solver is used by two threads at once. Prepare one for each thread: ld.prepare(...).")
        try:
            return self.solve(t, q, v)
        finally:
            self._free.release()

    @abstractmethod
    def solve(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state."""

    @property
    def kernels(self) -> SolverKernels | None:
        """Kernels for compiled loops; None if the solver can only be called from Python."""
        return None

    @property
    def explained(self) -> str:
        """Choices made, for the record of a run; empty if there was nothing to choose."""
        return ""


class FixedSolver(Solver):
    """A solver prepared at one pose of a system for all others, which chooses nothing again.

    What it finds at a state depends on this state alone, not on those before; it tells where it must not be used.
    """

    @abstractmethod
    def attempt(self, t: float, q: Array, v: Array) -> bool:
        """Compute at a state; False where rank or rows are, or may be, others there than where it was prepared."""

    @abstractmethod
    def use_numbers(self, system: System) -> None:
        """Continue with another system of the same structure: other masses, forces, gravity, poses of joints.

        It must have inertia against every motion of the tree, see
        :func:`loopdyn.system.variation.same_but_for_geometry`.
        """

    @abstractmethod
    def found(self, full: bool) -> Array | Solution:
        """Result of the last successful attempt: the accelerations, or the whole solution."""


class FunctionSolver(Solver):
    """A solver made of a function of ``(t, q, v)``, and of kernels if there are any.

    Examples
    --------
    >>> solve = FunctionSolver(lambda t, q, v: Solution(np.zeros(1), np.zeros(0)))
    >>> solve(0.0, np.zeros(1), np.zeros(1)).a, solve.kernels
    (array([0.]), None)
    """

    def __init__(self, function: Callable[[float, Array, Array], Solution], kernels: SolverKernels | None = None):
        self._function, self._kernels = function, kernels

    def solve(self, t: float, q: Array, v: Array) -> Solution:
        """Accelerations and multipliers at one state."""
        return self._function(t, q, v)

    @property
    def kernels(self) -> SolverKernels | None:
        """Kernels that were given."""
        return self._kernels


# ------------------------------------------------------------------------------------------- compiled loops


@dataclass(frozen=True)
class SolverKernels:
    """Kernels and arrays with which an integrator runs a solver in compiled loops.

    Attributes
    ----------
    accelerate : kernel
        ``accelerate(ints, floats, work) -> status``: reads t, q, v from `work`
        (:class:`loopdyn.engine.records.Work`) and writes the accelerations to ``work.a``.
    correct : kernel or None
        ``correct(ints, floats, work) -> status``: one linear correction of q and v in `work` back to the constraints,
        smallest in the mass metric. None if there are no constraints, or nothing to correct.
    ints, floats, work : arrays
        They begin with those of the system.
    explain : callable
        Turns a status other than FINE into the corresponding error.
    accepted : kernel, optional
        ``accepted(ints, floats, work) -> status``: called at the end of every accepted step, with the state and its
        accelerations in `work`; AGAIN calls for :meth:`Choices.choose_again`, PASSAGE is a warning of the monitor.
    keeps : tuple of str
        Levels, "position" and "velocity", at which `accelerate` itself brings the state in `work` to the constraints.
    choices : Choices, optional
        Choices of the solver during a run, if it makes any.
    coordinates : CoordinateChoice, optional
        Choice of independent speeds, if the solver has one.
    monitor : SingularityMonitor, optional
        Singularity indicator, and steps through singular poses, if the solver has them.
    refer_to : callable, optional
        ``refer_to(system, state)`` makes another state the first of a run without choosing again, if a
        :class:`FixedSolver` of the method has told that the choices hold there. The system may have other numbers, see
        :meth:`FixedSolver.use_numbers`.
    """

    accelerate: Any
    correct: Any
    ints: NDArray[np.int64]
    floats: Array
    work: Array
    explain: Callable[[int], LoopdynError]
    accepted: Any = None
    keeps: tuple[str, ...] = ()
    choices: Choices | None = None
    coordinates: CoordinateChoice | None = None
    monitor: SingularityMonitor | None = None
    refer_to: Callable[[System, State], None] | None = None


class Choices(Protocol):
    """Choices of a solver during a run (rows, coordinates, branches): the last digits of results depend on them."""

    def choose_again(self) -> SolverKernels:
        """Choose again at the state in `work`, where a kernel returned AGAIN; returns the kernels to continue with.

        Raises the corresponding error if the solver cannot continue.
        """

    def save_choices(self) -> Mapping[str, NDArray[Any]]:
        """Present choices as named arrays, for a checkpoint."""

    def restore_choices(self, saved: Mapping[str, NDArray[Any]]) -> SolverKernels:
        """Restore saved choices; returns the kernels to continue with, as if these choices had been made here."""


class CoordinateChoice(Protocol):
    """Independent speeds of a solver, and how they are compared."""

    @property
    def active(self) -> tuple[str, ...]:
        """Labels of the speeds that are independent at present in the run."""

    def criterion(self, t: Array, q: Array, v: Array, active: NDArray[np.bool_]) -> Array:
        """Criterion of each speed as an independent one (n, nv) at n states, given regular sets at these states."""


class SingularityMonitor(Protocol):
    """Indicator of how close a motion comes to singular poses, and the solver that makes steps through them."""

    @property
    def momentum(self) -> PassingSolver:
        """Solver that makes steps through singular poses."""

    @property
    def indicator(self) -> float:
        """Indicator at the last step, zero in a singular pose; one before the first."""

    @property
    def dips(self) -> bool:
        """Whether the indicator had a dip inside the step that `hold_step` keeps."""

    def restart(self) -> None:
        """Forget the last step."""

    def near_singular(self, state: State) -> bool:
        """Whether the pose is close to a singular one, relative to the pose where the rank was decided."""

    def step_status(self) -> int:
        """Status of a step made in Python: FINE if it may be accepted, PASSAGE if it leads to a singular pose."""

    def hold_step(self) -> None:
        """Keep the results of a step that is examined more closely."""

    def take_step(self) -> None:
        """Accept the step that is held."""


# -------------------------------------------------------------------------------------------- steps of its own


class SteppingSolver(Solver):
    """A stepping formulation, prepared for one system."""

    @abstractmethod
    def step(self, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """One step of the time h: q, v, impulses of the constraint rows.

        Raises
        ------
        ConvergenceError
            If there is no such step.
        """


@dataclass(frozen=True)
class Step:
    """Result of a step.

    Attributes
    ----------
    q, v : arrays
        The state at its end.
    indicator : float
        Singularity indicator at the ends of its substeps: the smallest length of the component of a constraint row
        that is orthogonal to the rows before it, in natural units.
    impulse : (nc,) array
        Multipliers of the constraint rows, integrated over the step; under redundancy one of many solutions.
    place : place
        The solver's own data about its end; valid until the next step is made.
    """

    q: Array
    v: Array
    indicator: float
    impulse: Array
    place: Any


class PassingSolver(SteppingSolver):
    """A stepping solver whose symmetric steps of order two pass singular poses and can be extrapolated.

    Attributes
    ----------
    first : float
        Indicator at the start of the steps.
    last : Step
        The last step.
    places : sequence of places
        The first is the start of the steps.
    """

    first: float
    last: Step
    places: Sequence[Any]

    @abstractmethod
    def begin(self, t: float, q: Array, v: Array, inexact: float = 0.0) -> float:
        """Make a closed state, known to within `inexact`, the start of the following steps; returns its indicator."""

    @abstractmethod
    def take_steps(
        self, h: float, shares: Sequence[float], visit: Callable[[float, Array, Array], None] | None = None
    ) -> Step:
        """Make steps of order two, shares of the time h, from the last :meth:`begin`; calls `visit` with each end."""

    @abstractmethod
    def take_sequences(self, h: float, shares: Array) -> tuple[Array, Step]:
        """Make sequences of steps, rows of `shares` filled up with zeros, each from the last :meth:`begin`.

        Returns increments and speeds at the end of each, and the last one with the smallest indicator of all.
        """

    @abstractmethod
    def closed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """One linear correction of coordinates and speeds back to the constraints."""

    @abstractmethod
    def place_at(self, t: float, q: Array, v: Array) -> Any:
        """Place of a state at which a step could end; the start of the steps is unchanged."""

    @abstractmethod
    def indicator_at(self, place: Any) -> float:
        """Indicator of a place."""

    @abstractmethod
    def orientation(self, place: Any) -> Array:
        """Square matrix that tells on which side of singular poses a place is: identity at the start of the steps."""

    @abstractmethod
    def rank_losses_between(self, a: Array, b: Array) -> int:
        """Number of times that rows lose their independence between two places with these orientations."""

    @abstractmethod
    def same_side(self, last: Any) -> bool:
        """Whether a place is on the same side of singular poses as the start of the steps."""


# ------------------------------------------------------------------------------------------------ formulations


@dataclass(frozen=True)
class Formulation:
    """Base of all formulations; subclasses add their options as fields."""

    name: ClassVar[str] = ""
    approximate: ClassVar[bool] = False
    uses_absolute: ClassVar[bool] = False  # whether it computes with `system.absolute`, which has arrays of its own
    steps: ClassVar[bool] = False  # whether it is a stepping formulation, with integrators of its own

    @property
    def one_size(self) -> bool:
        """Whether its own steps can only be of one size."""
        return False

    def passes(self, system: System) -> bool:
        """Whether runs of `system` go through singular poses, and may start in one."""
        return False

    def explains(self, system: System, solver: Solver) -> str:
        """Choices of a prepared solver, for the record of a run; empty if there was nothing to choose."""
        return solver.explained

    def supports(self, system: System) -> str | None:
        """None if the method supports `system`, else the reason in words."""
        return None

    def plan(self, system: System) -> str:
        """Description of how the method would solve `system`."""
        raise NotImplementedError

    def prepare(self, system: System, rank: Rank) -> Solver:
        """Do everything that does not depend on the state.

        Called by :func:`loopdyn.prepare`, which first checks `supports`, decides the rank and rejects motions without
        inertia; direct callers must do all three.
        """
        raise NotImplementedError

    def prepare_fixed(self, system: System, rank: Rank) -> FixedSolver | None:
        """Solver for the rank at one regular pose, if the method has one that notices where the rank differs."""
        return None
