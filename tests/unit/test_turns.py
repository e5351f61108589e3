"""Full turns of joint angles that something reads: which joint is cut must not change them."""

from itertools import permutations

import numpy as np
import pytest
from scipy.integrate import simpson

import loopdyn as ld
from loopdyn.run.locking import coordinate

PIN = ld.Revolute(axis=(0, 0, 1))


def four_bar(names="ABCD", friction=(), coupler=None, at_b=PIN, at_c=PIN):
    """A crank (A, B), a coupler (B, C) and a rocker (C, D), by names in this order; the crank turns fully."""
    a, b, c, d = names
    m = ld.Mechanism("bar")
    m.add_body("crank", ld.Inertia.rod(0.5, (0, 0, 0), (0.3, 0, 0)))
    m.add_body("coupler", coupler or ld.Inertia.rod(1.0, (0.3, 0, 0), (0.8, 0.6, 0)))
    m.add_body("rocker", ld.Inertia.rod(0.7, (1, 0, 0), (0.8, 0.6, 0)))
    m.add_joint(a, PIN, m.ground, "crank", at=(0, 0, 0))
    m.add_joint(d, PIN, m.ground, "rocker", at=(1, 0, 0))
    m.add_joint(b, at_b, "crank", "coupler", at=(0.3, 0, 0))
    m.add_joint(c, at_c, "coupler", "rocker", at=(0.8, 0.6, 0))
    for joint in friction:
        m.add_force(None, ld.forces.JointFriction(joint=joint, viscous=1e-3))
    return m


READERS = {
    "spring": lambda m, joint: m.add_force(None, ld.forces.JointSpring(joint=joint, stiffness=0.2)),
    "motor": lambda m, joint: m.add_motor("motor", joint, torque="-0.05*position"),
    "driver": lambda m, joint: m.add_driver("servo", joint, "-15*t"),
    "relation": lambda m, joint: m.add_constraint(
        "r", ld.constraints.Relation(formula="x - 15*t", coordinates={"x": joint})
    ),
    "coupler": lambda m, joint: m.add_constraint("k", ld.constraints.Coupler(terms={joint: 1.0})),
}


@pytest.mark.jit_off
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("names", ["ABCD", "DCBA", "AYXD", "XYAB"])
def test_a_joint_whose_angle_is_read_is_not_cut(reader, names):
    for joint in names:
        m = four_bar(names, friction=names)
        READERS[reader](m, joint)
        assert m.compile().topology.cuts != (joint,)


@pytest.mark.jit_off
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_joint_of_a_loop_that_nothing_reads_is_the_cut_one(count):
    for read in permutations("ABCD", count):
        m = four_bar(friction="ABCD")
        for joint in read:
            m.add_force(None, ld.forces.JointSpring(joint=joint, stiffness=0.2))
        assert set(m.compile().topology.cuts).isdisjoint(read)


@pytest.mark.jit_off
def test_speeds_alone_do_not_choose_the_cut():
    plain = four_bar(friction="BC").compile().topology.cuts
    m = four_bar(friction="BC")
    m.add_motor("motor", "C", torque="1 - 0.1*speed")
    m.add_force(None, ld.forces.JointSpring(joint="C", damping=0.1))
    assert m.compile().topology.cuts == plain


@pytest.mark.jit_off
@pytest.mark.parametrize(("limits", "cut"), [((-1.0, 7.0), "B"), ((-1.0, 1.0), "C")])
def test_limits_are_read_if_they_are_more_than_half_a_turn_away(limits, cut):
    m = four_bar()
    m.joints["C"] = m.joints["C"].model_copy(update={"limits": limits})
    assert m.compile().topology.cuts == (cut,)


