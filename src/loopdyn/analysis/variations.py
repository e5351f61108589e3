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
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.loops.continuation import largest
from loopdyn.loops.rank import is_large, scaled
from loopdyn.quantities.wording import unknown
from loopdyn.system.system import State, System
from loopdyn.system.variation import with_parameters
from loopdyn.tree import jacobian, kinematics, rnea
from loopdyn.tree.functions import Terms, add_user_forces, increment, terms

Array = NDArray[np.float64]

STEP = 1e-20  # imaginary; its square is lost next to one, nothing else limits it
# Step of five-point differences, as a fraction of the value or of one: the error is its fourth power, 1e-12, and
# rounding divided by it, 1e-13.
DIFFERENCE = 1e-3
# Step of the central difference along the floats, as a fraction of the parameter: its square and rounding divided by
# it are 1e-10 both.
ALONG_FLOATS = 1e-5
NODES = (1.0, -1.0, 2.0, -2.0)
CONSISTENT = 1e-8  # fraction of the largest term by which redundant rows may contradict each other in a derivative


def five_points(f: Callable[[float], Any], h: float) -> Any:
    """Derivative of f at zero by Richardson's extrapolation of two central differences."""
    return _combined([f(x * h) for x in NODES], h)


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
        known = system.mechanism.parameters
        self.system, self.parameters = system, tuple(parameters)
        wrong = [name for name in self.parameters if name not in known]
        if wrong:
            raise unknown("sensitivity", "parameter", wrong, known)
        for name in self.parameters:
            if isinstance(known[name], str):
                message = f"'{name}' is the formula '{known[name]}'"
                raise ModelError([Problem("parameter", message, "Name the parameters that it depends on.")])
        self.values = {name: float(known[name]) for name in self.parameters}
        self.steps = {name: DIFFERENCE * (abs(x) or 1.0) for name, x in self.values.items()}

    @cached_property
    def neighbours(self) -> dict[str, tuple[System, ...]]:
        """By parameter, the systems at its values plus the multiples :data:`NODES` of its step."""
        return {name: tuple(self.varied(name, x * self.steps[name]) for x in NODES) for name in self.parameters}

    def varied(self, name: str, x: float) -> System:
        """System with a parameter larger by x."""
        s = self.system
        made = with_parameters(s, {name: self.values[name] + x})
        if made.coordinates != s.coordinates or made.constraint_rows != s.constraint_rows:
            raise LoopdynError(
                f"the structure of '{s.name}' changes with its parameter '{name}', so there is no derivative by it "
                "here. Compile with other cuts=[...], or choose another value."
            )
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


@dataclass(frozen=True)
class Change:
    """Derivatives of balance and rows along one direction, accelerations and multipliers held; SI."""

    balance: Array
    phi: Array
    rate: Array
    bias: Array


