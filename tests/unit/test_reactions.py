"""Reactions: against independent references and closed forms, whatever was cut, and shared out as stated.

The references in tests/data/reference were made from closed forms of the motion (see problem.md there) and have
thirteen digits of the state and fourteen of the forces; forces are of the order of 10 N.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.independent import assert_same_motion, random_rotation, transfer, turn
from tests.variants import scaled

import loopdyn as ld
from loopdyn.loops.reactions import COMPONENTS, reactions

DATA = Path(__file__).parents[1] / "data" / "reference"
PIN = ld.Revolute(axis=(0, 0, 1))
G = 9.81

# States and forces are printed to 1e-13 relative; near dead points forces react to the state a hundred times stronger.
REFERENCE = 1e-9


def table(mechanism: str, name: str) -> dict[str, np.ndarray]:
    data = np.genfromtxt(DATA / mechanism / f"{name}.csv", delimiter=",", names=True)
    return {column: data[column] for column in data.dtype.names}


def plane_force(r: ld.results.Reactions, joint: str, angle: float = 0.0) -> np.ndarray:
    """Force in the plane, in world axes, where the parent has turned by `angle` since the reference pose."""
    wrench = r[joint]
    return turn((0, 0, 1), angle)[:2, :2] @ [wrench["fx"], wrench["fy"]]


def loads(system: ld.System, state: ld.State, formulation: str = "oracle", **options: object) -> ld.results.Reactions:
    return reactions(system, state, ld.accelerations(system, state, formulation), **options)


# ------------------------------------------------------------------------------------------------ references


@pytest.mark.parametrize("formulation", ["relative", "oracle"])
@pytest.mark.parametrize("case", ["reference", "reference_release"])
def test_four_bar_carries_the_forces_of_the_independent_reference(case, formulation):
    motion, forces = table("four_bar", case), table("four_bar", f"{case}_reactions")
    system = ld.library.four_bar().compile()
    state = None
    for k, t in enumerate(forces["t"]):
        i = int(np.argmin(np.abs(motion["t"] - t)))
        assert abs(motion["t"][i] - t) < 1e-12
        # theta1 counts turns; the path from the last pose is followed
        q, v = {"A": motion["theta1"][i] - 1.0}, {"A": motion["dtheta1"][i]}
        state = ld.assemble(system, q=q, v=v, near=state)
        r = loads(system, state, formulation)
        crank, coupler = motion["theta1"][i] - 1.0, motion["theta2"][i] - motion["theta2"][0]
        found = np.concatenate(
            [plane_force(r, "A"), plane_force(r, "B", crank), -plane_force(r, "C", coupler), plane_force(r, "D")]
        )
        expected = np.array([forces[c][k] for c in ("FOx", "FOy", "FAx", "FAy", "FBx", "FBy", "FDx", "FDy")])
        np.testing.assert_allclose(found, expected, rtol=0, atol=REFERENCE * np.abs(expected).max(), err_msg=f"t = {t}")


@pytest.mark.parametrize("formulation", ["relative", "oracle"])
def test_slider_crank_carries_the_forces_of_the_independent_reference(formulation):
    motion, forces = table("slider_crank", "reference"), table("slider_crank", "reference_reactions")
    system = ld.library.slider_crank().compile()
    state = None
    for k, t in enumerate(forces["t"]):
        i = int(np.argmin(np.abs(motion["t"] - t)))
        assert abs(motion["t"][i] - t) < 1e-12
        q, v = {"A": motion["theta"][i] - 0.5}, {"A": motion["dtheta"][i]}
        state = ld.assemble(system, q=q, v=v, near=state)
        r = loads(system, state, formulation)
        crank, rod = motion["theta"][i] - 0.5, motion["rod_angle"][i] - motion["rod_angle"][0]
        # the slide runs along world x, which is z of its frame; x of the frame is world y
        found = np.concatenate(
            [plane_force(r, "A"), plane_force(r, "B", crank), -plane_force(r, "C", rod), [r["D"]["fx"], r["D"]["my"]]]
        )
        expected = np.array([*(forces[c][k] for c in ("FOx", "FOy", "FBx", "FBy", "FCx", "FCy", "N_slider")), 0.0])
        np.testing.assert_allclose(found, expected, rtol=0, atol=REFERENCE * np.abs(expected).max(), err_msg=f"t = {t}")


# --------------------------------------------------------------------------------------------- closed forms


@pytest.mark.jit_off
@pytest.mark.parametrize("angle", [0.3, 2.0, 4.5])
def test_pendulum_pulls_with_weight_and_centripetal_force(angle):
    m = ld.library.pendulum()  # 1 kg on 1 m, at (-1, 0) for A = 0
    system = m.compile()
    speed = 1.7
    state = system.state(q={"A": angle}, v={"A": speed})
    r = loads(system, state)
    along = np.array([-np.cos(angle), -np.sin(angle)])  # from the pivot to the mass
    across = np.array([np.sin(angle), -np.cos(angle)])  # direction of growing A
    weight = np.array([0.0, -G])
    pull = (speed**2 + weight @ along) * -along - (weight @ across) * across + (weight @ across) * across
    np.testing.assert_allclose([r["A"]["fx"], r["A"]["fy"]], pull, atol=1e-12)
    assert abs(r["A"]["mx"]) < 1e-12
    assert abs(r["A"]["my"]) < 1e-12
    assert r["A"]["mz"] == 0.0  # a pin carries no moment about its axis
    assert r.unique.all()


def test_motor_and_spring_loads_are_not_part_of_the_reaction():
    """A wheel about its centre of mass: motor and spring turn it, the pin carries its weight alone."""
    m = ld.Mechanism("wheel", gravity=(0, -G, 0))
    m.add_body("wheel", ld.Inertia.cylinder(mass=2.0, radius=0.2, length=0.1, axis=(0, 0, 1)))
    m.add_joint("A", PIN, "ground", "wheel", at=(0, 0, 0))
    m.add_motor("motor", "A", torque=3.0)
    m.add_force(None, ld.forces.JointSpring(joint="A", stiffness=5.0, rest=0.0))
    system = m.compile()
    r = loads(system, system.state(q={"A": 0.4}))
    np.testing.assert_allclose(r.wrench[0], [0, 0, 0, 0, 2.0 * G, 0], atol=1e-12)
    assert r.residual < 1e-12


@pytest.mark.parametrize("turns", [0, 1, -3])
def test_joint_spring_beyond_half_a_turn_leaves_the_reaction_of_the_pin_right(turns):
    """The spring is wound up by whole turns: the torque k q grows, and the pin carries m a - m g as before."""
    m = ld.Mechanism("wound", gravity=(0, -G, 0))
    m.add_body("arm", ld.Inertia.rod(mass=1.2, start=(0.5, 0.2, 0), end=(1.3, 0.2, 0), radius=0.01))
    m.add_joint("A", PIN, "ground", "arm", at=(0.5, 0.2, 0))
    m.add_force(None, ld.forces.JointSpring(joint="A", stiffness=5.0, rest=0.0))
    system = m.compile()
    q = 1.1 + 2 * np.pi * turns
    state = system.state(q={"A": q}, v={"A": 0.7})
    r = loads(system, state)
    moment = -5.0 * q - 1.2 * G * 0.4 * np.cos(q)
    alpha = moment / (1.2 * (0.8**2 / 12 + 0.01**2 / 4) + 1.2 * 0.4**2)  # of a cylinder across its axis
    e, n = np.array([np.cos(q), np.sin(q)]), np.array([-np.sin(q), np.cos(q)])
    force = 1.2 * 0.4 * (alpha * n - 0.7**2 * e) + [0.0, 1.2 * G]
    np.testing.assert_allclose([r["A"]["fx"], r["A"]["fy"]], force, rtol=1e-11)
    assert r.residual < 1e-10


def test_loads_of_drivers_are_their_multipliers_whatever_the_order_of_joints_and_speeds():
    """The tree of the five-bar has its joints in another order (A, B, E, D) than the model."""
    m = ld.library.five_bar()
    m.add_driver("one", "A", "0.3*sin(3*t)")
    m.add_driver("two", "E", "0.4*t*t")
    system = m.compile()
    state = ld.assemble(system, q={})
    dense = ld.accelerations(system, state, formulation="oracle", full=True)
    expected = dict(zip(system.constraint_rows, dense.lam, strict=True))
    found = ld.reactions(system, state, dense.a)
    assert found.multipliers["one"] == pytest.approx(expected["one"], rel=1e-9)
    assert found.multipliers["two"] == pytest.approx(expected["two"], rel=1e-9)
    assert found.residual < 1e-9


def test_user_force_counts_as_a_load_of_its_joint():
    """A torque given as a Python function, on a closed mechanism: the same reactions as from a motor."""

    def twist(t, q, v, out):
        out[0] += 1.3 * np.cos(t) - 0.2 * v[0]

    plain = ld.library.slider_crank()
    with_motor, with_user = plain.model_copy(deep=True), plain.model_copy(deep=True)
    with_motor.add_motor("drive", "A", torque="1.3*cos(t) - 0.2*speed")
    with_user.add_force(None, ld.forces.UserForce(function=twist))
    found = []
    for m in (with_motor, with_user):
        system = m.compile(cuts=["D"])
        assert system.speeds[0] == "A"
        state = ld.assemble(system, q={"A": 0.8}, v={"A": 5.0}, t=0.3)
        found.append(loads(system, state))
    np.testing.assert_allclose(found[1].wrench, found[0].wrench, atol=1e-10)
    assert found[1].residual < 1e-10


# ------------------------------------------------------------------------------------------- whatever was cut


def by_joint(r: ld.results.Reactions) -> dict[str, np.ndarray]:
    return dict(zip(r.joints, r.wrench, strict=True))


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "bennett", "rssr", "bricard"])
def test_reactions_do_not_depend_on_the_cut(name):
    """Every joint of the loop cut in turn, and all of them: reactions and marks agree, redundant ones included."""
    m = ld.library.turned(ld.library.ALL[name]())
    first = m.compile()
    driver = next(iter(m.joints))
    given = {driver: 0.4}
    state = ld.assemble(first, q=given, v={driver: 3.0})
    expected = loads(first, state)
    scale = np.abs(expected.wrench).max()
    for cuts in [*([joint] for joint in m.joints), "all"]:
        system = m.compile(cuts=cuts)
        there = transfer(system, ld.tree.body_motion(first, state))
        assert_same_motion(
            ld.tree.body_motion(first, state), ld.tree.body_motion(system, there), 1e-10, accelerations=False
        )
        r = loads(system, there)
        assert set(r.joints) == set(expected.joints)
        for joint, wrench in by_joint(expected).items():
            # 1e-9: accelerations by the dense oracle in other coordinates, scaled by the largest reaction
            np.testing.assert_allclose(by_joint(r)[joint], wrench, atol=1e-9 * scale, err_msg=f"{cuts}: {joint}")
            assert (r.unique[r.joints.index(joint)] == expected.unique[expected.joints.index(joint)]).all()


@pytest.mark.parametrize("seed", range(6))
def test_forces_and_moments_on_each_body_make_its_momentum_change(seed):
    """Newton and Euler for every body, written here: weight and reactions against m a and the spin's rate."""
    m = ld.library.random_mechanism(seed, bodies=7, loops=2, redundant=seed % 3)
    system = m.compile()
    rng = np.random.default_rng(seed)
    start = ld.tree.increment(system, system.q_reference, 0.2 * rng.normal(size=system.nv))
    state = ld.assemble(system, q=start, v=rng.normal(size=system.nv))
    a = ld.accelerations(system, state, "oracle")
    r = reactions(system, state, a)
    motion = ld.tree.body_motion(system, state, a)
    force, moment = {}, {}
    for name, body in m.bodies.items():
        k = motion.bodies.index(name)
        R, w, alpha = motion.rotation[k], motion.angular_velocity[k], motion.angular_acceleration[k]
        arm = R @ np.array(body.com)
        acc = motion.acceleration[k] + np.cross(alpha, arm) + np.cross(w, np.cross(w, arm))
        i = body.inertia
        I = R @ np.array([[i.xx, i.xy, i.xz], [i.xy, i.yy, i.yz], [i.xz, i.yz, i.zz]]) @ R.T
        force[name] = body.mass * (acc - np.array(m.gravity))
        moment[name] = I @ alpha + np.cross(w, I @ w) + np.cross(motion.position[k] + arm, force[name])
    size = max(np.abs(f).max() for f in force.values())
    for joint, wrench in by_joint(r).items():
        j = system.joints[joint]
        F = motion.rotation[j.parent] @ j.F[1]
        at = motion.position[j.child] + motion.rotation[j.child] @ j.M[0]
        f = F @ wrench[3:]
        n = F @ wrench[:3] + np.cross(at, f)  # about the world origin
        for body, sign in ((system.bodies[j.child], 1.0), (system.bodies[j.parent], -1.0)):
            if body != "ground":
                force[body] = force[body] - sign * f
                moment[body] = moment[body] - sign * n
    # 1e-9 of the largest force: accelerations of the oracle, lengths of a few metres
    assert max(np.abs(x).max() for x in force.values()) < 1e-9 * size
    assert max(np.abs(x).max() for x in moment.values()) < 1e-8 * size
    assert r.residual < 1e-8 * size


