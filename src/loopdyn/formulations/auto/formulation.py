"""`auto`: a regular method where the motion is regular, momentum steps through singular poses.

While the motion is regular, `graph` gives accelerations to any integrator, together with an indicator of how close a
singular pose is (:mod:`loopdyn.formulations.auto.singularity_monitor`). Where a step would lead into a singular pose,
or the steps collapse, :func:`loopdyn.simulate` switches to steps of `momentum`, and returns to `graph` beyond the
pose. The run records these decisions and every singular passage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.layout import opened
from loopdyn.engine.status import FINE
from loopdyn.formulations.auto import layout
from loopdyn.formulations.auto.layout import LAST, LEAST, NOW
from loopdyn.formulations.auto.singularity_monitor import LOW, accelerate, accepted, add_monitor, correct
from loopdyn.formulations.base import Array, FixedSolver, Formulation, Solver, SolverKernels
from loopdyn.formulations.graph import Graph, GraphSolver
from loopdyn.formulations.momentum.formulation import Momentum, MomentumSolver, step_maker
from loopdyn.formulations.partition.formulation import Partition
from loopdyn.formulations.relative import Relative
from loopdyn.loops.rank import Rank, is_large, scaled
from loopdyn.system.system import State, System
from loopdyn.tree.functions import terms


class AutoSolver(GraphSolver):
    """A prepared :class:`Auto`: `graph` with a singularity monitor, and steps of `momentum` for singular passages."""

    _monitor: layout.Monitor | None = None

    def __init__(self, system: System, rank: Rank):
        self.passes = Momentum().supports(system) is None  # whether it can pass singular poses
        super().__init__(system, rank, partial(add_monitor, rank=rank.count) if self.passes else None)
        if self.passes:
            self.restart()

    def _open(self) -> None:
        """Open the views of `graph` and the monitor; its indicator, not its pivots, is kept when rows change."""
        super()._open()
        if self.passes:
            before, self._monitor = self._monitor, opened(layout.open_monitor, *self._arrays)
            if before is not None:
                self._indicator[:] = before.indicator

    def use_numbers(self, system: System) -> None:
        """Continue with another system of the same structure, and its natural units."""
        super().use_numbers(system)
        if self._monitor is not None:
            m = self._monitor
            m.unit[...], m.row_unit[...] = system.speed_units[: len(m.unit)], system.row_units[: len(m.row_unit)]

    @property
    def _indicator(self) -> Array:
        assert self._monitor is not None
        found: Array = self._monitor.indicator
        return found

    @cached_property
    def momentum(self) -> MomentumSolver:
        """Solver that makes steps through singular poses."""
        return step_maker(self.elimination.system, self.rank, self, order=2)

    @property
    def indicator(self) -> float:
        """Singularity indicator at the last step; one before the first."""
        return float(self._indicator[LAST]) or 1.0

    def restart(self) -> None:
        """Forget the last step, but keep the largest pivots so far."""
        self._indicator[[LAST, NOW, LEAST]] = 0.0, 1.0, np.inf

    def hold_step(self) -> None:
        """Keep the results of a step that is examined more closely: the indicator at its end, and a dip inside."""
        last, self._end, least = self._indicator[[LAST, NOW, LEAST]]
        self.dips = bool(least < 0.5 * min(last, self._end))

    def take_step(self) -> None:
        """Accept the step that is held."""
        self._indicator[[LAST, LEAST]] = self._end, np.inf

    def near_singular(self, state: State) -> bool:
        """Whether the pose is close to a singular one, relative to the pose where the rank was decided."""
        if not self.rank.count:
            return False
        if is_large(self.elimination.system):  # no singular values of large matrices
            return bool(self._indicator[NOW] < LOW)
        system, r = self.elimination.system, self.rank.count - 1
        values = np.linalg.svd(scaled(system, terms(system, state).J), compute_uv=False)
        return bool(values[r] < LOW * self.rank.singular_values[r])

    def accelerations(self, t: float, q: Array, v: Array) -> Array:
        """Accelerations of `graph`, monitored, for steps made in Python."""
        if self.passes:
            self._t[0], self._q[...], self._v[...] = t, q, v
            if accelerate(*self._arrays) == FINE:
                found: Array = self._a
                return found
        return super().accelerations(t, q, v)

    def step_status(self) -> int:
        """Status of a step made in Python: whether it may be accepted."""
        return int(accepted(*self._arrays))

    @property
    def kernels(self) -> SolverKernels:
        """Kernels of `graph`, with the singularity monitor if momentum steps can take over."""
        plain = super().kernels
        if not self.passes:
            return plain
        return replace(plain, accelerate=accelerate, correct=correct, accepted=accepted, monitor=self)

    def save_choices(self) -> Mapping[str, NDArray[Any]]:
        """Choices of `graph`, and the values of the monitor."""
        if self._monitor is None:
            return super().save_choices()
        m = self._monitor
        return {**super().save_choices(), "indicator": m.indicator.copy(), "pivots": m.pivot.copy()}

    def restore_choices(self, saved: Mapping[str, NDArray[Any]]) -> SolverKernels:
        """Restore the choices of `graph`, and the values of the monitor."""
        super().restore_choices(saved)
        if self._monitor is not None:
            self._monitor.indicator[:], self._monitor.pivot[:] = saved["indicator"], saved["pivots"]
        return self.kernels


def _regular(system: System) -> Formulation:
    if system.unsupported:  # the tree alone has no inertia there, only the equations reduced by all rows have
        return Partition()
    possible = (Graph(), Relative(), Partition())
    return next((f for f in possible if f.supports(system) is None), possible[0])


@dataclass(frozen=True)
class Auto(Formulation):
    """The default: `graph`, with momentum steps through singular poses.

    Models with user constraints are solved by `relative` or `partition`, and models in which loops, constraints or
    drivers hold a body that has no inertia in the tree by `partition`. The plan says which.

    Examples
    --------
    >>> import loopdyn as ld
    >>> print(ld.Auto().plan(ld.library.four_bar().compile()).splitlines()[0])
    auto: graph, in linear time; momentum steps where a pose is singular
    """

    name: ClassVar[str] = "auto"

    def regular(self, system: System) -> Formulation:
        """Formulation for regular motion."""
        return system.kept.find("regular method", None, lambda: _regular(system))

    def supports(self, system: System) -> str | None:
        """All systems that `graph`, `relative` or `partition` supports."""
        return self.regular(system).supports(system)

    def passes(self, system: System) -> bool:
        """Whether the regular method is `graph`, which has a singularity monitor, and momentum steps are possible."""
        return self.regular(system) == Graph() and Momentum().supports(system) is None

    def choice(self, system: System) -> str:
        """Formulations used, in one line."""
        regular, refusal = self.regular(system), Momentum().supports(system)
        if system.unsupported:
            one = len(system.unsupported) == 1
            them = ", ".join(f"'{b}'" for b in system.unsupported)
            reason = f"{'body' if one else 'bodies'} {them} {'has' if one else 'have'} no inertia in the tree"
            return f"{regular.name}, since {reason}; no momentum steps"
        if regular != Graph():
            return f"{regular.name}, since the model has user constraints; no momentum steps"
        where = "momentum steps where a pose is singular" if refusal is None else f"no momentum steps: {refusal}"
        return f"graph, in linear time; {where}"

    def explains(self, system: System, solver: Solver) -> str:
        """Formulations that a run uses."""
        return self.choice(system)

    def plan(self, system: System) -> str:
        """Formulations used, and the plan of the regular one."""
        return f"auto: {self.choice(system)}\n{self.regular(system).plan(system)}"

    def prepare(self, system: System, rank: Rank) -> Solver:
        """The regular solver."""
        regular = self.regular(system)
        return AutoSolver(system, rank) if regular == Graph() else regular.prepare(system, rank)

    def prepare_fixed(self, system: System, rank: Rank) -> FixedSolver | None:
        """Solver of the regular method; at one state there is nothing to monitor."""
        return self.regular(system).prepare_fixed(system, rank)
