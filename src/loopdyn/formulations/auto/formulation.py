"""`auto`: a regular method where the motion is regular, momentum steps through singular poses.

While the motion is regular, `graph` gives accelerations to any integrator, together with an indicator of how close a
singular pose is (:mod:`loopdyn.formulations.auto.singularity_monitor`). Where a step would lead into a singular pose,
or the steps collapse, :func:`loopdyn.simulate` hands over to steps of `momentum`, and returns to `graph` beyond the
pose. The run records these decisions and every singular passage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.status import FINE
from loopdyn.formulations.auto.singularity_monitor import (
    CHOSEN,
    LAST,
    LEAST,
    LOW,
    N_MONITOR,
    NOW,
    accelerate,
    accepted,
    correct,
    scratch_size,
)
from loopdyn.formulations.base import Array, Formulation, Solver, SolverKernels
from loopdyn.formulations.graph import Graph, GraphSolver
from loopdyn.formulations.momentum.formulation import Momentum, MomentumSolver, step_maker
from loopdyn.formulations.partition.formulation import Partition
from loopdyn.formulations.relative import Relative
from loopdyn.loops.rank import Rank, is_large, scaled
from loopdyn.system.system import State, System
from loopdyn.tree.functions import terms


class AutoSolver(GraphSolver):
    """A prepared :class:`Auto`: `graph` under watch, with steps of `momentum` at hand."""

    def __init__(self, system: System, rank: Rank):
        self.passes = Momentum().supports(system) is None  # whether it can pass singular poses
        super().__init__(system, rank, scratch_size(system, rank.count) if self.passes else 0)
        if self.passes:
            self._allow_choice()
            self.restart()

    def _allow_choice(self) -> None:
        """Say in which units rows may be chosen anew where the indicator is low, if there is room for it.

        Not where joints are severed: the kernels then see their rows among those of the system.
        """
        system, rank, scratch = self.elimination.system, self.rank.count, self.elimination.scratch
        if scratch.size > N_MONITOR and not self.elimination.plan.severed:
            self._monitor[CHOSEN] = rank
            first = system.work().size
            scratch[first : first + system.nv + system.nc] = np.concatenate([system.speed_units, system.row_units])

    @property
    def _monitor(self) -> Array:
        return self.elimination.scratch[-N_MONITOR:]

    @cached_property
    def momentum(self) -> MomentumSolver:
        """What makes steps through singular poses."""
        return step_maker(self.elimination.system, self.rank, self, order=2)

    @property
    def indicator(self) -> float:
        """The indicator at the last step; one before the first."""
        return float(self._monitor[LAST]) or 1.0

    def restart(self) -> None:
        """Forget the last step, not the largest pivots so far."""
        self._monitor[[LAST, NOW, LEAST]] = 0.0, 1.0, np.inf

    def hold_step(self) -> None:
        """Keep what was seen in a step that is examined more closely: the indicator at its end, and a dip inside."""
        last, self._end, least = self._monitor[[LAST, NOW, LEAST]]
        self.dips = bool(least < 0.5 * min(last, self._end))

    def take_step(self) -> None:
        """Take the step that is held."""
        self._monitor[[LAST, LEAST]] = self._end, np.inf

    def near_singular(self, state: State) -> bool:
        """Whether the pose is close to a singular one, compared with that where the rank was decided."""
        if not self.rank.count:
            return False
        if is_large(self.elimination.system):  # no singular values of large matrices
            return bool(self._monitor[NOW] < LOW)
        system, r = self.elimination.system, self.rank.count - 1
        values = np.linalg.svd(scaled(system, terms(system, state).J), compute_uv=False)
        return bool(values[r] < LOW * self.rank.singular_values[r])

    def accelerations(self, t: float, q: Array, v: Array) -> Array:
        """As `graph` finds them, under watch: for steps that are made in Python."""
        if self.passes:
            self._t[0], self._q[...], self._v[...] = t, q, v
            if accelerate(*self._arrays) == FINE:
                found: Array = self._a
                return found
        return super().accelerations(t, q, v)

    def step_status(self) -> int:
        """Whether a step that was made in Python may be taken."""
        return int(accepted(*self._arrays))

    @property
    def kernels(self) -> SolverKernels:
        """Kernels of `graph`, monitored where momentum steps could take over."""
        plain = super().kernels
        if not self.passes:
            return plain
        return replace(plain, accelerate=accelerate, correct=correct, accepted=accepted, monitor=self)

    def save_choices(self) -> Mapping[str, NDArray[Any]]:
        """... and the numbers of the monitor."""
        if not self.passes:
            return super().save_choices()
        e = self.elimination
        return {**super().save_choices(), "watch": e.array[e.array.size - N_MONITOR - e.plan.pattern.rows :].copy()}

    def restore_choices(self, saved: Mapping[str, NDArray[Any]]) -> SolverKernels:
        """... and the numbers of the monitor."""
        super().restore_choices(saved)
        if self.passes:
            watch = saved["watch"]
            self.elimination.array[-watch.size :] = watch
        return self.kernels


@dataclass(frozen=True)
class Auto(Formulation):
    """The default: `graph`, with momentum steps through singular poses.

    A model with user constraints is left to `relative` or `partition`; so is one to `partition` in which loops,
    constraints or drivers hold a body that has no inertia in the tree. The plan says so.

    Examples
    --------
    >>> import loopdyn as ld
    >>> print(ld.Auto().plan(ld.library.four_bar().compile()).splitlines()[0])
    auto: graph, in linear time; momentum steps where a pose is singular
    """

    name: ClassVar[str] = "auto"

    def regular(self, system: System) -> Formulation:
        """What is used where the motion is regular."""
        if system.unsupported:  # the tree alone has no inertia there: only what is reduced by all rows has
            return Partition()
        possible = (Graph(), Relative(), Partition())
        return next((f for f in possible if f.supports(system) is None), possible[0])

    def supports(self, system: System) -> str | None:
        """Whatever `graph`, `relative` or `partition` treats."""
        return self.regular(system).supports(system)

    def passes(self, system: System) -> bool:
        """Where the regular method is `graph`, which is watched, and momentum steps are possible."""
        return self.regular(system) == Graph() and Momentum().supports(system) is None

    def choice(self, system: System) -> str:
        """What is used where, in one line."""
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
        """Which formulations a run uses."""
        return self.choice(system)

    def plan(self, system: System) -> str:
        """What is used where, and the plan of it."""
        return f"auto: {self.choice(system)}\n{self.regular(system).plan(system)}"

    def prepare(self, system: System, rank: Rank) -> Solver:
        """The regular solver."""
        regular = self.regular(system)
        return AutoSolver(system, rank) if regular == Graph() else regular.prepare(system, rank)