# ------------------------------------------------------------------------- statically indeterminate: shared out


def door(compliance: dict | None = None) -> ld.results.Reactions:
    """Weight 20 kg, 0.5 m from two hinges on the z axis, at z = 0 and z = 2; its centre at half height."""
    m = ld.Mechanism("door", gravity=(0, 0, -G))
    m.add_body("door", ld.Inertia.box(mass=20.0, size=(1.0, 0.05, 2.0), at=(0.5, 0, 1.0)))
    m.add_joint("low", PIN, "ground", "door", at=(0, 0, 0))
    m.add_joint("high", PIN, "ground", "door", at=(0, 0, 2.0))
    system = m.compile()
    state = ld.assemble(system)
    return loads(system, state, compliance=compliance)


def test_door_with_hinges_weak_in_bending_hangs_on_a_couple_of_forces():
    """Hinges that carry no moment: weight shared by the axial compliances 1:3, F = m g (b/2)/h across."""
    weak = 1e12  # compliance of moments against 1 of forces: moments are zero to 1e-12
    r = door({"low": [weak, weak, weak, 1, 1, 1], "high": [weak, weak, weak, 1, 1, 3]})
    weight = 20.0 * G
    # least c1 f1^2 + c2 f2^2 with f1 + f2 = weight: f1 : f2 = c2 : c1
    np.testing.assert_allclose([r["low"]["fz"], r["high"]["fz"]], [0.75 * weight, 0.25 * weight], rtol=1e-9)
    across = weight * 0.5 / 2.0  # the weight turns the door outwards below: the lower hinge pushes, the upper pulls
    np.testing.assert_allclose([r["low"]["fx"], r["high"]["fx"]], [across, -across], rtol=1e-9)
    np.testing.assert_allclose(r.wrench[:, :3], 0.0, atol=1e-6)
    assert r.norm == "least elastic energy"