@pytest.mark.jit_off
def test_exchanges_leave_no_massless_body_at_the_end_of_a_branch():
    # a coupler without inertia cannot hang on B or C alone, so a pin on the ground is cut, though read
    m = four_bar(coupler=ld.Inertia.massless())
    for joint in "AD":
        m.add_force(None, ld.forces.JointSpring(joint=joint, stiffness=0.2))
    assert m.compile().topology.cuts[0] in "AD"


# ---------------------------------------------------------- a loop of parallel axes: turns follow from the tree

L1, L2, L3 = 0.3, np.hypot(0.5, 0.6), np.hypot(0.2, 0.6)


def coupler_angle(a):
    """Direction of the coupler of the four-bar for a crank angle, by two circles; it swings and never turns fully."""
    bx, by = L1 * np.cos(a), L1 * np.sin(a)
    dx, dy = 1.0 - bx, -by
    d = np.hypot(dx, dy)
    x = (L2**2 - L3**2 + d * d) / (2 * d)
    y = np.sqrt(L2**2 - x * x)
    return np.arctan2(x * dy + y * dx, x * dx - y * dy)


def pin_angle(a):
    """Angle of the crank pin B, full turns included: of the coupler against the crank, zero at the drawing."""
    return coupler_angle(a) - coupler_angle(0.0) - a


CUTS = pytest.mark.parametrize("cut", "ABCD")


def crank_angle(run):
    """Angle of the crank at all outputs, full turns included, from the poses of the body."""
    R = run.body("crank")["rotation"].values
    return np.unwrap(np.arctan2(R[:, 1, 0], R[:, 0, 0]))


def crank_speeds(run):
    """Speed of the crank at all outputs."""
    row = run.system.bodies.index("crank")
    states = [ld.State(*x) for x in zip(run.path.t, run.path.q, run.path.v, strict=True)]
    return [ld.tree.body_motion(run.system, s).angular_velocity[row, 2] for s in states]


def crank_speed(a, start, stiffness):
    """Speed of the crank at an angle by the balance of energy: no gravity, a spring on B, `start` at the drawing."""

    def inertia(a, h=1e-4):  # reduced to the crank; differences of fourth order, error 1e-12
        def places(a):
            b = coupler_angle(a)
            B = L1 * np.array([np.cos(a), np.sin(a)])
            C = B + L2 * np.array([np.cos(b), np.sin(b)])
            return np.array([*(B + C) / 2, b, np.arctan2(C[1], C[0] - 1.0)])

        x, y, b, r = (8 * (places(a + h) - places(a - h)) - (places(a + 2 * h) - places(a - 2 * h))) / (12 * h)
        return 0.5 * L1**2 / 3 + x * x + y * y + L2**2 / 12 * b * b + 0.7 * L3**2 / 3 * r * r

    return np.sqrt((inertia(0.0) * start**2 - stiffness * pin_angle(a) ** 2) / inertia(a))


def check_wound_spring(cut, law, formulation, end, rtol, error):
    m = four_bar()
    if law == "spring":
        m.add_force(None, ld.forces.JointSpring(joint="B", stiffness=0.05))
    else:
        m.add_motor("motor", "B", torque="-0.05*position")
    system = m.compile(cuts=[cut])
    start = ld.assemble(system, v={"A": 25.0})
    times = np.linspace(0, end, 11)
    run = ld.simulate(system, start, (0, end), t_eval=times, rtol=rtol, formulation=formulation, progress=False)
    assert run.status == "finished"
    a = crank_angle(run)
    assert pin_angle(a[-1]) < -1.3 * np.pi
    assert crank_speeds(run) == pytest.approx(
        [crank_speed(x, 25.0, 0.05) for x in a], rel=1e-5
    )  # rtol 1e-8 over some hundred steps


@CUTS
@pytest.mark.parametrize("law", ["spring", "motor"])
def test_a_wound_spring_takes_its_energy_from_the_crank(cut, law):
    check_wound_spring(cut, law, "graph", 0.5, 1e-8, 1e-5)  # some hundred steps


