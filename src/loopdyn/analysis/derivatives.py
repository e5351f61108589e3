"""Exact derivatives of accelerations and multipliers of a closed mechanism at one state.

With the accelerations a and multipliers lam of the state held,

    balance    E(t, q, v)  = M a - h - J^T lam         zero at the state
    rows       phi(t, q),  r(t, q, v) = d phi/dt,  G(t, q, v) = J a - gamma      zero at the state

are evaluated by the kernels in complex numbers at q (+) i h xi, v + i h dv, t + i h dt: imaginary parts divided by h
are the derivatives along (xi, dv, dt), without cancellation, so that h can be tiny. Then, with the changes da and dlam,

    M da - J^T dlam = -dE,     J da = -dG.

Rows may be redundant: da is unique along motions that keep them all closed (d phi = 0, dr = 0). Of dlam the smallest
change in natural units is given; only what every self-balanced set of multipliers leaves unchanged has a meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.closed_motion import require_closed
from loopdyn.engine import records as rec
from loopdyn.errors import AssemblyError, LoopdynError, ModelError, Problem
from loopdyn.formulations.oracle import solve_dense
from loopdyn.loops.continuation import largest
from loopdyn.loops.rank import decide, is_large, require_inertia, require_regular, scaled
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import State, System, require_state
from loopdyn.thresholds import CONSISTENT, NEARLY_CLOSED
from loopdyn.tree import jacobian, kinematics, rnea
from loopdyn.tree.functions import Terms, add_user_forces, constraint_equations, terms

Array = NDArray[np.float64]

STEP = 1e-20  # imaginary; its square is lost next to one, nothing else limits it
# Step of differences by parameters and of user forces, as a fraction of the value or of one: with five points its
# fourth power is the error, 1e-12, and rounding divided by it 1e-13.
DIFFERENCE = 1e-3


@dataclass(frozen=True)
class TermsChange:
    """Derivatives (n, m) of balance and rows along m directions, accelerations and multipliers held; SI.

    Attributes
    ----------
    balance : (nv, m) array
        Of ``M a - h - J^T lam``.
    phi, rate, bias : (nc, m) array
        Of phi, of its rate, and of ``J a - gamma``.
    """

    balance: Array
    phi: Array
    rate: Array
    bias: Array

    def __add__(self, other: TermsChange) -> TermsChange:
        return TermsChange(
            self.balance + other.balance, self.phi + other.phi, self.rate + other.rate, self.bias + other.bias
        )


def no_change(system: System, m: int = 1) -> TermsChange:
    """Zeros for m directions."""
    rows = np.zeros((system.nc, m))
    return TermsChange(np.zeros((system.nv, m)), rows, rows.copy(), rows.copy())


class Derivatives:
    """Derivatives at one closed state of a mechanism.

    Parameters
    ----------
    system : System
    state : State
        A closed state.

    Attributes
    ----------
    state : State
        The state, closed to rounding.
    terms : Terms
        Terms of the equations of motion there.
    a, lam : arrays
        Accelerations (nv,), and multipliers (nc,) of least norm; SI.
    motions : (nv, m) array
        Orthonormal basis, in natural units, of the speeds that all rows allow.

    Raises
    ------
    AssemblyError
        If the loops are open, or the speeds violate the constraints.
    SingularityError
        At a singular pose, and where a motion has no inertia.

    Examples
    --------
    Acceleration of a pendulum of length 1 m by its angle, at rest below its axis:

    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> at = Derivatives(system, system.state(q={"A": np.pi / 2}))
    >>> change = at.along(np.ones((1, 1)), np.zeros((1, 1)))
    >>> at.solve(change.balance, change.bias)[0].round(9)
    array([[-9.81]])
    """

    def __init__(self, system: System, state: State):
        if is_large(system):
            raise LoopdynError(
                f"'{system.name}' is too large for dense derivatives: {system.nv} speeds, {system.nc} rows. "
                "Linearize a part of it."
            )
        if system.mechanism.user_constraints:
            name = next(iter(system.mechanism.user_constraints))
            raise LoopdynError(
                f"constraint '{name}' is a Python function, whose second derivatives are not known exactly. Write it "
                "as a formula, ld.constraints.Relation, or as one of ld.constraints."
            )
        require_state(system, state)
        phi = constraint_equations(system, state)[0] / system.row_units
        if largest(phi[system.holonomic]) > NEARLY_CLOSED:
            require_closed(system, state)  # which says by how much
        rank = decide(system, state)
        require_regular(system, rank)
        require_inertia(system, state, rank)
        self.system, self.rank = system, rank
        closed = rank.state or state
        gap = largest((closed.v - state.v) / system.speed_units)
        if gap > CONSISTENT * max(1.0, largest(state.v / system.speed_units)):
            raise AssemblyError(
                f"the speeds of this state violate the constraints of '{system.name}', by {gap:.2g} in natural units. "
                "Make them consistent: ld.assemble(system, near=state).",
                closed,
                gap,
            )
        self.state = State(closed.t, np.array(closed.q), np.array(closed.v), tolerated=system.tolerated, system=system)
        self.terms = now = terms(system, self.state)
        self.columns, self.rows = system.speed_units, system.row_units
        found = solve_dense(now.M, now.h, now.J, now.gamma, self.columns, self.rows, rank.count)
        self.a, self.lam = found.a, found.lam
        self._factorise(now, rank.count)

    def _factorise(self, now: Terms, n: int) -> None:
        """Singular values of the scaled J of rank n, and the mass matrix of the motions that are left."""
        A = scaled(self.system, now.J)
        U, s, Vt = np.linalg.svd(A) if self.system.nc else (np.eye(0), np.zeros(0), np.eye(self.system.nv))
        self._U, self._s, self._V, self.motions = U[:, :n], s[:n], Vt[:n].T, Vt[n:].T
        self._M = now.M * np.outer(self.columns, self.columns)

    @cached_property
    def _reduced(self) -> Array:
        """Inverse of the mass matrix of the motions that are left."""
        return np.asarray(np.linalg.inv(self.motions.T @ self._M @ self.motions), float)

    # --------------------------------------------------------------------------------------------- evaluation

    def along(self, xi: Array, dv: Array, dt: float = 0.0) -> TermsChange:
        """Derivatives along columns of xi (nv, m), increments of q, and dv (nv, m); `dt` is the same for all."""
        s = self.system
        found = no_change(s, xi.shape[1])
        work = s.kept.take("complex work", lambda: s.work(np.complex128))
        J, rate = np.zeros((s.nc, s.nv), complex), np.zeros(s.nc, complex)
        w = s.open_work(work)
        for k in range(xi.shape[1]):
            self._move(w, xi[:, k], dv[:, k], dt)
            w.a[:] = self.a
            rnea.rnea(s.ints, s.floats, work)
            found.balance[:, k] = w.tau.imag / STEP
            jacobian.constraint_terms(s.ints, s.floats, work, J, rate)
            turned = J.imag / STEP
            found.balance[:, k] -= turned.T @ self.lam
            found.phi[:, k], found.rate[:, k] = w.phi.imag / STEP, rate.imag / STEP
            found.bias[:, k] = turned @ self.a - w.gamma.imag / STEP
        s.kept.give("complex work", work)
        self._add_user_forces(found, xi, dv, dt)
        return self._finite(found)

    def rates(self, xi: Array, dv: Array) -> Array:
        """Derivatives (nc, m) of the rates of all rows alone: of ``J v + phi_t``."""
        s = self.system
        found = np.zeros((s.nc, xi.shape[1]))
        if not s.nc:
            return found
        work = s.kept.take("complex work", lambda: s.work(np.complex128))
        J, rate = np.zeros((s.nc, s.nv), complex), np.zeros(s.nc, complex)
        for k in range(xi.shape[1]):
            self._move(s.open_work(work), xi[:, k], dv[:, k], 0.0)
            kinematics.place(s.ints, s.floats, work, False)
            jacobian.constraint_terms(s.ints, s.floats, work, J, rate)
            found[:, k] = rate.imag / STEP
        s.kept.give("complex work", work)
        return found

    def _move(self, w: rec.Work, xi: Array, dv: Array, dt: float) -> None:
        """Put the state, moved by an imaginary step, into a work array."""
        s, here = self.system, self.state
        kinematics.plus(s.ints, s.floats, here.q.astype(complex), 1j * STEP * xi, w.q)
        w.t[0], w.v[:], w.near[:] = here.t + 1j * STEP * dt, here.v + 1j * STEP * dv, 0.0

    def _add_user_forces(self, found: TermsChange, xi: Array, dv: Array, dt: float) -> None:
        """Subtract the derivatives of user forces, by five-point differences: they need not take complex numbers."""
        s, here = self.system, self.state
        if not s.mechanism.user_forces:
            return
        moved = np.empty(s.nq)
        for k in range(xi.shape[1]):
            size = max(largest(xi[:, k] / self.columns), largest(dv[:, k] / self.columns), abs(dt), 1e-300)

            def at(x: float, k: int = k) -> Array:
                kinematics.plus(s.ints, s.floats, here.q, x * xi[:, k], moved)
                out = np.zeros(s.nv)
                add_user_forces(s, here.t + x * dt, moved, here.v + x * dv[:, k], out)
                return out

            found.balance[:, k] -= five_points(at, DIFFERENCE / size)

    def _finite(self, found: TermsChange) -> TermsChange:
        if np.isfinite(found.balance).all() and np.isfinite(found.bias).all() and np.isfinite(found.rate).all():
            return found
        raise LoopdynError(
            f"a force or constraint of '{self.system.name}' has no derivative at t = {self.state.t:g} s: points of a "
            "spring that coincide, the end of a table, or a formula such as sqrt at zero. Linearize at a state nearby."
        )

    def by_parameter(self, name: str) -> TermsChange:
        """Derivatives by a parameter, declared unit, coordinates and speeds held: five-point differences of floats."""
        return self.split(by_parameter(self.system, name, self.residuals))

    def residuals(self, other: System) -> Array:
        """Balance, phi, rate and bias at this state, one behind another, with the numbers of another system."""
        now = terms(other, self.state)
        balance = now.M @ self.a - now.h - now.J.T @ self.lam
        return np.concatenate([balance, now.phi, now.J @ self.state.v + now.phi_t, now.J @ self.a - now.gamma])

    def split(self, residuals: Array) -> TermsChange:
        """Derivatives of :meth:`residuals` as a change along one direction."""
        nv, nc = self.system.nv, self.system.nc
        cuts = np.cumsum([nv, nc, nc])
        return TermsChange(*(part[:, None] for part in np.split(residuals, cuts)))

    # ----------------------------------------------------------------------------------------------- solution

    def solve(self, balance: Array, bias: Array) -> tuple[Array, Array]:
        """Changes (nv, m) of accelerations and (nc, m) of multipliers for those of balance and rows."""
        V, N = self._V, self.motions
        b = self.columns[:, None] * balance
        a = -V @ ((self._U.T @ (bias / self.rows[:, None])) / self._s[:, None])
        a = a - N @ (self._reduced @ (N.T @ (b + self._M @ a)))
        lam = self._U @ ((V.T @ (self._M @ a + b)) / self._s[:, None])
        return self.columns[:, None] * a, lam / self.rows[:, None]

    def smallest(self, rows: Array) -> Array:
        """Smallest motion (nv, m), in natural units, for given values (nc, m) of all rows: J x = rows."""
        found: Array = self._V @ ((self._U.T @ (rows / self.rows[:, None])) / self._s[:, None])
        return self.columns[:, None] * found


def five_points(f: Callable[[float], Any], h: float) -> Any:
    """Derivative of f at zero by Richardson's extrapolation of two central differences."""
    return (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)


