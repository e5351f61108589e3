"""What every force type must offer (`loopdyn/forces/base.py`): all types, all duties.

Loads by hand are in tests/unit/test_forces.py. Here each type is only asked to agree with itself: the power that a run
records with the loads that move the bodies, the energy with the power, and what it says about itself with what it does.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import pytest
from tests.independent import closed_state, first_derivative, path, random_state

import loopdyn as ld
from loopdyn.engine import records as rec
from loopdyn.forces import dispatch
from loopdyn.forces.base import Force, Preloaded
from loopdyn.results.units import load_units
from loopdyn.tree import power

pytestmark = pytest.mark.jit_off

ENDS = {"body1": "a", "body2": "c", "point1": (0.3, 0.9, -0.2), "point2": (1.0, 0.1, 1.4)}
LAW = "sin(t) + 2*length - 0.3*speed"

# One or more of every type, without damping where it stores energy. Joints: see `arm`.
EXAMPLES: dict[str, list[Force]] = {
    "spring_damper": [ld.forces.SpringDamper(**ENDS, stiffness=30.0, length=0.4)],
    "actuator": [ld.forces.Actuator(**ENDS, force=LAW)],
    "joint_spring": [
        ld.forces.JointSpring(joint="A.1", stiffness=3.0, rest=0.2),
        ld.forces.JointSpring(joint="B.slide", stiffness=9.0),
        ld.forces.JointSpring(joint="C", stiffness=4.0, rest=-0.1),
    ],
    "joint_friction": [ld.forces.JointFriction(joint="C", viscous=0.3, coulomb=2.0, transition=0.4)],
    "motor": [
        ld.forces.Motor(joint="B.slide", force="3*position - speed"),
        ld.forces.Motor(joint="C", torque="t + 0.5*position"),
        ld.forces.Motor(joint="A.2", torque="t - 0.5*speed"),
    ],
    # about the axes as stiff as one another: only then is there an energy at large angles
    "bushing": [
        ld.forces.Bushing(
            body1="a", body2="c", at=(0.5, 0.2, 0.6), stiffness=(9.0, 5.0, 2.0), angular_stiffness=(3, 3, 3)
        )
    ],
    "applied": [
        ld.forces.AppliedForce(body="c", force=(1, "t", -2), torque=(0.3, 0, "t**2"), at=(1, 0, 1), axes=axes)
        for axes in ("world", "body")
    ],
    "joint_tendon": [
        ld.forces.JointTendon(terms={"A.1": 0.5, "B.slide": 2.0}, force=LAW),
        ld.forces.JointTendon(terms={"A.2": 0.5, "C": 2.0}, force=LAW),
    ],
}
CASES = [(f"{name} {k}", force) for name, forces in EXAMPLES.items() for k, force in enumerate(forces)]
each_force = pytest.mark.parametrize("force", [f for _, f in CASES], ids=[name for name, _ in CASES])


def arm(*forces: Force, cut: bool = False) -> ld.System:
    """Three bodies in a row on a universal, a cylindrical and a revolute joint; the last one may be cut."""
    m = ld.Mechanism("arm", gravity=(0, 0, -9.81))
    for k, name in enumerate("abc"):
        m.add_body(name, ld.Inertia(1.0 + k, (0.3 + k, 0.1, 0.2), np.diag([0.3, 0.2, 0.25])))
    m.add_joint("A", ld.Universal(axis1=(1, 0.2, 0), axis2=(0, 1, 0.3)), m.ground, "a", at=(0, 0, 0))
    m.add_joint("B", ld.Cylindrical(axis=(0.2, 0.3, 1)), "a", "b", at=(0.8, 0.2, 0.1))
    m.add_joint("C", ld.Revolute(axis=(0.5, 0.3, 1)), "b", "c", at=(0.8, 0.2, 0.9))
    for force in forces:
        m.add_force(None, force)
    return m.compile(cuts=["C"] if cut else None)


def can_be_cut(force: Force) -> bool:
    return force.acts_on != rec.ON_COORDINATES


def systems(force: Force) -> list[ld.System]:
    return [arm(force, cut=cut) for cut in ((False, True) if can_be_cut(force) else (False,))]


def power_and_load(system: ld.System, state: ld.State) -> tuple[float, float]:
    """As runs record them."""
    work = system.work()
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
    powers, loads = np.zeros(1 + power.N_OTHERS), np.zeros(1)
    power.power_of_forces(system.ints, system.floats, work, False, powers, loads)
    return powers[0], loads[0]


def generalised(system: ld.System, bare: ld.System, state: ld.State) -> np.ndarray:
    """Generalised forces of the force alone, from the equations of motion with and without it."""
    still = np.zeros(system.nv)
    without = ld.State(state.t, state.q[: bare.nq], state.v)  # a cut angle whose turns nothing reads is no coordinate
    return ld.tree.open_tree_inverse_dynamics(bare, still, without) - ld.tree.open_tree_inverse_dynamics(
        system,
        still,
        state,
    )


def stored(system: ld.System, state: ld.State) -> float:
    work = system.work()
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
    return power.elastic_energy(system.ints, system.floats, work)


def test_every_type_is_tried():
    assert set(EXAMPLES) == {t.model_fields["type"].default for t in dispatch.TYPES}
    assert {type(force) for _, force in CASES} == set(dispatch.TYPES)


@pytest.mark.parametrize("kind", dispatch.TYPES, ids=lambda t: t.__name__)
def test_a_type_is_a_file_of_its_name_that_has_its_code_and_its_kernels(kind):
    module, name = sys.modules[kind.__module__], kind.model_fields["type"].default
    assert kind.__module__ == f"loopdyn.forces.{name}"
    assert kind.label == name
    assert [t for t in dispatch.TYPES if t.code == kind.code] == [kind]
    assert getattr(module, name.upper()) == kind.code
    for duty in ("code", "acts_on", "stores_energy"):
        assert duty in vars(kind), f"{name} does not say its '{duty}'"
    kernel = {rec.ON_LINE: "pull", rec.ON_FREEDOM: "load", rec.ON_COORDINATES: "act", rec.ON_BODIES: "act"}
    assert hasattr(module, kernel[kind.acts_on])
    assert hasattr(module, "energy") == kind.stores_energy
    if kind.drawn_as is not None:
        assert {"body1", "body2", "point1", "point2"} <= set(kind.model_fields)


@each_force
def test_power_is_that_of_its_loads_on_the_speeds(force):
    """Generalised forces Q are the change that the force makes in the equations of motion: power = Q . v."""
    for system in systems(force):
        bare = arm(cut=bool(system.nc))
        for seed in range(3):
            state = random_state(system, np.random.default_rng(seed), 0.4, t=0.3)
            expected = generalised(system, bare, state) @ state.v
            found, load = power_and_load(system, state)
            assert np.isfinite(load)
            assert found == pytest.approx(expected, abs=1e-11 * (1.0 + abs(expected)))  # weights of 10 N cancel


@each_force
def test_energy_falls_by_the_power_or_there_is_none(force):
    """Five-point differences, h = 1e-3: errors of h^4 = 1e-12 times the fifth derivative, some 1e3.

    The speed of a freedom of a cut joint is the rate of its coordinate where the joint is closed.
    """
    for system in systems(force):
        rng = np.random.default_rng(5)
        state = closed_state(system, rng, t=0.3) if system.nc else random_state(system, rng, 0.4, t=0.3)
        along = path(system, state, np.zeros(system.nv))
        rate = first_derivative(lambda s, along=along, system=system: np.array(stored(system, along(s))), 1e-3)
        found, _ = power_and_load(system, state)
        if force.stores_energy:
            assert stored(system, state) != 0.0
            assert found == pytest.approx(-float(rate), abs=1e-8)
        else:
            assert stored(system, state) == 0.0


@each_force
def test_a_whole_turn_of_an_angle_is_felt_exactly_if_the_force_reads_it(force):
    system = arm(force)
    state = random_state(system, np.random.default_rng(2), 0.4, t=0.3)
    before = power_and_load(system, state)[1]
    for label in ("A.1", "A.2", "B.angle", "C"):
        q = state.q.copy()
        q[system.coordinates.index(label)] += 2 * np.pi
        after = power_and_load(system, ld.State(state.t, q, state.v))[1]
        assert (abs(after - before) > 1e-6) == (label in force.reads()), label


@each_force
def test_it_loads_the_bodies_and_joints_that_it_names_and_no_others(force):
    """On free bodies the generalised forces of each are those on it alone."""
    if force.acts_on == rec.ON_COORDINATES:
        assert not force.bodies()
        system = arm(force)
        state = random_state(system, np.random.default_rng(3), 0.4, t=0.3)
        loaded = np.flatnonzero(np.abs(generalised(system, arm(), state)) > 1e-9)
        assert {system.speeds[k].partition(".")[0] for k in loaded} == set(force.joints())
        return
    system, bare = arm(force).absolute, arm().absolute
    ends = [(j.parent, j.child) for j in (system.joints[name] for name in force.joints())]
    named = {*force.bodies(), *(system.bodies[row] for pair in ends for row in pair)} - {"ground"}
    state = random_state(system, np.random.default_rng(3), 0.4, t=0.3)
    forces = np.abs(generalised(system, bare, state))
    loaded = {
        system.bodies[j.body] for j in system.joints.values() if j.in_tree and np.any(forces[j.v0 : j.v0 + 6] > 1e-9)
    }
    assert loaded == named
    assert bool(force.bodies()) != bool(force.joints())


@each_force
def test_what_is_preloaded_is_a_field_in_which_the_load_is_affine(force):
    key = force.preloaded()
    if key is None:
        return
    assert key in get_args(Preloaded)
    assert key in type(force).model_fields
    state = random_state(arm(force), np.random.default_rng(4), 0.4, t=0.3)
    loads = [power_and_load(arm(force.model_copy(update={key: x})), state)[1] for x in (0.0, 1.0, 2.0)]
    assert loads[1] != loads[0]
    assert loads[2] - loads[1] == pytest.approx(loads[1] - loads[0], rel=1e-12)


@each_force
def test_only_what_resists_at_any_slow_speed_sticks(force):
    """At a thousandth of the transition dry friction still has a slope; its limits at both ends differ."""
    if force.acts_on != rec.ON_FREEDOM:
        assert not force.sticks()
        return
    system = arm(force)
    q = system.q_reference
    fast = [power_and_load(system, ld.State(0.0, q, np.full(system.nv, x)))[1] for x in (-9.0, 9.0, -18.0, 18.0)]
    dry = (fast[0] - fast[1]) - 0.5 * (fast[2] - fast[3])  # what is left when the speed goes to zero from far
    assert force.sticks() == (abs(dry) > 1e-6)


def test_loads_are_in_newtons_or_newton_metres():
    units = {name: load_units(arm(force))[0] for name, force in CASES}
    torques = {"joint_spring 0", "joint_spring 2", "joint_friction 0", "motor 1", "motor 2", "joint_tendon 1"}
    assert {name for name, unit in units.items() if unit == "N*m"} == torques


def test_a_type_that_is_not_listed_is_refused_when_it_is_compiled():
    class Magnet(Force):
        label: ClassVar[str] = "magnet"
        code: ClassVar[int] = 99
        acts_on: ClassVar[int] = rec.ON_LINE
        stores_energy: ClassVar[bool] = True
        type: Literal["magnet"] = "magnet"

        def resolve(self, *_: Any) -> Any:
            raise AssertionError("not asked")

    with pytest.raises(ld.errors.ModelError, match=r"'magnet' is not known to the kernels.*forces/dispatch\.py"):
        arm(Magnet())