def test_angles_of_cut_cylindrical_and_universal_joints_count_turns():
    screwless, cross = ld.Cylindrical(axis=(0, 0, 1)), ld.Universal(axis1=(0, 0, 1), axis2=(-0.6, 0.5, 0))
    for label, at_b, at_c in (("B.angle", screwless, PIN), ("B.1", cross, ld.Spherical())):
        # on a ball alone, a rod needs inertia about its line: 1 mm of radius changes speeds by 3e-6
        rod = ld.Inertia.rod(1.0, (0.3, 0, 0), (0.8, 0.6, 0), radius=1e-3)
        m = four_bar(at_b=at_b, at_c=at_c, coupler=rod)
        m.add_force(None, ld.forces.JointSpring(joint=label, stiffness=0.05))
        system = m.compile(cuts=["B"])
        assert system.counted == (() if label == "B.angle" else ("B.1",))
        start = ld.assemble(system, v={"A": 25.0})
        run = ld.simulate(system, start, (0, 0.5), t_eval=np.linspace(0, 0.5, 11), progress=False)
        assert run.status == "finished"
        # rtol 1e-8 over some hundred steps
        expected = [crank_speed(x, 25.0, 0.05) for x in crank_angle(run)]
        assert crank_speeds(run) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("formulation", ["relative", "absolute", "partition", "closure", "rcr", "momentum", "oracle"])
def test_formulations_read_the_turns_of_a_cut_joint(formulation):
    # some ten steps; read within a turn the spring would change the speed by two percent
    check_wound_spring("B", "spring", formulation, 0.2, 1e-6, 1e-4)


@CUTS
def test_the_four_bar_of_an_independent_equation(cut):
    # friction on all pins: a one-coordinate equation by hand (closed-form geometry, counted pin angle, DOP853 at 1e-10)
    # has the crank point to this after 1.5 s
    m = four_bar(friction="ABCD")
    m.add_force(None, ld.forces.JointSpring(joint="B", stiffness=0.2))
    system = m.compile(cuts=[cut])
    start = ld.assemble(system, v={"A": 25.0})
    run = ld.simulate(system, start, (0, 1.5), t_eval=[0, 1.5], rtol=1e-10, progress=False)
    R = run.body("crank")["rotation"].values[-1]
    assert R[:2, 0] == pytest.approx([0.22790, 0.97369], abs=1e-5)  # digits given


@CUTS
def test_a_driver_of_a_cut_joint_leads_it_through_several_turns(cut):
    m = four_bar()
    m.add_driver("servo", "B", "-15*t")
    system = m.compile(cuts=[cut])
    run = ld.simulate(system, ld.assemble(system), (0, 1), t_eval=np.linspace(0, 1, 21), rtol=1e-6, progress=False)
    assert run.status == "finished"
    # to the tolerance of closing: projection holds the driver's row, to second order in 1e-6
    np.testing.assert_allclose(pin_angle(crank_angle(run)), -15 * run.path.t, atol=1e-9)


@CUTS
def test_a_gear_on_a_cut_joint_turns_with_it(cut):
    m = four_bar()
    m.add_body("wheel", ld.Inertia.cylinder(1.0, 0.2, 0.05, axis=(0, 0, 1), at=(-0.5, 0, 0)))
    m.add_joint("G", PIN, m.ground, "wheel", at=(-0.5, 0, 0))
    m.add_constraint("mesh", ld.constraints.Coupler(terms={"B": 1.0, "G": 0.5}))
    system = m.compile(cuts=[cut])
    start = ld.assemble(system, v={"A": 25.0})
    run = ld.simulate(system, start, (0, 0.5), t_eval=np.linspace(0, 0.5, 21), rtol=1e-6, progress=False)
    assert run.status == "finished"
    wheel = run.path.q[:, system.coordinates.index("G")]
    assert wheel[-1] > 6 * np.pi
    np.testing.assert_allclose(wheel, -2.0 * pin_angle(crank_angle(run)), atol=1e-8)  # loops close to 1e-9 of a turn