def test_door_marks_what_the_rigid_model_leaves_open():
    r = door()
    rows = dict(zip(r.joints, r.unique, strict=True))
    for joint in ("low", "high"):
        # mz is none for a pin, so known; the others can be set against those of the other hinge
        assert rows[joint].tolist() == [False, False, True, False, False, False]
    text = str(r)
    assert "?" in text
    assert "statically indeterminate" in text


def test_default_distribution_is_the_least_sum_of_squares_it_names():
    """Against a numerical minimum of the stated norm over all reactions that balance the weight of the door."""
    r = door()
    length = 1.0  # size: both hinges are 1 m from their mean
    assert "least sum of force^2 + (moment/1 m)^2" in r.norm
    # unknowns mx, my, fx, fy, fz of both hinges; balance of forces and of moments about the origin
    A, b = np.zeros((6, 10)), np.array([0, 0, 20 * G, 0, -20 * G * 0.5, 0])  # moment of the weight about y: + g x
    for k, z in enumerate((0.0, 2.0)):
        A[0, 5 * k + 2] = A[1, 5 * k + 3] = A[2, 5 * k + 4] = 1.0
        A[3, 5 * k] = A[4, 5 * k + 1] = 1.0
        A[4, 5 * k + 2] = z  # (0, 0, z) x (fx, fy, fz) = (-z fy, z fx, 0)
        A[3, 5 * k + 3] = -z
    weight = np.tile([1 / length, 1 / length, 1, 1, 1], 2)
    x = np.linalg.lstsq(A / weight, b, rcond=None)[0] / weight
    found = np.concatenate([[r[j][c] for c in ("mx", "my", "fx", "fy", "fz")] for j in ("low", "high")])
    np.testing.assert_allclose(found, x, atol=1e-10 * 20 * G)


