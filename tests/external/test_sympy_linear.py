"""`ld.linearize` beside Lagrange's equations of planar linkages with multipliers, differentiated by SymPy."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import loopdyn as ld

G = 9.81
Z = (0, 0, 1)
# Both sides are exact; the conditions of the equations are below 1e3.
TOLERANCE = 1e-9


class Linkage:
    """Closed chain of rods between pins, absolute angles, twice: as a mechanism, and as a Lagrangian of SymPy.

    Rods are given by mass and length; the chain begins at the origin and ends at `end`. A torsion spring with a damper
    acts on the first rod.
    """

    def __init__(self, rods, end, stiffness, damping):
        self.rods, self.end, self.k, self.c = rods, end, stiffness, damping

    def mechanism(self, angles):
        """Mechanism whose reference pose has these absolute angles of the rods."""
        m = ld.Mechanism("linkage", gravity=(0, -G, 0))
        p, names = np.zeros(2), [m.ground]
        for n, ((mass, length), angle) in enumerate(zip(self.rods, angles, strict=True)):
            q = p + length * np.array([np.cos(angle), np.sin(angle)])
            name = m.add_body(f"rod{n}", ld.Inertia.rod(mass=mass, start=(*p, 0), end=(*q, 0)))
            m.add_joint(f"J{n}", ld.Revolute(axis=Z), names[-1], name, at=(*p, 0))
            names.append(name)
            p = q
        m.add_joint("end", ld.Revolute(axis=Z), m.ground, names[-1], at=(*p, 0))
        m.add_force("spring", ld.forces.JointSpring(joint="J0", stiffness=self.k, damping=self.c))
        return m

    def sympy(self, angles, speeds, free):
        """A at a state for the independent coordinates `free`: absolute angles, then speeds; derivatives by SymPy."""
        n = len(self.rods)
        q, u, a = (sp.Matrix(sp.symbols(f"{x}:{n}", real=True)) for x in "qua")
        lam = sp.Matrix(sp.symbols("f:2", real=True))
        T = V = x = y = sp.Integer(0)
        for (mass, length), angle, rate in zip(self.rods, q, u, strict=True):
            centre = sp.Matrix([x + length * sp.cos(angle) / 2, y + length * sp.sin(angle) / 2])
            velocity = centre.jacobian(q) * u
            T += mass * velocity.dot(velocity) / 2 + mass * length**2 / 12 * rate**2 / 2
            V += mass * G * centre[1]
            x, y = x + length * sp.cos(angle), y + length * sp.sin(angle)
        V += self.k * (q[0] - angles[0]) ** 2 / 2
        closed = sp.Matrix([x, y])
        J = closed.jacobian(q)
        slip = J * u  # zero
        momentum = sp.Matrix([T]).jacobian(u).T
        balance = momentum.jacobian(u) * a + momentum.jacobian(q) * u - sp.Matrix([T - V]).jacobian(q).T - J.T * lam
        balance[0] += self.c * u[0]
        F = balance.col_join(J * a + slip.jacobian(q) * u)
        parts = [F.jacobian(z) for z in (q, u, a.col_join(lam))]
        numbers = sp.lambdify([q, u, a, lam], [F, J, slip.jacobian(q), *parts], "numpy")

        def at(acceleration, force):
            return [np.asarray(m, float) for m in numbers(angles, speeds, acceleration, force)]

        still = at(np.zeros(n), np.zeros(2))
        solved = np.linalg.solve(still[5], -still[0].ravel())  # F is linear in accelerations and multipliers
        _, J, S, by_q, by_u, by_rest = at(solved[:n], solved[n:])
        k, left = len(free), [i for i in range(n) if i not in free]
        dq, du = np.zeros((n, 2 * k)), np.zeros((n, 2 * k))
        dq[free, :k], du[free, k:] = np.eye(k), np.eye(k)
        dq[left] = np.linalg.solve(J[:, left], -J[:, free] @ dq[free])
        du[left] = np.linalg.solve(J[:, left], -J[:, free] @ du[free] - S @ dq)
        accelerations = np.linalg.solve(by_rest, -(by_q @ dq + by_u @ du))[:n]
        return np.vstack([du[free], accelerations[free]])

    def closed_speeds(self, angles, free, given):
        """Speeds of all rods for those of the free ones."""
        J = np.array(
            [[-length * np.sin(a), length * np.cos(a)] for (_, length), a in zip(self.rods, angles, strict=True)]
        ).T
        dependent = [k for k in range(len(self.rods)) if k not in free]
        speeds = np.zeros(len(self.rods))
        speeds[free] = given
        speeds[dependent] = np.linalg.solve(J[:, dependent], -J[:, free] @ given)
        return speeds


def chain_end(rods, angles):
    return sum(length * np.array([np.cos(a), np.sin(a)]) for (_, length), a in zip(rods, angles, strict=True))


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize(
    ("rods", "angles", "free", "given"),
    [
        (((1.0, 0.4), (1.7, 0.9), (1.2, 0.7)), (1.1, 0.3, -1.4), [0], [3.0]),
        (((1.0, 0.5), (0.8, 0.7), (0.9, 0.6), (1.4, 0.5)), (1.9, 0.5, -0.7, -1.6), [0, 3], [2.0, -1.5]),
    ],
    ids=["four-bar", "five-bar"],
)
def test_matrices_agree_with_sympy(rods, angles, free, given, moving):
    """At rest and in motion, away from equilibrium; angles of the free rods, on the ground, are absolute."""
    link = Linkage(rods, chain_end(rods, angles), 4.0, 0.3)
    speeds = link.closed_speeds(np.array(angles), free, np.array(given) * moving)
    expected = link.sympy(angles, speeds, free)
    last = len(rods) - 1
    system = link.mechanism(angles).compile(cuts=[f"J{last}"])
    relative = {f"J{n}": w for n, w in enumerate(np.diff(speeds, prepend=0.0)[:last])} | {"end": speeds[last]}
    found = ld.linearize(system, system.state(v=relative), independent=["J0", "end"][: len(free)])
    np.testing.assert_allclose(found.A.values, expected, rtol=TOLERANCE, atol=TOLERANCE)