@CUTS
def test_the_load_of_a_torsion_spring_on_a_cut_joint_knows_its_turns(cut):
    m = four_bar()
    m.add_force(None, ld.forces.JointSpring(joint="B", stiffness=0.2, name="coil"))
    system = m.compile(cuts=[cut])
    for a in (0.4, 0.4 + 4 * np.pi, -0.3 - 6 * np.pi):
        state = ld.assemble(system, q={"A": a})
        h = 1e-5  # of the difference quotient: truncation 1e-10, rounding 1e-11
        rate = (pin_angle(a + h) - pin_angle(a - h)) / (2 * h)
        # virtual work: at rest, accelerations times the reduced inertia are the load of the spring on the crank
        found = ld.inverse_dynamics(system, [state], accelerations=np.zeros((1, system.nv)), motors=["A"])
        assert found.load[0, 0] == pytest.approx(0.2 * pin_angle(a) * rate, rel=1e-8)


@CUTS
def test_equilibria_do_not_depend_on_the_cut(cut):
    m = four_bar()
    m.gravity = (0, -9.81, 0)
    m.add_force(None, ld.forces.JointSpring(joint="B", stiffness=0.2))
    system = m.compile(cuts=[cut])

    def energy(a):
        b = coupler_angle(a)
        B = L1 * np.array([np.cos(a), np.sin(a)])
        C = B + L2 * np.array([np.cos(b), np.sin(b)])
        return 9.81 * (0.5 * B[1] / 2 + 1.0 * (B[1] + C[1]) / 2 + 0.7 * C[1] / 2) + 0.1 * pin_angle(a) ** 2

    a = np.linspace(0, 4 * np.pi, 4001)
    push = np.gradient([energy(x) for x in a], a)
    expected = [x for x, p, q in zip(a, push, push[1:], strict=False) if p * q < 0]
    found = sorted(e["A"] for e in ld.equilibrium(system, search={"A": (0, 4 * np.pi)}))
    np.testing.assert_allclose(found, expected, atol=2 * (a[1] - a[0]))  # the mesh of the scan


@CUTS
def test_drive_and_inverse_dynamics_of_a_cut_joint_take_it_through_several_turns(cut):
    system = four_bar().compile(cuts=[cut])
    driven = ld.drive(system, "B", (0, -20, 41))
    assert driven.status == "complete"
    a = np.unwrap(driven.data["q"].sel(coordinate="A").values)
    np.testing.assert_allclose(pin_angle(a), driven.data["q"].sel(coordinate="B").values, atol=1e-9)
    times = np.linspace(0, 1, 41)
    moved = ld.inverse_dynamics(system, {"B": "-15*t"}, times, motors=["A"])
    found = [coordinate(system, moved.state(k), "A") for k in range(len(times))]
    np.testing.assert_allclose(pin_angle(np.array(found)), -15 * times, atol=1e-9)


@CUTS
def test_assemble_takes_an_angle_of_a_cut_joint_with_its_turns(cut):
    system = four_bar().compile(cuts=[cut])
    state = ld.assemble(system, q={"B": -7.0})
    R = ld.tree.body_motion(system, state).rotation[system.bodies.index("crank")]
    a = np.arctan2(R[1, 0], R[0, 0])
    assert pin_angle(a) % (2 * np.pi) == pytest.approx(-7.0 % (2 * np.pi), abs=1e-9)
    assert coordinate(system, state, "B") == pytest.approx(-7.0, abs=1e-12)


# ---------------------------------------------------------------- skew axes: turns are counted along the motion


def bennett(read="1234", stiffness=0.05):
    """Bennett's linkage with torsion springs, so that one that is read must be cut, and no gravity."""
    m = ld.library.bennett()
    m.gravity, m.start = (0, 0, 0), type(m.start)()
    for k in read:
        m.add_force(None, ld.forces.JointSpring(joint=f"P{k}", stiffness=stiffness))
    return m


