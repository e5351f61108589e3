"""Residuals along a trajectory against the dense terms of the equations of motion."""

import numpy as np
import pytest
from tests.loops import loop_with, nested

import loopdyn as ld
from loopdyn.results.run import Trajectory, measure


def related() -> ld.Mechanism:
    """A loop on a moving base with all kinds of relations between coordinates."""
    m = loop_with("cylindrical")
    m.add_constraint("gear", ld.constraints.Coupler(terms={"K.angle": 0.3, "U1.1": 1.0, "U3.2": -0.4}, offset=0.1))
    m.add_constraint(
        "curve",
        ld.constraints.Relation(formula="s - 0.2*sin(a) - 0.1*sin(t)", coordinates={"s": "K.slide", "a": "U1.2"}),
    )
    m.add_constraint(
        "blade",
        ld.constraints.VelocityRelation(
            formula="w*cos(a) - 2*u - 0.1*t", speeds={"w": "K.angle", "u": "U1.1"}, coordinates={"a": "U3.1"}
        ),
    )
    m.add_driver("pull", "U1.2", "0.1*sin(3*t)")
    m.move_base(x="0.3*sin(2*t)", z="0.2*t**2", rx="0.4*sin(t)", rz="t + 0.2*cos(3*t)")
    m.add_body("hung", ld.Inertia.box(mass=0.7, size=(0.2, 0.3, 0.1), at=(2.6, 0.3, 0.1)))
    m.add_joint("E", ld.Spherical(), "b3", "hung", at=(2.5, 0.2, 0.0))
    m.add_joint("H", ld.Universal(axis1=(1, 0.2, 0), axis2=(0, 0.3, 1)), m.ground, "hung", at=(2.9, 0.5, 0.2))
    return m


def of_user() -> ld.Mechanism:
    m = ld.library.four_bar()
    rows = ld.constraints.UserConstraint(
        function=lambda t, q: [q[0] ** 2 - 0.3 * q[1] - t, q[1] * q[2]], rows=("a", "b")
    )
    m.add_constraint("own", rows)
    return m


CASES = {
    "four-bar": lambda: ld.library.four_bar().compile(),
    "overconstrained": lambda: ld.library.bennett().compile(),
    "nested": lambda: nested().compile(),
    "relations": lambda: related().compile(),
    "relations of a cut joint": lambda: related().compile(cuts=["K", "H"]),
    "user constraints": lambda: of_user().compile(),
    "no loop": lambda: ld.library.pendulum().compile(),
}


@pytest.mark.filterwarnings("ignore:.*are counted in runs only:loopdyn.errors.LoopdynWarning")
@pytest.mark.parametrize("name", CASES)
def test_residuals_of_a_trajectory_are_those_of_the_dense_rows(name):
    s = CASES[name]()
    rng, n = np.random.default_rng(3), 4
    q = np.array([ld.tree.increment(s, s.state().q, 0.1 * s.speed_units * rng.normal(size=s.nv)) for _ in range(n)])
    t, v, a = np.linspace(0.3, 0.6, n), rng.normal(size=(n, s.nv)), 5.0 * rng.normal(size=(n, s.nv))
    found = measure(s, Trajectory(t, q, v, a, np.zeros((n, 0)), np.zeros(n, np.int64))).residual
    for k in range(n):
        d = ld.terms(s, ld.State(t[k], q[k], v[k]))
        dense = np.array([d.phi, d.J @ v[k] + d.phi_t, d.J @ a[k] - d.gamma])
        scale = 1.0 + np.abs(d.gamma) + np.abs(d.J) @ np.abs(a[k])  # rounding of the largest terms of a row
        assert (np.abs(found[k] - dense) <= 1e-12 * scale).all()
