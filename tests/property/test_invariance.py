"""What a description leaves open must not change the physics: direction of joints, order, units, root, cuts, axes.

Two descriptions of one mechanism are compiled, brought to the same state, and the accelerations of all bodies are
compared. Systems with loops are solved by the dense equations in least squares, written in tests/independent.py.
Tolerances are relative to the largest acceleration: 1e-9 for closed systems, whose dense solution loses some digits,
1e-10 for trees.
"""

from __future__ import annotations

import re
from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.independent import (
    REVERSIBLE,
    assert_same_motion,
    closed_state,
    constrained,
    placement,
    random_coordinates,
    random_inertia,
    random_joint,
    random_rotation,
    random_state,
    reversed_coordinates,
    reversed_joint,
    transfer,
    turn,
)

import loopdyn as ld
from loopdyn.engine import records as rec
from loopdyn.engine.status import FINE
from loopdyn.library.random import MAKERS
from loopdyn.tree import aba, jacobian, kinematics, rnea

DETERMINISTIC = settings(derandomize=True, database=None, deadline=None, max_examples=50)
TREE, CLOSED = 1e-10, 1e-9
LOOSE_TYPES = [*MAKERS, "spherical", "revolute", "spherical", "universal"]  # leave room for loops

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 9)


def tree_motion(system: ld.System, state: ld.State) -> ld.tree.Motion:
    return ld.tree.body_motion(system, state, ld.tree.open_tree_forward_dynamics(system, state))


def closed_motion(system: ld.System, state: ld.State) -> ld.tree.Motion:
    return ld.tree.body_motion(system, state, constrained(system, state)[0])


def linkage(seed: int, bodies: int, loops: int, **options: object) -> ld.Mechanism:
    return ld.library.random_mechanism(seed, bodies=bodies, loops=loops, joints=LOOSE_TYPES, **options)


# ---------------------------------------------------------------------------------- parent and child exchanged


def reverse(m: ld.Mechanism, chosen: list[str]) -> ld.Mechanism:
    other = m.model_copy(deep=True)
    for name in chosen:
        other.joints[name] = reversed_joint(m.joints[name])
    for name, force in m.forces.items():
        if getattr(force, "joint", "").split(".")[0] in chosen:
            other.forces[name] = reversed_force(force, m.joints[force.joint.split(".")[0]])
    return other


def reversed_force(force, spec):
    """A load on a coordinate that has changed its sign."""
    _, _, suffix = force.joint.partition(".")
    change: dict[str, object] = {}
    if spec.type == "universal":
        change["joint"] = force.joint[:-1] + {"1": "2", "2": "1"}[suffix]
    if force.type == "joint_spring":
        change["rest"] = -force.rest
    if force.type == "motor":
        key = "torque" if force.torque is not None else "force"
        law = getattr(force, key).replace("position", "(-position)").replace("speed", "(-speed)")
        change[key] = f"-({law})"
    return force.model_copy(update=change)


def reversed_state(system: ld.System, state: ld.State, other: ld.System, chosen: list[str]) -> ld.State:
    q, v = np.zeros(other.nq), np.zeros(other.nv)
    for name, j in system.joints.items():
        if not j.in_tree:
            continue
        mine = state.q[j.q0 : j.q0 + len(j.spec.coordinates)], state.v[j.v0 : j.v0 + len(j.spec.speeds)]
        new_q, new_v = reversed_coordinates(j.spec, *mine) if name in chosen else mine
        k = other.joints[name]
        q[k.q0 : k.q0 + len(new_q)], v[k.v0 : k.v0 + len(new_v)] = new_q, new_v
    return other.state(q, v, state.t)


def safe_to_reverse(m: ld.Mechanism, name: str) -> bool:
    """A load on x or y of a planar joint acts along axes fixed in the parent: not the same load from the other side."""
    loaded = [f.joint.partition(".") for f in m.forces.values() if hasattr(f, "joint")]
    return not any(joint == name and m.joints[name].type == "planar" and s != "angle" for joint, _, s in loaded)