class Local:
    """Equations of motion at one state, factorised, and their derivatives.

    Parameters
    ----------
    system : System
    state : State
    count : int
        Number of independent rows.
    a : (nv,) array, optional
        Accelerations, if they are not those of the dynamics.
    """

    evaluations = 0  # real ones, of all objects
    complex_evaluations = 0

    def __init__(self, system: System, state: State, count: int, a: Array | None = None):
        self.system, self.state = system, state
        self.terms: Terms = terms(system, state)
        type(self).evaluations += 1
        now, n = self.terms, count
        self.columns, self.rows = system.speed_units, system.row_units
        A = scaled(system, now.J)
        U, s, Vt = np.linalg.svd(A) if system.nc else (np.eye(0), np.zeros(0), np.eye(system.nv))
        self._U, self._s, self._V, self.motions = U[:, :n], s[:n], Vt[:n].T, Vt[n:].T
        self._M = now.M * np.outer(self.columns, self.columns)
        self.margin = float(s[n - 1] / max(s[0], 1.0)) if n else 1.0
        if a is None:
            self.a, self.lam = self.solve(-now.h[:, None], -now.gamma[:, None])
            self.a, self.lam = self.a[:, 0], self.lam[:, 0]
        else:
            self.a = np.asarray(a, float)
            lam = self._U @ ((self._V.T @ (self.columns * (now.M @ self.a - now.h))) / self._s)
            self.lam = lam / self.rows

    def along(self, xi: Array, dv: Array, dt: float = 0.0, floats: Array | None = None, unit: float = 1.0) -> Change:
        """Derivatives along a change of coordinates by xi, of speeds by dv, of time by dt, and of floats.

        `unit` is the size of the parameter by which the floats change.
        """
        found = self._along_state(xi, dv, dt)
        if floats is None or not floats.any():
            return found
        h = ALONG_FLOATS * unit
        up, down = (self._residuals(self.system.floats + x * floats) for x in (h, -h))
        parts = [(a - b) / (2.0 * h) for a, b in zip(up, down, strict=True)]
        return Change(found.balance + parts[0], found.phi + parts[1], found.rate + parts[2], found.bias + parts[3])

    def _along_state(self, xi: Array, dv: Array, dt: float) -> Change:
        s = self.system
        if dt == 0.0 and not xi.any() and not dv.any():
            return Change(*(np.zeros(n) for n in (s.nv, s.nc, s.nc, s.nc)))
        type(self).complex_evaluations += 1
        work = s.kept.take("complex work", lambda: s.work(np.complex128))
        w, here = s.open_work(work), self.state
        kinematics.plus(s.ints, s.floats, here.q.astype(complex), 1j * STEP * xi, w.q)
        w.t[0], w.v[:], w.a[:], w.near[:] = here.t + 1j * STEP * dt, here.v + 1j * STEP * dv, self.a, 0.0
        J, rate = np.zeros((s.nc, s.nv), complex), np.zeros(s.nc, complex)
        rnea.rnea(s.ints, s.floats, work)
        jacobian.constraint_terms(s.ints, s.floats, work, J, rate)
        turned = J.imag / STEP
        found = Change(
            w.tau.imag / STEP - turned.T @ self.lam, w.phi.imag / STEP, rate.imag / STEP,
            turned @ self.a - w.gamma.imag / STEP,
        )  # fmt: skip
        s.kept.give("complex work", work)
        found = Change(found.balance - self._user_forces(xi, dv, dt), found.phi, found.rate, found.bias)
        if not all(np.isfinite(x).all() for x in (found.balance, found.phi, found.rate, found.bias)):
            raise LoopdynError(
                f"a force or constraint of '{s.name}' has no derivative at t = {here.t:g} s: points of a spring that "
                "coincide, the end of a table, or a formula such as sqrt at zero. Choose another state."
            )
        return found

    def _user_forces(self, xi: Array, dv: Array, dt: float) -> Array:
        """Derivative of user forces, by five-point differences: they need not take complex numbers."""
        s, here = self.system, self.state
        if not s.mechanism.user_forces:
            return np.zeros(s.nv)
        size = max(largest(xi / self.columns), largest(dv / self.columns), abs(dt))

        def at(x: float) -> Array:
            out = np.zeros(s.nv)
            add_user_forces(s, here.t + x * dt, increment(s, here.q, x * xi), here.v + x * dv, out)
            return out

        found: Array = five_points(at, DIFFERENCE / size)
        return found

    def _residuals(self, floats: Array) -> tuple[Array, Array, Array, Array]:
        """Balance and rows at the state for other floats, user forces left out."""
        s, here = self.system, self.state
        type(self).evaluations += 1
        work = s.kept.take("real work", s.work)
        w = s.open_work(work)
        w.t[0], w.q[:], w.v[:], w.a[:], w.near[:] = here.t, here.q, here.v, self.a, 0.0
        J, rate = np.zeros((s.nc, s.nv)), np.zeros(s.nc)
        rnea.rnea(s.ints, floats, work)
        jacobian.constraint_terms(s.ints, floats, work, J, rate)
        found = w.tau - J.T @ self.lam, w.phi.copy(), rate, J @ self.a - w.gamma
        s.kept.give("real work", work)
        return found

    # ----------------------------------------------------------------------------------------------- solution

    @cached_property
    def _reduced(self) -> Array:
        N = self.motions
        return np.linalg.inv(N.T @ self._M @ N)

    def solve(self, balance: Array, bias: Array) -> tuple[Array, Array]:
        """Changes (nv, m) of accelerations and (nc, m) of multipliers for those of balance and rows."""
        V, N = self._V, self.motions
        b = self.columns[:, None] * balance
        a = -V @ ((self._U.T @ (bias / self.rows[:, None])) / self._s[:, None])
        a = a - N @ (self._reduced @ (N.T @ (b + self._M @ a)))
        lam = self._U @ ((V.T @ (self._M @ a + b)) / self._s[:, None])
        return self.columns[:, None] * a, lam / self.rows[:, None]

    def smallest(self, rows: Array) -> Array:
        """Smallest motion (nv,), in natural units, with J x = rows."""
        found: Array = self.columns * (self._V @ ((self._U.T @ (rows / self.rows)) / self._s))
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