def test_rigid_beam_on_three_equal_supports_is_carried_as_by_three_equal_springs():
    """Supports at x = -1, 0 and 2 m, weight at 0.2 m, by hand from springs of one stiffness under a rigid beam.

    With the deflection u + p x: sum of (u + p x_i) = W, sum of (u + p x_i) x_i = 0.2 W.
    """
    m = ld.Mechanism("beam", gravity=(0, -G, 0))
    m.add_body("beam", ld.Inertia.box(mass=10.0, size=(4, 0.1, 0.1), at=(0.2, 0, 0)))
    places = (-1.0, 0.0, 2.0)
    for k, x in enumerate(places):  # a light foot that slides on the ground, with a ball
        m.add_body(f"foot{k}", ld.Inertia.sphere(mass=1e-3, radius=0.01, at=(x, -0.1, 0)))
        m.add_joint(f"slide{k}", ld.Planar(normal=(0, 1, 0)), "ground", f"foot{k}", at=(x, -0.1, 0))
        m.add_joint(f"ball{k}", ld.Spherical(), f"foot{k}", "beam", at=(x, -0.1, 0))
    system = m.compile()
    r = loads(system, ld.assemble(system))
    K = np.array([[3.0, sum(places)], [sum(places), sum(x * x for x in places)]])
    u, p = np.linalg.solve(K, 10.0 * G * np.array([1.0, 0.2]))
    feet = 1e-3 * G  # each slide carries its foot as well
    expected = [u + p * x + feet for x in places]
    np.testing.assert_allclose([r[f"slide{k}"]["fz"] for k in range(3)], expected, rtol=1e-9)
    assert not any(r.unique[r.joints.index(f"slide{k}"), COMPONENTS.index("fz")] for k in range(3))


