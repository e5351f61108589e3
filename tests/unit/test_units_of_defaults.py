"""Defaults are physical quantities: a model that uses all of them moves alike, whatever its units are."""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld

SI = {}
MM = {"length": "mm", "angle": "deg", "mass": "g", "force": "kN", "torque": "N*mm", "acceleration": "mm/s^2"}
INCH = {"length": "in", "angle": "turn", "mass": "lb", "force": "lbf", "torque": "lbf*ft", "acceleration": "ft/s^2"}


@pytest.mark.jit_off
@pytest.mark.parametrize("units", [SI, MM, INCH])
def test_friction_has_the_same_transition_in_every_unit(units):
    """1 N of Coulomb friction on 1 kg at 1 mm/s: tanh(0.001/0.01) = 0.099668 by hand."""
    u = ld.Units(**units)
    m = ld.Mechanism("slide", units=units)
    m.add_body("b", ld.Inertia.sphere(mass=1 / u.factor("mass"), radius=1))
    m.add_joint("A", ld.Prismatic(axis=(1, 0, 0)), m.ground, "b", at=(0, 0, 0))
    m.add_force(None, ld.forces.JointFriction(joint="A", coulomb=1.0 / u.factor("force")))
    system = m.compile()
    a = ld.accelerations(system, system.state(v={"A": 1e-3 / u.factor("length")}), "oracle")
    assert a[0] == pytest.approx(-0.09966799462495582, rel=1e-12)


def every_default(units):
    """Elements with nothing given but what they need, the numbers given being the same quantities in any units."""
    u = ld.Units(**units)

    def n(value, dimension):
        return (np.array(value) / u.factor(dimension)).tolist()

    def at(*p):
        return n(p, "length")

    m = ld.Mechanism("all", units=units, gravity=n([0, -9.81, 0], "acceleration"))
    for k in range(3):
        m.add_body(f"b{k}", ld.Inertia.box(mass=n(1.5, "mass"), size=at(1, 0.2, 0.3), at=at(k + 0.5, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "b0", at=at(0, 0, 0))
    m.add_joint("S", ld.Prismatic(axis=(1, 0.1, 0)), "b0", "b1", at=at(1, 0, 0))
    m.add_joint("H", ld.joints.Helical(axis=(1, 0, 0), pitch=n(0.01, "pitch")), "b1", "b2", at=at(2, 0, 0))
    for joint, kind in (("A", "torque"), ("S", "force")):
        m.add_force(None, ld.forces.JointFriction(joint=joint, coulomb=n(0.3, kind)))
        m.add_force(
            None,
            ld.forces.JointSpring(
                joint=joint, stiffness=n(20.0, "angular_stiffness" if kind == "torque" else "stiffness")
            ),
        )
    m.add_force(
        None, ld.forces.SpringDamper("ground", "b1", at(0, 1, 0), at(1.5, 0, 0), stiffness=n(30.0, "stiffness"))
    )
    m.add_force(
        None, ld.forces.Bushing(body1="b0", body2="b2", at=at(2, 0, 0), stiffness=n([50.0, 60.0, 70.0], "stiffness"))
    )
    m.add_motor("table", "S", force={"of": "position", "points": [[n(x, "length"), n(y, "force")] for x, y in
                                                                  ((-1, 2), (0, 0), (0.5, -3), (1, -3))]})  # fmt: skip
    m.add_force(None, ld.forces.AppliedForce(body="b2", at=at(3, 0, 0), force=n([0, 1.0, 2.0], "force")))
    return m.compile()


@pytest.mark.jit_off
@pytest.mark.parametrize("units", [MM, INCH])
def test_a_model_that_uses_every_default_moves_alike_in_all_units(units):
    found = []
    for given in (SI, units):
        system = every_default(given)
        q, v = {"A": 0.3, "S": 0.2, "H": 0.1}, {"A": 2e-3, "S": -4e-3, "H": 0.5}  # SI
        state = system.state([q[x] for x in system.coordinates], [v[x] for x in system.speeds])
        found.append(ld.accelerations(system, state, "oracle"))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10)  # rounding of unit factors, in loads that cancel