def check_reversal(seed: int, bodies: int, floating: bool) -> None:
    m = ld.library.random_mechanism(seed, bodies=bodies, loops=0, floating=floating, forces=True)
    rng = np.random.default_rng(seed)
    chosen = [name for name in m.joints if rng.random() < 0.7 and safe_to_reverse(m, name)]
    system, other = m.compile(), reverse(m, chosen).compile()
    state = random_state(system, rng, t=0.6)
    mapped = reversed_state(system, state, other, chosen)
    assert_same_motion(tree_motion(system, state), tree_motion(other, mapped), TREE)
    a, b = ld.tree.energy(system, state), ld.tree.energy(other, mapped)
    assert a.kinetic == pytest.approx(b.kinetic, rel=1e-11)
    assert a.gravity == pytest.approx(b.gravity, abs=1e-10)


@DETERMINISTIC
@given(seeds, sizes, st.booleans())
def test_reversing_parent_and_child_changes_no_motion_of_a_tree(seed, bodies, floating):
    check_reversal(seed, bodies, floating)


@pytest.mark.slow
@settings(DETERMINISTIC, max_examples=300)
@given(seeds, st.integers(1, 25), st.booleans())
def test_reversing_parent_and_child_changes_no_motion_of_many_trees(seed, bodies, floating):
    check_reversal(seed, bodies, floating)


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", REVERSIBLE)
def test_reversing_each_joint_type_in_a_chain_changes_no_motion(kind):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        m = ld.Mechanism("chain", gravity=(1, -9, 2))
        before = m.ground
        for k in range(3):
            body = m.add_body(f"b{k}", random_inertia(rng, rng.normal(size=3)))
            ends = (before, body) if rng.random() < 0.5 else (body, before)
            m.add_joint(f"J{k}", random_joint(kind, rng), *ends, at=rng.normal(size=3))
            before = body
        system = m.compile()
        state = random_state(system, rng)
        for chosen in (["J0"], ["J1"], ["J0", "J1", "J2"]):
            other = reverse(m, chosen).compile()
            mapped = reversed_state(system, state, other, chosen)
            assert_same_motion(tree_motion(system, state), tree_motion(other, mapped), TREE)


@DETERMINISTIC
@given(seeds, st.integers(5, 9), st.integers(1, 2), st.booleans())
def test_reversing_parent_and_child_changes_no_motion_of_a_closed_linkage(seed, bodies, loops, floating):
    m = linkage(seed, bodies, loops, floating=floating, forces=True)
    rng = np.random.default_rng(seed)
    chosen = [name for name in m.joints if safe_to_reverse(m, name)]
    system, other = m.compile(), reverse(m, chosen).compile()
    assert system.topology.cuts == other.topology.cuts
    state = closed_state(system, rng, t=0.6)
    expected = closed_motion(system, state)
    same = transfer(other, expected, state.t)
    assert_same_motion(expected, closed_motion(other, same), CLOSED)