def second_angle(p1):
    """P2 of the library's Bennett linkage for P1, turns included: tan(a/2) tan(b/2) is constant for the angles a, b
    between neighbouring links (Bennett 1903), which are read off its corners."""
    c, s = np.cos(1.1), np.sin(1.1)
    P = np.array([(0.5, 0, 0.2), (0.8 * c, 0.8 * s, -0.2), (-0.5, 0, 0.2), (-0.8 * c, -0.8 * s, -0.2)])
    axes = [(-0.4 * s, 0.4 * c, 0.5 * s), (0, 0.4, 0.8 * s)]
    angle = []
    for k in (0, 1):
        z = np.array(axes[k]) / np.linalg.norm(axes[k])
        u, v = P[k] - P[k - 1], P[k + 1] - P[k]
        angle.append(np.arctan2(z @ np.cross(u, v), u @ v))
    K = np.tan(angle[0] / 2) * np.tan(angle[1] / 2)
    a = np.linspace(0, p1, 4000) + angle[0]
    b = np.unwrap(2 * np.arctan2(K * np.cos(a / 2), np.sin(a / 2)))
    return b[-1] - b[0]


P1, P2 = 6 * np.pi + 0.5, -19.3172240811  # the latter from the closed form above
HINGES = pytest.mark.parametrize("cut", ["P1", "P2", "P3", "P4"])


def test_the_closed_form_of_bennetts_linkage():
    assert second_angle(P1) == pytest.approx(P2, abs=1e-10)


@HINGES
@pytest.mark.parametrize("read", ["", "1234"])
def test_bennetts_linkage_is_driven_through_three_turns_whatever_is_cut(cut, read):
    system = bennett(read).compile(cuts=[cut])
    assert system.counted == ((cut,) if read else ())
    driven = ld.drive(system, "P1", (0, P1, 61))
    last = driven.data["q"].isel(sample=-1)
    assert {n: float(last.sel(coordinate=n)) for n in ("P1", "P2", "P3", "P4")} == pytest.approx(
        {"P1": P1, "P2": P2, "P3": P1, "P4": P2}, abs=1e-9
    )


@HINGES
def test_a_run_counts_the_turns_of_a_cut_joint(cut):
    m = bennett()
    m.add_driver("servo", "P1", "4*t")
    system = m.compile(cuts=[cut])
    start = ld.assemble(system)
    end = P1 / 4
    run = ld.simulate(system, start, (0, end), t_eval=[0, 1, end], rtol=1e-8, progress=False)
    assert run.status == "finished"
    q = dict(zip(system.coordinates, run.path.q[-1], strict=True))
    assert q == pytest.approx({"P1": P1, "P2": P2, "P3": P1, "P4": P2}, abs=1e-8)
    # the works of the springs are their energies
    stored = 0.5 * 0.05 * 2 * (P1**2 + P2**2)
    assert -run.path.work[-1][:4].sum() == pytest.approx(stored, rel=1e-5)


@HINGES
def test_motor_loads_hold_springs_that_were_wound_up(cut):
    system = bennett().compile(cuts=[cut])
    state = ld.assemble(system, q={"P1": P1})
    h = 1e-5
    ratio = (second_angle(P1 + h) - second_angle(P1 - h)) / (2 * h)
    found = ld.inverse_dynamics(system, [state], accelerations=np.zeros((1, system.nv)), motors=["P1"])
    assert found.load[0, 0] == pytest.approx(0.05 * 2 * (P1 + P2 * ratio), rel=1e-7)  # virtual work; rounding / h