def test_compliant_distribution_is_the_limit_of_stiff_bushings():
    """Two hinges in place of which stiff bushings act: their loads at equilibrium against the stated compliances."""
    rng = np.random.default_rng(5)
    c = {"low": rng.uniform(0.5, 2.0, 6), "high": rng.uniform(0.5, 2.0, 6)}
    r = door(c)
    # rigid door on two springs: displacement of its origin (rotation p, translation u), loads = -K x at each hinge
    K = np.zeros((6, 6))
    arms = {"low": np.zeros(3), "high": np.array([0, 0, 2.0])}
    maps = {}
    for name, arm in arms.items():
        skew = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
        T = np.block([[np.eye(3), np.zeros((3, 3))], [-skew, np.eye(3)]])  # motion at the hinge
        keep = [0, 1, 3, 4, 5]  # a pin does not hold the rotation about its axis
        maps[name] = (T[keep], np.diag(1.0 / c[name][keep]))
        K += T[keep].T @ maps[name][1] @ T[keep]
    weight = np.array([0.0, 20 * G * 0.5, 0.0, 0.0, 0.0, -20 * G])  # moment about y of a force -z at x = 0.5
    x = np.linalg.lstsq(K, weight, rcond=1e-12)[0]
    for name, (T, k) in maps.items():
        found = [r[name][s] for s in ("mx", "my", "fx", "fy", "fz")]
        np.testing.assert_allclose(found, -k @ T @ x, atol=1e-9 * 20 * G)


@pytest.mark.filterwarnings("ignore:four_bar:UserWarning")  # numbers in mm that are taken as m are the point
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_forces_scale_with_the_units_of_length(scale):
    """A four-bar `scale` times as large under `scale` times the gravity: the same motion, forces times `scale`."""
    at = {"A": 0.5}
    small = ld.library.four_bar()
    system = small.compile()
    state = ld.assemble(system, q=at, v={"A": 2.0})
    expected = loads(system, state, length=1.0)
    large = scaled(small, scale)
    system = large.compile()
    state = ld.assemble(system, q=at, v={"A": 2.0})
    r = loads(system, state, length=scale)
    factors = np.array([scale**2] * 3 + [scale] * 3)
    np.testing.assert_allclose(r.wrench / factors, expected.wrench, atol=1e-10 * np.abs(expected.wrench).max())
    assert (r.unique == expected.unique).all()


# --------------------------------------------------------------------------------------------------- the rest


def test_unknown_joint_and_bad_compliance_are_refused_in_words():
    with pytest.raises(ld.errors.ModelError, match="no joint 'lo'"):
        door({"lo": 1.0})
    with pytest.raises(ld.errors.ModelError, match="not positive"):
        door({"low": -1.0})