def parameter_value(system: System, name: str) -> float:
    """Value of a parameter, which must be a number."""
    known = system.mechanism.parameters
    if name not in known:
        raise ModelError([Problem("parameter", f"there is no parameter '{name}'", nearest(name, known))])
    if not isinstance(known[name], int | float):
        message = f"'{name}' is the formula '{known[name]}'"
        raise ModelError([Problem("parameter", message, "Name the parameters that it depends on.")])
    return float(known[name])


def by_parameter(system: System, name: str, f: Callable[[System], Array]) -> Array:
    """Derivative by a parameter, in its own unit, of a function of the system."""
    value = parameter_value(system, name)
    h = DIFFERENCE * (abs(value) or 1.0)
    found: Array = five_points(lambda x: f(varied(system, name, value + x)), h)
    return found


def varied(system: System, name: str, value: float) -> System:
    """System with another value of a parameter, without warnings, whose coordinates must be the same."""
    from loopdyn.system.variation import with_parameters

    made = with_parameters(system, {name: value})
    if made.coordinates != system.coordinates or made.constraint_rows != system.constraint_rows:
        raise LoopdynError(
            f"the structure of '{system.name}' changes with its parameter '{name}', so there is no derivative by it "
            "here. Compile with other cuts=[...], or choose another value."
        )
    return made
