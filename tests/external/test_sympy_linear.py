"""`ld.linearize` beside SymPy's linearisation of Lagrange's equations with multipliers, of planar linkages."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import LagrangesMethod, ReferenceFrame, dynamicsymbols, msubs

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

    def sympy(self, angles, free):
        """SymPy's linearisation of Lagrange's equations, as a function of the speeds: states are the free angles, then
        their speeds.

        Two traps of SymPy 1.14. Multipliers at the operating point are those of `solve_multipliers`: those that
        `mass_matrix_full` gives have the opposite sign, with which `linearize` returns other matrices (A[1, 0] of the
        four-bar at rest: 48.76 for 17.45; central differences of its equation of motion in one angle give 17.45). And
        independent coordinates must come first in q: its permutation matrices are inverted, which shows in orders that
        are not their own inverse, such as 0, 3, 1, 2.
        """
        n, k = len(self.rods), len(free)
        names = dynamicsymbols(f"q:{n}")
        q = [names[i] for i in (*free, *(i for i in range(n) if i not in free))]
        rates = [z.diff() for z in q]
        T = V = x = y = sp.Integer(0)
        for (mass, length), angle in zip(self.rods, names, strict=True):
            centre = sp.Matrix([x + length * sp.cos(angle) / 2, y + length * sp.sin(angle) / 2])
            velocity = centre.diff(dynamicsymbols._t)
            T += mass * velocity.dot(velocity) / 2 + mass * length**2 / 12 * angle.diff() ** 2 / 2
            V += mass * G * centre[1]
            x, y = x + length * sp.cos(angle), y + length * sp.sin(angle)
        V += self.k * (names[0] - angles[0]) ** 2 / 2
        ground, first = ReferenceFrame("ground"), ReferenceFrame("first")
        first.set_ang_vel(ground, names[0].diff() * ground.z)
        damper = [(first, -self.c * names[0].diff() * ground.z)]
        closed = [x - self.end[0], y - self.end[1]]
        lagrange = LagrangesMethod(T - V, q, forcelist=damper, frame=ground, hol_coneqs=closed)
        lagrange.form_lagranges_equations()
        linearizer = lagrange.to_linearizer(q_ind=q[:k], qd_ind=rates[:k], q_dep=q[k:], qd_dep=rates[k:])

        def at(speeds):
            point = dict(zip(names, angles, strict=True))
            point |= {z.diff(): u for z, u in zip(names, speeds, strict=True)}
            point |= lagrange.solve_multipliers(op_point=point)
            equations = [np.array(msubs(z, point), float) for z in (lagrange.mass_matrix_full, lagrange.forcing_full)]
            accelerations = np.linalg.solve(*equations).ravel()[n : 2 * n]
            point |= {z.diff().diff(): a for z, a in zip(q, accelerations, strict=True)}
            M, A, _ = (np.array(z, float) for z in linearizer.linearize(op_point=point))
            return np.array(linearizer.perm_mat, float).T @ np.linalg.solve(M, A)

        return at

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


@pytest.mark.parametrize(
    ("rods", "angles", "free", "given"),
    [
        (((1.0, 0.4), (1.7, 0.9), (1.2, 0.7)), (1.1, 0.3, -1.4), [0], [3.0]),
        (((1.0, 0.5), (0.8, 0.7), (0.9, 0.6), (1.4, 0.5)), (1.9, 0.5, -0.7, -1.6), [0, 3], [2.0, -1.5]),
    ],
    ids=["four-bar", "five-bar"],
)
def test_matrices_agree_with_sympy(rods, angles, free, given):
    """At rest and in motion, away from equilibrium; angles of the free rods, on the ground, are absolute."""
    link = Linkage(rods, chain_end(rods, angles), 4.0, 0.3)
    expected = link.sympy(angles, free)
    last = len(rods) - 1
    system = link.mechanism(angles).compile(cuts=[f"J{last}"])
    for moving in (False, True):
        speeds = link.closed_speeds(np.array(angles), free, np.array(given) * moving)
        relative = {f"J{n}": w for n, w in enumerate(np.diff(speeds, prepend=0.0)[:last])} | {"end": speeds[last]}
        found = ld.linearize(system, system.state(v=relative), independent=["J0", "end"][: len(free)])
        np.testing.assert_allclose(found.A.values, expected(speeds), rtol=TOLERANCE, atol=TOLERANCE)