def test_dataset_names_joints_and_components():
    data = door().dataset()
    assert list(data.component.values) == list(COMPONENTS)
    assert set(data.joint.values) == {"low", "high"}
    assert data.wrench.attrs["norm"].startswith("least sum of force^2")


def test_wrong_accelerations_show_as_residual():
    """The residual is the unbalanced load: torque I alpha for a pendulum whose acceleration is wrong by alpha."""
    system = ld.library.pendulum().compile()
    state = system.state(q={"A": 0.3})
    a = ld.accelerations(system, state, "oracle")
    assert reactions(system, state, a).residual < 1e-12
    assert reactions(system, state, a + 0.5).residual > 0.1


def test_generic_orientation_turns_the_reactions_with_it():
    """World components of the reactions of a turned mechanism are the turned ones."""
    Q = random_rotation(np.random.default_rng(3))
    m = ld.library.four_bar()
    found = []
    for mechanism in (m, ld.library.turned(m, Q)):
        system = mechanism.compile()
        state = ld.assemble(system, q={"A": 0.3}, v={"A": 2.0})
        motion = ld.tree.body_motion(system, state)
        r = loads(system, state)
        world = {}
        for name in m.joints:
            j = system.joints[name]
            F = motion.rotation[j.parent] @ j.F[1]
            wrench = r.wrench[r.joints.index(name)]
            world[name] = np.concatenate([F @ wrench[:3], F @ wrench[3:]])
        found.append(world)
    for name in m.joints:
        plain, other = found[0][name], found[1][name]
        np.testing.assert_allclose(other[:3], Q @ plain[:3], atol=1e-10)
        np.testing.assert_allclose(other[3:], Q @ plain[3:], atol=1e-10)


@pytest.mark.jit_off
def test_loads_of_constraints_have_labels_by_one_rule():
    """One row: the name. Several rows: name.row. Whatever the kind of constraint, and in everything that has labels."""
    m = ld.Mechanism("labels", gravity=(0, -9.81, 0))
    for k, name in enumerate(("a", "b", "c")):
        m.add_body(name, ld.Inertia.sphere(mass=1.0, radius=0.2, at=(k, 0.3, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "a", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=(0, 0, 1)), m.ground, "b", at=(1, 0, 0))
    m.add_joint("C", ld.Planar(normal=(0, 0, 1)), m.ground, "c", at=(2, 0, 0))
    m.add_constraint("rod", ld.constraints.Distance(body1="b", body2="c", point1=(1, 0.5, 0), point2=(2, 0.5, 0)))
    m.add_constraint("gear", ld.constraints.Coupler(terms={"A": 1.0, "B": 2.0}))
    m.add_constraint("own", ld.constraints.UserConstraint(function=lambda t, q: [q[2]], rows=("row",)))
    m.add_constraint("two", ld.constraints.UserConstraint(function=lambda t, q: [q[0], q[3]], rows=("one", "other")))
    expected = {"rod", "gear", "own", "two.one", "two.other"}
    system = m.compile(cuts=[])
    state = ld.assemble(system)
    assert set(system.constraint_rows) == expected
    assert set(ld.reactions(system, state).multipliers) == expected
    assert set(ld.terms(system, state).dataset()["row"].values) == expected


@pytest.mark.jit_off
def test_the_rod_of_a_pendulum_is_labelled_by_its_name_in_a_run():
    """A point mass of 2 kg that hangs at rest on a rod of 1 m: it is drawn by m g."""
    m = ld.Mechanism("pendulum", gravity=(0, -10, 0))
    m.add_body("bob", ld.Inertia.sphere(mass=2.0, radius=0.1, at=(0, -1, 0)))
    m.add_joint("T", ld.joints.Translational(), m.ground, "bob", at=(0, -1, 0))
    m.add_constraint("rod", ld.constraints.Distance(body1="ground", body2="bob", point1=(0, 0, 0), point2=(0, -1, 0)))
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system), (0, 0.1), t_eval=[0, 0.1], progress=False)
    load = run.data["constraint_load"].sel(constraint="rod").values
    assert np.abs(load) == pytest.approx([20.0, 20.0], rel=1e-9)  # m g, to what the run was asked for
    assert "constraint_load rod" in run.to_dataframe()