def row_wrench(system: ld.System, state: ld.State, lam: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """World torque about the world origin and force on the declared child of a cut joint."""
    work = system.work()
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
    kinematics.place(system.ints, system.floats, work, False)
    jacobian.constraint_terms(system.ints, system.floats, work, np.empty((system.nc, system.nv)), np.empty(system.nc))
    rows = [k for k, label in enumerate(system.constraint_rows) if label.split(".")[0] == name]
    wrench = lam[rows] @ w.rows[rows]
    j, motion = system.joints[name], ld.tree.body_motion(system, state)
    origin = motion.position[j.child] + motion.rotation[j.child] @ j.M[0]
    return wrench[:3] + np.cross(origin, wrench[3:]), wrench[3:]


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", [k for k in REVERSIBLE if k != "free"])
def test_reaction_of_a_cut_joint_is_the_opposite_one_when_it_is_reversed(kind):
    """Two bodies on loose joints to the ground, joined by the joint in question: its rows are independent."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        m = ld.Mechanism("loop", gravity=(1, -9, 2))
        for name in ("a", "b"):
            m.add_body(name, random_inertia(rng, rng.normal(size=3)))
            m.add_joint(f"root {name}", ld.Free(), m.ground, name, at=(0, 0, 0))
        m.add_joint("X", random_joint(kind, rng), "a", "b", at=rng.normal(size=3))
        systems = [m.compile(cuts=["X"]), reverse(m, ["X"]).compile(cuts=["X"])]
        state = closed_state(systems[0], rng)
        if kind in ("revolute", "cylindrical"):  # turn it, so that F and M have different axes
            target = ld.tree.body_motion(systems[0], state)
            assert np.abs(target.rotation[1] - target.rotation[2]).max() > 1e-3
        solved = [constrained(s, state) for s in systems]
        np.testing.assert_allclose(solved[1][0], solved[0][0], atol=CLOSED * (1 + np.abs(solved[0][0]).max()))
        (t0, f0), (t1, f1) = (row_wrench(s, state, lam, "X") for s, (_, lam) in zip(systems, solved, strict=True))
        scale = 1 + np.abs(t0).max() + np.abs(f0).max()
        np.testing.assert_allclose(t1, -t0, atol=1e-9 * scale)
        np.testing.assert_allclose(f1, -f0, atol=1e-9 * scale)


# --------------------------------------------------------------------------------------------- order and units


def shuffled(m: ld.Mechanism, rng: np.random.Generator) -> ld.Mechanism:
    other = m.model_copy(deep=True)
    for section in ("bodies", "joints", "forces"):
        items = list(getattr(m, section).items())
        setattr(other, section, {items[k][0]: items[k][1] for k in rng.permutation(len(items))})
    return other


@DETERMINISTIC
@given(seeds, st.integers(5, 9), st.integers(0, 2), st.booleans())
def test_order_of_bodies_joints_and_forces_changes_nothing_but_the_order(seed, bodies, loops, floating):
    m = linkage(seed, bodies, loops, floating=floating, forces=True)
    rng = np.random.default_rng(seed)
    system, other = m.compile(), shuffled(m, rng).compile()
    assert set(system.topology.cuts) == set(other.topology.cuts)
    for body in m.bodies:
        assert system.topology.inboard(body) == other.topology.inboard(body)
    assert {frozenset(x.joints) for x in system.topology.loops} == {frozenset(x.joints) for x in other.topology.loops}
    assert set(system.coordinates) == set(other.coordinates)
    state = closed_state(system, rng, t=0.4)
    q = dict(zip(system.coordinates, state.q, strict=True))
    v = dict(zip(system.speeds, state.v, strict=True))
    same = other.state(q, v, state.t)
    assert_same_motion(tree_motion(system, state), tree_motion(other, same), TREE)
    one, two = ld.terms(system, state).dataset(), ld.terms(other, same).dataset()
    two = two.sel(speed=one.speed, speed2=one.speed2, row=one.row)
    for name in one:
        size = 1 + np.abs(one[name].values).max(initial=0)
        np.testing.assert_allclose(two[name], one[name], atol=1e-10 * size, err_msg=name)


SYSTEMS = {
    "mm, deg, g": ({"length": "mm", "angle": "deg", "mass": "g"}, (1e-3, np.pi / 180, 1e-3, 1.0, 1.0, 1.0)),
    "inch, pound": (
        {"length": "in", "angle": "turn", "mass": "lb", "force": "lbf", "torque": "lbf*ft", "acceleration": "ft/s^2"},
        (0.0254, 2 * np.pi, 0.45359237, 4.4482216152605, 4.4482216152605 * 0.3048, 0.3048),
    ),
    "cm, t, kN": (
        {"length": "cm", "angle": "rad", "mass": "t", "force": "kN", "torque": "N*mm", "acceleration": "g"},
        (0.01, 1.0, 1e3, 1e3, 1e-3, 9.80665),
    ),
}


class Written:
    """The numbers of a mechanism in SI units, written in other units; values of the units from the tables of BIPM."""

    def __init__(self, values):
        self.length, self.angle, self.mass, self.force, self.torque, self.acceleration = values

    def lengths(self, values):
        return tuple(x / self.length for x in values)

    def law(self, law, result, variables):
        """A formula that takes variables in these units and gives its result in them."""
        for name, unit in variables.items():
            law = re.sub(rf"\b{name}\b", f"({name}*{unit!r})", law) if isinstance(law, str) else law
        return f"({law})/{result!r}"

    def body(self, body):
        i, unit = body.inertia, self.mass * self.length**2
        matrix = {k: getattr(i, k) / unit for k in ("xx", "yy", "zz", "xy", "xz", "yz")}
        return ld.Body(mass=body.mass / self.mass, com=self.lengths(body.com), inertia=matrix)

    def joint(self, spec):
        change = {"at": self.lengths(spec.at)}
        if spec.type == "helical":
            change["pitch"] = spec.pitch * self.angle / self.length
        return spec.model_copy(update=change)

    def joint_force(self, force, turning):
        x, load = (self.angle, self.torque) if turning else (self.length, self.force)
        change = {
            "joint_spring": lambda: {
                "stiffness": force.stiffness * x / load,
                "damping": force.damping * x / load,
                "rest": force.rest / x,
            },
            "joint_friction": lambda: {
                "viscous": force.viscous * x / load,
                "coulomb": force.coulomb / load,
                "transition": force.transition / x,
            },
            "motor": lambda: {
                key: self.law(getattr(force, key), load, {"position": x, "speed": x})
                for key in ("torque", "force")
                if getattr(force, key) is not None
            },
        }[force.type]()
        return force.model_copy(update=change)

    def between(self, force):
        change = {k: self.lengths(getattr(force, k)) for k in ("point1", "point2", "at") if hasattr(force, k)}
        if force.type == "spring_damper":
            change |= {k: getattr(force, k) * self.length / self.force for k in ("stiffness", "damping")}
            change["length"] = force.length / self.length
        elif force.type == "actuator":
            change["force"] = self.law(force.force, self.force, {"length": self.length, "speed": self.length})
        elif force.type == "bushing":
            for key in ("stiffness", "damping"):
                change[key] = tuple(k * self.length / self.force for k in getattr(force, key))
                change[f"angular_{key}"] = tuple(k * self.angle / self.torque for k in getattr(force, f"angular_{key}"))
            turned = force.rotation
            change["rotation"] = ld.joints.Rotation(axis=turned.axis, angle=turned.angle / self.angle)
        elif force.type == "applied":
            change["force"] = tuple(self.law(f, self.force, {}) for f in force.force)
            change["torque"] = tuple(self.law(f, self.torque, {}) for f in force.torque)
        return force.model_copy(update=change)

    def mechanism(self, m, units):
        other = ld.Mechanism(m.name, units=units, gravity=[x / self.acceleration for x in m.gravity])
        other.bodies = {name: self.body(body) for name, body in m.bodies.items()}
        other.joints = {name: self.joint(spec) for name, spec in m.joints.items()}
        for name, force in m.forces.items():
            if hasattr(force, "joint"):
                joint, _, suffix = force.joint.partition(".")
                spec = m.joints[joint]
                turning = spec.dimensions[spec.coordinates.index(suffix)] == "angle"
                other.forces[name] = self.joint_force(force, turning)
            else:
                other.forces[name] = self.between(force)
        return other


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_same_mechanism_in_other_units_is_the_same_system(name):
    """Arrays and accelerations agree to rounding of the conversions, 1e-12 of the largest number of each kind."""
    units, values = SYSTEMS[name]
    for seed in range(8):
        m = linkage(seed, 7, 1, forces=True)
        rng = np.random.default_rng(seed)
        system, other = m.compile(), Written(values).mechanism(m, units).compile()
        assert system.coordinates == other.coordinates
        np.testing.assert_allclose(other.model.body, system.model.body, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(other.model.gravity, system.model.gravity, rtol=1e-14)
        state = random_state(system, rng, t=0.8)
        assert_same_motion(tree_motion(system, state), tree_motion(other, state), 1e-11)


@pytest.mark.jit_off
def test_base_motion_start_and_limits_are_converted_too():
    m = ld.Mechanism("units", units={"length": "mm", "angle": "deg"})
    body = m.add_body("b", ld.Inertia(1.0, (100, 0, 0), np.eye(3) * 1e4))
    m.add_joint("A", ld.Cylindrical(axis=(0, 0, 1)), m.ground, body, at=(0, 0, 0), limits={"angle": (-90, 45)})
    m.start = type(m.start)(q={"A.angle": 90, "A.slide": 250}, v={"A.angle": 180, "A.slide": -20})
    m.move_base(x="100*t", rz=ld.forces.Table(points=[(0, 0), (1, 90), (2, 180)]))
    system = m.compile()
    np.testing.assert_allclose(system.limits["A.angle"], (-np.pi / 2, np.pi / 4))
    assert system.start[0] == pytest.approx({"A.angle": np.pi / 2, "A.slide": 0.25})
    assert system.start[1] == pytest.approx({"A.angle": np.pi, "A.slide": -0.02})
    motion = ld.tree.body_motion(system, system.state(t=0.5))
    np.testing.assert_allclose(motion.position[0], (0.05, 0, 0), atol=1e-15)
    np.testing.assert_allclose(motion.rotation[0], turn((0, 0, 1), np.pi / 4), atol=1e-14)  # a straight table
    np.testing.assert_allclose(motion.angular_velocity[0], (0, 0, np.pi / 2), atol=1e-14)


# ------------------------------------------------------------------------------------------- root, cuts, axes


@DETERMINISTIC
@given(seeds, st.integers(2, 9), st.integers(0, 3))
def test_root_of_a_floating_tree_does_not_matter(seed, bodies, which):
    """Another root is chosen by hanging it on the ground with a free joint."""
    m = ld.library.random_mechanism(seed, bodies=bodies, loops=0, floating=True)
    rng = np.random.default_rng(seed)
    system = m.compile()
    state = random_state(system, rng)
    expected = tree_motion(system, state)
    root = sorted(m.bodies)[which % bodies]
    m.add_joint("root", ld.Free(), m.ground, root, at=rng.normal(size=3))
    other = m.compile()
    assert other.topology.inboard(root) == "root"
    same = transfer(other, expected)
    assert_same_motion(expected, tree_motion(other, same), TREE)


def closed_by(m: ld.Mechanism, cuts: list[str], cut: str) -> list[str]:
    """Joints of the tree between the two bodies of a cut joint."""
    graph = networkx.Graph()
    for name, spec in m.joints.items():
        if name not in cuts:
            graph.add_edge(spec.parent, spec.child, name=name)
    bodies = networkx.shortest_path(graph, m.joints[cut].parent, m.joints[cut].child)
    return [graph.edges[pair]["name"] for pair in pairwise(bodies)]


@DETERMINISTIC
@given(seeds, st.integers(5, 9), st.integers(1, 2), st.booleans(), st.integers(0, 5))
def test_choice_of_cuts_and_absolute_coordinates_do_not_matter(seed, bodies, loops, floating, which):
    m = linkage(seed, bodies, loops, floating=floating, forces=True)
    rng = np.random.default_rng(seed)
    system = m.compile()
    state = closed_state(system, rng, t=0.3)
    assert np.abs(ld.terms(system, state).phi).max(initial=0) < 1e-12
    expected = closed_motion(system, state)
    absolute = m.compile(cuts="all")
    assert absolute.nv == 6 * bodies
    same = transfer(absolute, expected, state.t)
    assert_same_motion(expected, closed_motion(absolute, same), CLOSED)
    # in place of a chosen cut, another joint of the loop that it closes
    cuts = list(system.topology.cuts)
    n = which % len(cuts)
    around = closed_by(m, cuts, cuts[n])
    cuts[n] = around[which % len(around)]
    other = m.compile(cuts=cuts)
    assert set(other.topology.cuts) == set(cuts)
    same = transfer(other, expected, state.t)
    assert_same_motion(expected, closed_motion(other, same), CLOSED)


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "andrews", "rssr", "stewart_3rrs", "ladder", "tower"])
def test_every_choice_of_one_cut_gives_the_same_motion_of_library_mechanisms(name):
    """Also where rows are redundant: four-bar and ladder."""
    m = ld.library.ALL[name]()
    system = m.compile()
    rng = np.random.default_rng(1)
    state = closed_state(system, rng, spread=0.05)
    expected = closed_motion(system, state)
    cuts = list(system.topology.cuts)
    for cut in cuts:
        for joint in closed_by(m, cuts, cut):
            other = m.compile(cuts=[joint if c == cut else c for c in cuts])
            assert_same_motion(expected, closed_motion(other, transfer(other, expected)), 1e-8)


@DETERMINISTIC
@given(seeds, st.integers(5, 8), st.integers(0, 1))
def test_turning_the_whole_mechanism_turns_its_motion(seed, bodies, loops):
    m = linkage(seed, bodies, loops, forces=True)
    rng = np.random.default_rng(seed)
    Q = random_rotation(rng)
    system, other = m.compile(), ld.library.turned(m, Q).compile()
    # a load on x, y or z of a translational joint, whose axes are the world's, would not be turned
    loaded = {f.joint.partition(".")[0] for f in m.forces.values() if hasattr(f, "joint")}
    assume(not any(m.joints[name].type == "translational" for name in loaded))
    state = closed_state(system, rng, t=0.3)
    expected = closed_motion(system, state)
    turned = ld.tree.Motion(
        expected.bodies,
        expected.position @ Q.T,
        np.array([R if k == 0 else Q @ R for k, R in enumerate(expected.rotation)]),
        *(getattr(expected, f) @ Q.T for f in ("velocity", "angular_velocity", "acceleration", "angular_acceleration")),
    )
    same = transfer(other, turned, state.t)
    assert_same_motion(turned, closed_motion(other, same), CLOSED)


# ------------------------------------------------------------------------------------------------ work arrays


def filled(system: ld.System, state: ld.State, number: float, a: np.ndarray | None = None):
    work = np.full_like(system.work(), number)
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:], w.tau[:] = state.t, state.q, state.v, 0.25
    if a is not None:
        w.a[:] = a
    return work, w


@pytest.mark.jit_off
@DETERMINISTIC
@given(seeds, st.integers(5, 9), st.integers(0, 2), st.booleans())
def test_kernels_do_not_depend_on_what_was_in_the_work_array(seed, bodies, loops, floating):
    m = linkage(seed, bodies, loops, floating=floating, forces=True)
    m.move_base(x="0.1*sin(t)", rz="0.2*t**2")
    system = m.compile()
    rng = np.random.default_rng(seed)
    state, a = random_state(system, rng, t=0.3), rng.normal(size=system.nv)
    nv, nc = system.nv, system.nc
    results = []
    for number in (0.0, np.nan, 1e200):
        arrays = system.ints, system.floats
        work, w = filled(system, state, number)
        assert aba.aba(*arrays, work) == FINE
        found = [w.a.copy()]
        work, w = filled(system, state, number, a)
        rnea.rnea(*arrays, work)
        # poses and velocities stand together, and so do accelerations
        found.append(np.hstack([w.body[:, rec.R : rec.V + 3], w.body[:, rec.AW : rec.AV + 3]]))
        work, w = filled(system, state, number)
        J, rate = np.full((nc, nv), number), np.full(nc, number)
        kinematics.place(*arrays, work, False)
        jacobian.constraint_terms(*arrays, work, J, rate)
        found += [J, rate, w.phi.copy(), w.gamma.copy(), w.rows.copy()]
        work, w = filled(system, state, number)
        B = np.full((6, nv), number)
        jacobian.body_jacobian(*arrays, work, system.n_bases, B)
        found.append(B)
        results.append(found)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert np.isfinite(one).all()
            np.testing.assert_array_equal(one, two)


@pytest.mark.jit_off
def test_kernels_do_not_write_to_the_frozen_arrays_nor_to_the_state():
    m = linkage(3, 7, 2, forces=True)
    system = m.compile()
    assert not system.ints.flags.writeable
    assert not system.floats.flags.writeable
    state = random_state(system, np.random.default_rng(0))
    before = state.q.copy(), state.v.copy()
    ld.terms(system, state)
    ld.tree.open_tree_forward_dynamics(system, state)
    ld.tree.energy(system, state)
    assert np.array_equal(state.q, before[0])
    assert np.array_equal(state.v, before[1])


@pytest.mark.jit_off
@pytest.mark.parametrize("kind", REVERSIBLE)
def test_coordinates_of_each_joint_type_read_back_from_the_other_side(kind):
    """The map used for reversed joints here is right: placing and inverting agree."""
    rng = np.random.default_rng(7)
    spec = random_joint(kind, rng)
    q = random_coordinates(kind, rng)
    v = rng.normal(size=len(spec.speeds))
    back, _ = reversed_coordinates(spec, q, v)
    p, R = placement(spec, q)
    spec2 = reversed_joint(spec)
    p2, R2 = placement(spec2, back)
    np.testing.assert_allclose(R2, R.T, atol=1e-14)
    np.testing.assert_allclose(p2, -R.T @ p, atol=1e-14)