def test_a_step_that_is_too_long_to_count_turns_is_refused():
    m = bennett()
    m.add_driver("servo", "P1", "4*t")
    system = m.compile(cuts=["P2"])
    steps = ld.integrators.RK4(step=0.6)  # 2.4 rad of P1
    run = ld.simulate(system, ld.assemble(system), (0, 4), t_eval=[0, 4], integrator=steps, progress=False)
    assert run.status == "failed"
    assert "P2" in run.message
    assert "shorter steps" in run.message


def test_a_crossing_of_a_counted_angle_is_found_behind_several_turns():
    m = bennett()
    m.add_driver("servo", "P1", "4*t")
    system = m.compile(cuts=["P2"])
    watched = ld.events.Crossing("x + 10", coordinates={"x": "P2"})
    run = ld.simulate(system, ld.assemble(system), (0, 4), t_eval=[0, 4], events=[watched], progress=False)
    found = [e.t for e in run.events]
    assert len(found) == 1
    assert second_angle(4 * found[0]) == pytest.approx(-10.0, abs=1e-6)


def test_a_run_goes_on_from_a_saved_one_with_its_turns(tmp_path):
    m = bennett()
    m.add_driver("servo", "P1", "4*t")
    system = m.compile(cuts=["P2"])
    run = ld.simulate(system, ld.assemble(system), (0, 4), t_eval=[0, 4], progress=False)
    run.save(tmp_path / "run.nc")
    again = ld.load_run(tmp_path / "run.nc")
    end = again.path[-1:]
    state = ld.State(float(end.t[0]), end.q[0], end.v[0])
    on = ld.simulate(again.system, state, (4, P1 / 4), t_eval=[P1 / 4], progress=False)
    assert on.path.q[-1][system.coordinates.index("P2")] == pytest.approx(P2, abs=1e-8)


def test_a_motion_of_a_cut_joint_beyond_half_a_turn_on_a_turning_base_is_refused_in_words():
    m = bennett(read="")
    m.move_base(rz="0.1*t")
    system = m.compile(cuts=["P2"])
    with pytest.raises(ld.LoopdynError, match=r"'P2' belongs to a cut joint in a loop .* on a rotating base"):
        ld.inverse_dynamics(system, {"P2": "-4*t"}, np.linspace(0, 1, 11))
    moved = ld.inverse_dynamics(system, {"P2": "-2*t"}, np.linspace(0, 1, 11))  # less than half a turn
    assert second_angle(moved.q[-1, system.coordinates.index("P1")]) == pytest.approx(-2.0, abs=1e-9)


@HINGES
@pytest.mark.parametrize("start", [0.0, -2 * np.pi])
def test_inverse_dynamics_counts_turns_of_a_cut_joint_that_nothing_else_reads(cut, start):
    """P2 is driven to where P1 is at 6 pi + 0.5, from zero or from a turn on, whichever joint is cut."""
    system, times = bennett(read="").compile(cuts=[cut]), np.linspace(0.0, 1.0, 241)
    moved = ld.inverse_dynamics(system, {"P2": f"{start} + ({P2 - start})*t"}, times, motors=["P2"])
    end = ld.tree.body_motion(system, moved.state(-1))
    for joint, expected in (("P1", P1), ("P2", P2)):  # measured within half a turn
        found = float(ld.tree.joint_coordinates(system.joints[joint], end)[0])
        assert np.sin(0.5 * (found - expected)) == pytest.approx(0.0, abs=1e-9)
    if cut != "P1":  # then it is a coordinate; both hinges make their full turns together
        at = system.coordinates.index("P1")
        assert moved.q[-1, at] - moved.q[0, at] == pytest.approx(P1 + start, abs=1e-9)
    # work of the motor, by Simpson's rule on smooth steps of 0.08 rad: what kinetic energy, the only one, grows by
    before, after = (ld.tree.energy(system, moved.state(k)).kinetic for k in (0, -1))
    work = simpson(moved.power[:, 0], x=times)
    assert work == pytest.approx(after - before, abs=1e-4 * np.abs(moved.power).max())
