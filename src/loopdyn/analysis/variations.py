"""Derivatives of a mechanism's equations by its parameters and along given motions, at one state.

A parameter changes the frozen floats of a system; their derivatives by it are five-point differences of systems with
other values of the parameter. With the accelerations a and multipliers lam of a state held, the changes of

    balance    E = M a - h - J^T lam
    rows       phi,   r = d phi/dt,   G = J a - gamma

along a change of time, coordinates and speeds come from complex steps through the kernels, exactly; those along the
floats from one central difference, since structure and numbers of programs are read from the floats as integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.derivatives import DIFFERENCE, Derivatives, TermsChange, no_change, parameter_value, varied
from loopdyn.errors import LoopdynError
from loopdyn.loops.continuation import largest
from loopdyn.loops.rank import is_large
from loopdyn.system.system import State, System
from loopdyn.tree import jacobian, rnea
from loopdyn.tree.functions import terms

Array = NDArray[np.float64]

# Step of the central difference along the floats, as a fraction of the parameter: its square and rounding divided by
# it are 1e-10 both.
ALONG_FLOATS = 1e-5
NODES = (1.0, -1.0, 2.0, -2.0)
AGREEING = 1e-8  # fraction of the largest term by which redundant rows may contradict each other in a derivative


def _combined(values: Sequence[Any], h: float) -> Any:
    return (8.0 * (values[0] - values[1]) - (values[2] - values[3])) / (12.0 * h)


class Family:
    """A system and its neighbours, with other values of some parameters.

    Parameters
    ----------
    system : System
    parameters : sequence of str

    Attributes
    ----------
    values : dict
        Values of the parameters.
    """

    def __init__(self, system: System, parameters: Sequence[str]):
        self.system, self.parameters = system, tuple(parameters)
        self.values = {name: parameter_value(system, name) for name in self.parameters}
        self.steps = {name: DIFFERENCE * (abs(x) or 1.0) for name, x in self.values.items()}

    @cached_property
    def neighbours(self) -> dict[str, tuple[System, ...]]:
        """By parameter, the systems at its values plus the multiples :data:`NODES` of its step."""
        return {name: tuple(self.varied(name, x * self.steps[name]) for x in NODES) for name in self.parameters}

    def varied(self, name: str, x: float) -> System:
        """System with a parameter larger by x."""
        s = self.system
        made = varied(s, name, self.values[name] + x)
        if not np.array_equal(made.ints, s.ints):
            raise LoopdynError(
                f"the formulas of '{s.name}' have other terms for other values of its parameter '{name}' (a table, or "
                "a term that vanishes), so there is no derivative by it here. Choose another value."
            )
        return made

    @cached_property
    def floats(self) -> dict[str, Array]:
        """Derivatives of the floats by each parameter."""
        return self.by_parameter(lambda s: s.floats)

    def difference(self, name: str, values: Sequence[Any]) -> Any:
        """Derivative by a parameter of what has these values at its neighbours."""
        return _combined(values, self.steps[name])

    def by_parameter(self, f: Callable[[System], Any]) -> dict[str, Any]:
        """Derivatives by each parameter of a function of the system."""
        return {name: _combined([f(s) for s in systems], self.steps[name]) for name, systems in self.neighbours.items()}


class Local(Derivatives):
    """Derivatives at a state whose rank is known, also by parameters; the state is taken as it is.

    Parameters
    ----------
    system : System
    state : State
    count : int
        Number of independent rows.
    a : (nv,) array, optional
        Accelerations, if they are not those of the dynamics.

    Attributes
    ----------
    margin : float
        Smallest singular value of the scaled rows, as a fraction of the largest or of one.
    """

    evaluations = 0  # real ones, of all objects
    complex_evaluations = 0

    def __init__(self, system: System, state: State, count: int, a: Array | None = None):
        Local.evaluations += 1
        self.system, self.state = system, state
        self.terms = now = terms(system, state)
        self.columns, self.rows = system.speed_units, system.row_units
        self._factorise(now, count)
        s = self._s
        self.margin = float(s[-1] / max(s[0], 1.0)) if count else 1.0
        if a is None:
            found, lam = self.solve(-now.h[:, None], -now.gamma[:, None])
            self.a, self.lam = found[:, 0], lam[:, 0]
        else:
            self.a = np.asarray(a, float)
            force = self.columns * (now.M @ self.a - now.h)
            self.lam = (self._U @ ((self._V.T @ force) / s)) / self.rows

    def changed(
        self, xi: Array, dv: Array, dt: float = 0.0, floats: Array | None = None, unit: float = 1.0, side: int = 0
    ) -> TermsChange:
        """Derivatives along one change of coordinates xi (nv,), of speeds dv, of time dt, and of floats.

        `unit` is the size of the parameter by which the floats change; with a `side`, 1 or -1, they are changed to this
        side only.
        """
        if dt == 0.0 and not xi.any() and not dv.any():
            found = no_change(self.system)
        else:
            Local.complex_evaluations += 1
            found = self.along(xi[:, None], dv[:, None], dt)
        if floats is not None and floats.any():
            h = ALONG_FLOATS * unit * (side or 1)
            steps = (h, -h) if side == 0 else (0.0, h, 2.0 * h)
            values = [self._with_floats(self.system.floats + x * floats) for x in steps]
            sum_ = values[0] - values[1] if side == 0 else 4.0 * values[1] - 3.0 * values[0] - values[2]
            found = found + self.split(sum_ / (2.0 * h))
        return TermsChange(*(x[:, 0] for x in (found.balance, found.phi, found.rate, found.bias)))

    def _with_floats(self, floats: Array) -> Array:
        """Residuals as :meth:`residuals`, for other floats; user forces, which these do not change, are left out."""
        s, here = self.system, self.state
        Local.evaluations += 1
        work = s.kept.take("real work", s.work)
        w = s.open_work(work)
        w.t[0], w.q[:], w.v[:], w.a[:], w.near[:] = here.t, here.q, here.v, self.a, 0.0
        J, rate = np.zeros((s.nc, s.nv)), np.zeros(s.nc)
        rnea.rnea(s.ints, floats, work)
        jacobian.constraint_terms(s.ints, floats, work, J, rate)
        found = np.concatenate([w.tau - J.T @ self.lam, w.phi, rate, J @ self.a - w.gamma])
        s.kept.give("real work", work)
        return found

    def smallest_for(self, rows: Array) -> Array:
        """Smallest motion (nv,), natural units, with J x = rows."""
        found: Array = self.smallest(rows[:, None])[:, 0]
        return found

    def open_by(self, rows: Array) -> float:
        """Largest part, natural units, of changes of rows that no motion can make."""
        r = rows / self.rows
        return largest(r - self._U @ (self._U.T @ r))


def require_dense(system: System) -> None:
    """Raise if a system is too large, or has rows whose second derivatives are not known."""
    if is_large(system):
        raise LoopdynError(
            f"'{system.name}' is too large for sensitivities, which use dense matrices: {system.nv} speeds, "
            f"{system.nc} rows. Take a part of it."
        )
    if system.mechanism.user_constraints:
        name = next(iter(system.mechanism.user_constraints))
        raise LoopdynError(
            f"constraint '{name}' is a Python function, whose second derivatives are not known exactly. Write it as a "
            "formula, ld.constraints.Relation, or as one of ld.constraints."
        )
    if system.tolerated is not None:
        raise LoopdynError(
            f"redundant rows of '{system.name}' are left open within a tolerance: {', '.join(system.tolerated.rows)}. "
            "Correct the dimensions so that all loops close; then there are derivatives."
        )
