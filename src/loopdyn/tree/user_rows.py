"""Rows of user constraints: Python functions of the state, called before the kernels.

With q(s) the motion with the speeds v and zero accelerations,

    phi(t, q)      J = d phi(t, q (+) xi)/d xi    rate = d phi(t + s, q(s))/ds     gamma = -d2 phi(t + s, q(s))/ds2
    psi(t, q, v)   J = d psi/dv                   rate = psi                       gamma = -d psi(t + s, q(s), v)/ds

First derivatives come from the user's Jacobian, from complex steps, or from five-point differences; second ones are
five-point differences of the first ones, or of phi itself if the first ones are differences, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.constraints.user import UserConstraint
from loopdyn.engine import records as rec
from loopdyn.errors import ModelError, Problem
from loopdyn.system.system import System
from loopdyn.tree import kinematics

Array = NDArray[np.float64]
Rates = Callable[[float], Array]  # of a parameter s

COMPLEX_STEP = 1e-30
# Step of the differences in natural units. The error of five-point formulas is its fourth power, 1e-12, plus rounding,
# 1e-16 divided by it (first derivatives) or by its square (second).
DIFFERENCE = 1e-3
# A complex step is used if it agrees with differences to this share; functions that drop imaginary parts do not.
AGREEMENT = 1e-6


@dataclass(frozen=True)
class UserRows:
    """Values of the rows of all user constraints at one state: residual, its rate, right side, Jacobian."""

    phi: Array
    rate: Array
    gamma: Array
    J: Array

    def write(self, w: rec.Work, J: Array, rate: Array) -> None:
        """Write them to the last rows, where the kernels expect them."""
        n = len(self.phi)
        if n:
            w.phi[-n:], w.gamma[-n:], w.phi_t[-n:] = self.phi, self.gamma, 0.0
            J[-n:], rate[-n:] = self.J, self.rate


class UserFunctions:
    """The user constraints of one system, to be called with ``(t, q, v)``.

    Attributes
    ----------
    methods : dict
        How the derivatives of each constraint are computed.

    Examples
    --------
    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> stop = ld.constraints.UserConstraint(function=lambda t, q: [q[0] ** 2 - t], rows=("angle",))
    >>> name = m.add_constraint("stop", stop)
    >>> user_rows(m.compile()).methods
    {'stop': 'complex steps'}
    """

    def __init__(self, system: System):
        self.system = system
        self.constraints = dict(system.mechanism.user_constraints)
        self.methods: dict[str, str] = {}
        for name, c in self.constraints.items():
            steps = "complex steps" if self._takes_complex(name, c) else "differences"
            self.methods[name] = steps if c.jacobian is None else f"the given Jacobian, and {steps}"

    def __call__(self, t: float, q: Array, v: Array) -> UserRows:
        """Rows at one state."""
        parts = [self._rows(name, c, float(t), np.array(q), np.array(v)) for name, c in self.constraints.items()]
        nv = self.system.nv
        if not parts:
            return UserRows(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, nv)))
        return UserRows(*(np.concatenate(values) for values in zip(*parts, strict=True)))

    # ------------------------------------------------------------------------------------------- one constraint

    def _rows(self, name: str, c: UserConstraint, t: float, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        exact = "complex" in self.methods[name]
        h = DIFFERENCE / max(1.0, float(np.abs(v / self.system.speed_units).max(initial=0.0)))  # of s, in seconds
        twice = self._curved(v)

        def at(s: float) -> Array:
            return self._plus(q, s * v + 0.5 * s * s * twice)

        def value(s: complex, xi: NDArray[Any], u: NDArray[Any], base: Array = q) -> NDArray[Any]:
            """phi or psi at the time t + s, at base (+) xi, with the speeds u."""
            return self._call(name, c, t + s, self._plus(base, xi) if np.any(xi) else base, u)

        if c.level == "velocity":
            psi = value(0.0, np.zeros(self.system.nv), v).real
            J = self._given(name, c, t, q, v)
            if J is None:
                J = self._columns(lambda dv: value(0.0, np.zeros(self.system.nv), v + dv), exact)
            if exact:
                rate = value(1j * COMPLEX_STEP, 1j * COMPLEX_STEP * v, v).imag / COMPLEX_STEP
            else:
                rate = _first(lambda s: self._call(name, c, t + s, at(s), v), h)
            return np.zeros(len(psi)), psi, -rate, J
        phi = value(0.0, np.zeros(self.system.nv), v).real
        J = self._given(name, c, t, q, v)
        if J is None:
            J = self._columns(lambda xi: value(0.0, xi, v), exact)
        if exact:

            def along(s: float) -> Array:
                """Rate of phi at the moment s of the motion."""
                step = 1j * COMPLEX_STEP
                return value(s + step, step * v, v, at(s)).imag / COMPLEX_STEP

            return phi, along(0.0), -_first(along, h), J
        position = {k: self._call(name, c, t + k * h, at(k * h), v) for k in (-2, -1, 0, 1, 2)}
        return phi, _first(lambda s: position[round(s / h)], h), -_second(position, h), J

    def _columns(self, f: Callable[[NDArray[Any]], NDArray[Any]], exact: bool) -> Array:
        """Derivatives of f along each speed."""
        nv, units = self.system.nv, self.system.speed_units
        columns = []
        for k, e in enumerate(np.eye(nv)):
            if exact:
                columns.append(f(1j * COMPLEX_STEP * e).imag / COMPLEX_STEP)
            else:
                columns.append(_first(lambda s, e=e: f(s * e), DIFFERENCE * units[k]))  # type: ignore[misc]
        return np.stack(columns, axis=1)

    def _given(self, name: str, c: UserConstraint, t: float, q: Array, v: Array) -> Array | None:
        if c.jacobian is None:
            return None
        J = np.asarray(c.jacobian(t, q.copy()) if c.level == "position" else c.jacobian(t, q.copy(), v.copy()), float)
        wanted = (len(c.rows), self.system.nv)
        if J.shape != wanted:
            hint = "Give a line per row and a column per speed."
            raise ModelError([Problem(f"constraint '{name}'", f"its Jacobian is {J.shape}, not {wanted}", hint)])
        return J

    def _call(self, name: str, c: UserConstraint, t: Any, q: NDArray[Any], v: NDArray[Any]) -> NDArray[Any]:
        found = c.function(t, q.copy()) if c.level == "position" else c.function(t, q.copy(), v.copy())
        values = np.atleast_1d(np.asarray(found))
        if values.shape != (len(c.rows),):
            message = f"its function returned values of shape {values.shape}, {len(c.rows)} rows are named"
            raise ModelError([Problem(f"constraint '{name}'", message, "Return one number per row.")])
        return values

    def _plus(self, q: Array, xi: NDArray[Any]) -> NDArray[Any]:
        kind = np.result_type(q, xi)
        out = np.empty(len(q), kind)
        kinematics.plus(self.system.ints, self.system.floats, q.astype(kind), np.asarray(xi, kind), out)
        return out

    def _curved(self, v: Array) -> Array:
        """Second derivative of xi in q(s) = q (+) xi(s) for constant speeds."""
        twice = np.zeros(self.system.nv)
        for j in self.system.joints.values():
            if j.in_tree:
                own = slice(j.v0, j.v0 + len(j.spec.speeds))
                twice[own] = j.spec.curvature(v[own])
        return twice

    def _takes_complex(self, name: str, c: UserConstraint) -> bool:
        """Whether complex steps give the same derivatives as differences, near the reference pose along a motion."""
        nv = self.system.nv
        v = self.system.speed_units * np.linspace(0.4, 0.7, nv)
        q = self._plus(self.system.q_reference, 0.3 * v[::-1])

        def f(s: complex) -> NDArray[Any]:
            return self._call(name, c, 0.3 + s, self._plus(q, s * v), v * (1.0 + s))

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # about imaginary parts that are dropped
                steps = f(1j * COMPLEX_STEP)
        except ModelError:
            raise
        except Exception:  # any error that a function of floats may raise for complex numbers
            return False
        if not np.iscomplexobj(steps):
            return False
        differences = _first(lambda s: f(s).real, DIFFERENCE)
        size = 1.0 + np.abs(differences)
        return bool(np.all(np.abs(steps.imag / COMPLEX_STEP - differences) <= AGREEMENT * size))


def _first(f: Rates, h: float) -> Array:
    """Five-point first derivative at zero."""
    result: Array = (f(-2 * h) - 8.0 * f(-h) + 8.0 * f(h) - f(2 * h)) / (12.0 * h)
    return result


def _second(f: dict[int, Array], h: float) -> Array:
    """Five-point second derivative of values at multiples of h."""
    result: Array = (-f[-2] + 16.0 * f[-1] - 30.0 * f[0] + 16.0 * f[1] - f[2]) / (12.0 * h * h)
    return result


def user_rows(system: System) -> UserFunctions:
    """The user constraints of a system, to be called with ``(t, q, v)``; `methods` says how they are differentiated.

    Examples
    --------
    >>> import loopdyn as ld
    >>> user_rows(ld.library.pendulum().compile()).methods
    {}
    """
    return system.kept.find("user rows", None, lambda: UserFunctions(system))
