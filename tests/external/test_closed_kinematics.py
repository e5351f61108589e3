"""Motions of random closed mechanisms, and Jacobians with loops closed, against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space

import loopdyn as ld

pin = pytest.importorskip("pinocchio", reason="Pinocchio has no wheels for this platform")

from tests.external.pinocchio_models import Twin  # noqa: E402  after the check that Pinocchio is there
from tests.external.test_pinocchio import assert_same_motion  # noqa: E402


def chain(*points):
    """Closed chain of links in the plane between pins at these points, the last link being the ground."""
    m = ld.Mechanism("chain", gravity=(0, 0, 0))
    names = [f"link{k}" for k in range(1, len(points))]
    for name, a, b in zip(names, points, points[1:], strict=False):
        middle = (*np.add(a, b) / 2, 0.0)
        m.add_body(name, ld.Inertia(mass=1.0, com=middle, inertia={"xx": 0.1, "yy": 0.1, "zz": 0.1}))
    for k, (parent, child) in enumerate(zip(["ground", *names], [*names, "ground"], strict=True)):
        m.add_joint("ABCDE"[k], ld.Revolute(axis=(0, 0, 1)), parent, child, at=(*points[k], 0))
    return m


FOUR = ((0.0, 0.0), (0.0, 0.5), (1.2, 0.9), (1.1, 0.0))
FIVE = ((0.0, 0.0), (-0.3, 0.6), (0.4, 1.2), (1.1, 0.7), (0.8, 0.0))
CLOSED = [(FOUR, "A", "link2"), (FOUR, "A", "link3"), (FIVE, "AE", "link2"), (FIVE, "AB", "link3")]


@pytest.mark.parametrize("seed", range(10))
def test_motions_of_closed_mechanisms_equal_pinocchios(seed):
    m = ld.library.random_mechanism(seed, 8, 2)
    system = m.compile()
    state = ld.assemble(system, v=np.random.default_rng(seed).normal(size=system.nv))
    twin, a = Twin(m, system), np.random.default_rng(seed).normal(size=system.nv)
    twin.update(state, a)
    assert_same_motion(twin, ld.kinematics(system, state, a=a)._accelerated, f"seed {seed}")


def closing_rows(m, system, twin, T):
    """Velocity conditions of cut pins about z over the speeds of the tree, from Pinocchio's Jacobians of the bodies."""
    r, rows = m.resolver(), []
    for name in system.topology.cuts:
        joint = m.joints[name]
        at = r.vector(joint.at, "length", "", ())
        J = []
        for body in (joint.child, joint.parent):
            if body == "ground":
                J.append(np.zeros((2, system.nv)))
                continue
            linear, angular = np.split(twin.jacobian(body) @ T, 2)
            arm = twin.point(body, at)[0] - twin.pose(body).translation
            J.append(linear[:2] + np.outer([-arm[1], arm[0]], angular[2]))
        rows.append(J[0] - J[1])
    return np.vstack(rows)


@pytest.mark.parametrize(("points", "inputs", "body"), CLOSED, ids=["four", "four, rocker", "five", "five, serial"])
@pytest.mark.parametrize("turned", [0.0, 0.4, -0.3])
def test_jacobians_with_loops_closed_are_those_of_pinocchios_tree_and_its_closing_rows(points, inputs, body, turned):
    m = chain(*points)
    system = m.compile(cuts=["C"])
    state = ld.assemble(system, {"A": turned})
    twin = Twin(m, system)
    T = twin.update(state)[2]
    N = null_space(closing_rows(m, system, twin, T))
    assert N.shape[1] == len(inputs)
    speeds = [system.speeds.index(label) for label in inputs]  # of the tree, as it is cut below
    linear, angular = np.split(twin.jacobian(body) @ T @ N @ np.linalg.inv(N[speeds]), 2)
    found = ld.kinematics(system, state).jacobian(body, wrt=list(inputs))
    assert [str(c) for c in found["component"].values] == ["wx", "wy", "wz", "vx", "vy", "vz"]
    # closed to 1e-12; loops with conditions below 100 at these poses
    np.testing.assert_allclose(found.values, np.vstack([angular, linear]), atol=1e-9)
