"""`ld.linearize` beside closed forms, independent equations and the literature."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.linear_models import G, bicycle, disc, governor, parallelogram

import loopdyn as ld
from loopdyn.errors import LoopdynError, SingularityError

# Derivatives are exact: what is left is rounding through the solution of the constrained equations.
EXACT = 1e-11


def positive(poles):
    """Poles with a positive imaginary part, by size."""
    return sorted((p for p in poles if p.imag > 0), key=abs)


# ------------------------------------------------------------------------------------------------ equilibria


def test_a_hanging_parallelogram_swings_as_by_hand():
    """Both cranks and the coupler fall as the crank turns: (m l + M l) g = 3 g; inertia 2 m l^2/3 + M l^2 = 8/3."""
    found = ld.linearize(parallelogram().compile())
    np.testing.assert_allclose(found.poles(), [-1j * np.sqrt(11.03625), 1j * np.sqrt(11.03625)], rtol=EXACT, atol=EXACT)
    assert [s.name for s in found.states] == ["A", "A.speed"]
    assert pytest.approx(11.03625, rel=1e-15) == 3 * G / (8 / 3)


def test_a_parallelogram_of_equal_rods_and_with_torsion_springs():
    """Equal rods: 2 g/(5/3) = 1.2 g. Springs at all four pins: each turns by the crank's angle."""
    m = parallelogram(coupler=1.0, width=1.0)
    assert np.abs(ld.linearize(m.compile()).poles()) ** 2 == pytest.approx(1.2 * G, rel=EXACT)
    for joint, k in zip("ABCD", (1.0, 2.0, 3.0, 4.0), strict=True):
        m.add_force(f"spring{joint}", ld.forces.JointSpring(joint=joint, stiffness=k, damping=0.1 * k))
    poles = ld.linearize(m.compile()).poles()
    J, c, k = 5 / 3, 1.0, 2 * G + 10.0
    expected = np.roots([J, c, k])
    np.testing.assert_allclose(sorted(poles, key=np.imag), sorted(expected, key=np.imag), rtol=EXACT)


def test_a_double_pendulum_of_equal_points():
    """Unit masses on arms of length one: omega^2 = g (2 -+ sqrt 2)."""
    m = ld.Mechanism("double", gravity=(0, -G, 0))
    m.add_body("one", ld.Inertia.point(1.0, at=(0, -1, 0)))
    m.add_body("two", ld.Inertia.point(1.0, at=(0, -2, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "one", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=(0, 0, 1)), "one", "two", at=(0, -1, 0))
    found = ld.linearize(m.compile())
    omega = np.sqrt(G * (2.0 + np.array([-np.sqrt(2.0), np.sqrt(2.0)])))
    np.testing.assert_allclose(found.modes().omega, omega, rtol=EXACT)
    np.testing.assert_allclose(found.modes().frequency, omega / (2 * np.pi), rtol=EXACT)
    # slow: both to one side, the absolute angles as 1 to sqrt 2, so B = (sqrt 2 - 1) A
    assert found.modes().moving(0)["B"] == pytest.approx(np.sqrt(2.0) - 1.0, rel=1e-9)


def test_a_compound_pendulum_with_a_coupler_to_a_slide():
    """Rod m, L hangs; coupler M, c leads level from its end to a slider S: the coupler's centre rises half as much."""
    m_, L, M, c, S = 1.3, 0.7, 0.8, 1.1, 0.5
    m = ld.Mechanism("trolley", gravity=(0, -G, 0))
    m.add_body("rod", ld.Inertia.rod(mass=m_, start=(0, 0, 0), end=(0, -L, 0)))
    m.add_body("coupler", ld.Inertia.rod(mass=M, start=(0, -L, 0), end=(c, -L, 0)))
    m.add_body("slider", ld.Inertia.point(S, at=(c, -L, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=(0, 0, 1)), "rod", "coupler", at=(0, -L, 0))
    m.add_joint("C", ld.Revolute(axis=(0, 0, 1)), "coupler", "slider", at=(c, -L, 0))
    m.add_joint("D", ld.Prismatic(axis=(1, 0, 0)), m.ground, "slider", at=(c, -L, 0))
    expected = (m_ * G * L / 2 + M * G * L / 2) / (m_ * L**2 / 3 + (M + S) * L**2)
    assert np.abs(ld.linearize(m.compile()).poles()) ** 2 == pytest.approx(expected, rel=EXACT)


def bennett():
    """Bennett's linkage of the library with rods without thickness."""
    m = ld.library.bennett()
    m.bodies.clear()
    for k in range(3):
        m.add_body(f"link{k + 1}", ld.Inertia.rod(mass=1.0, start=BENNETT[k], end=BENNETT[k + 1]))
    return m


BENNETT = [(0.5, 0, 0.2), (0.8 * np.cos(1.1), 0.8 * np.sin(1.1), -0.2)]
BENNETT += [(-x, -y, z) for x, y, z in BENNETT]


def bennett_corners(x):
    """Ends of the rods for P1 = x: tan(a/2) tan(b/2) is constant for the angles at neighbouring hinges (Bennett 1903).

    The hinge at P4 opens as that at P2 does.
    """
    P = np.array(BENNETT)

    def axis(k):
        z = np.cross(P[k] - P[k - 1], P[(k + 1) % 4] - P[k])
        return z / np.linalg.norm(z) * (1 if z[2] > 0 else -1)  # those of the library point upward

    def angle(k):
        u, v = P[k] - P[k - 1], P[(k + 1) % 4] - P[k]
        return np.arctan2(axis(k) @ np.cross(u, v), u @ v)

    a, b = angle(0), angle(1)
    turned = 2 * np.arctan2(np.tan(a / 2) * np.tan(b / 2) * np.cos((a + x) / 2), np.sin((a + x) / 2)) - b
    second = P[0] + Rotation.from_rotvec(x * axis(0)).apply(P[1] - P[0])
    third = P[3] + Rotation.from_rotvec(-turned * axis(3)).apply(P[2] - P[3])
    assert np.linalg.norm(third - second) == pytest.approx(np.linalg.norm(P[2] - P[1]), rel=1e-12)
    return np.array([P[0], second, third, P[3]])


def bricard_corners(x):
    """Ends of the rods of length one for P1 = x, by the closed form of this linkage."""
    s, c = np.cos(x), np.sin(x)
    k = 1 / (1 + c) - 1
    r = np.sqrt(1 - k * k)
    return np.array(
        [(0, 0, 0), (s, 0, -c), ((1 + k) * s, -r, -(1 + k) * c), (s, -r * (1 + c), 1 - c), (0, -r, 1 + k), (0, 0, 1)]
    )


@pytest.mark.parametrize(
    ("make", "corners", "up"),
    [(bennett, bennett_corners, 2), (lambda: ld.library.bricard(slender=True), bricard_corners, 1)],
    ids=["bennett", "bricard"],
)
def test_overconstrained_linkages_swing_about_an_equilibrium(make, corners, up):
    """V'' over the inertia along the only motion, of thin rods of 1 kg between corners known in closed form."""
    system = make().compile()
    there = ld.equilibrium(system)
    found = ld.linearize(system, there, independent=["P1"])
    h = 5e-3
    P = [corners(there["P1"] + k * h) for k in (-3, -2, -1, 0, 1, 2, 3)]
    V = np.array([G * (p[:-1, up] + p[1:, up]).sum() / 2 for p in P])
    slope, curvature = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60, np.array([2, -27, 270, -490, 270, -27, 2]) / 180
    assert abs(slope @ V) / h < 1e-8  # an equilibrium
    v = np.tensordot(slope, P, 1) / h
    inertia = (v[:-1] ** 2 + v[:-1] * v[1:] + v[1:] ** 2).sum() / 3
    # differences of sixth order: h^6, and rounding 1e-15 of some 10 J over h^2
    assert found.A.values[1, 0] == pytest.approx(-(curvature @ V) / h**2 / inertia, rel=1e-8)


# -------------------------------------------------------------------------------------------------- at speed


@pytest.mark.parametrize(("inertia", "expected"), [(None, 3.8360135558), (0.5, 5.1465522440), (1e-9, 5.8596074954)])
def test_a_governor_at_speed(inertia, expected):
    """Both arms together: W^2 (s^2 + 4 s^2 c^2 m L^2/(I + m L^2 s^2)), m both masses; driven: I without bound.

    Opposite to each other the masses leave the speed of the shaft as it is: the driven value.
    """
    speed = 4.4294469181
    system = governor(inertia, speed).compile()
    state = ld.assemble(system, v={"shaft": speed})
    found = ld.linearize(system, state)
    assert np.abs(found.residual.values[-2:]).max() < 1e-8  # the speed has eleven digits
    omega = found.modes().omega
    s, c, J = np.sin(np.pi / 3), np.cos(np.pi / 3), inertia
    together = speed * np.sqrt(s**2 + (4 * s**2 * c**2 / (J + s**2) if J else 0.0))
    np.testing.assert_allclose(omega, sorted([speed * s, together]), rtol=1e-9)
    # ten digits are given; a shaft of 1e-9 kg m^2 stands for none
    np.testing.assert_allclose(sorted(omega)[-1], expected, rtol=3e-9)
    assert found.zero_chains == (() if inertia is None else (2,))


@pytest.mark.parametrize("chain", [False, True])
def test_a_rolling_disc(chain):
    """Upright at W = 10 rad/s: omega^2 = (12 W^2 - 4 g/r)/5; eight states, six zero poles."""
    system = disc(chain=chain).compile()
    given = {"spin": 10.0} if chain else {"F.wy": 10.0}
    state = ld.assemble(system, v=given)
    found = ld.linearize(system, state)
    assert len(found.states) == 8
    np.testing.assert_allclose(found.modes().omega, [14.6232691283], rtol=1e-10)
    assert found.modes().omega[0] == pytest.approx(np.sqrt((12 * 100 - 4 * G / 0.3) / 5), rel=EXACT)
    assert sum(found.zero_chains) == 6


def test_the_whipple_bicycle_at_5_metres_per_second():
    """Eigenvalues of the benchmark: capsize, castering and weave; 7 positions and 3 speeds.

    They are those of its published equations in lean and steer, M q'' + v C1 q' + (g K0 + v^2 K2) q = 0, with the
    matrices that Meijaard, Papadopoulos, Ruina and Schwab (2007) give to 14 digits for the same parameters.
    """
    system = bicycle().compile()
    v = 5.0
    state = ld.assemble(system, v={"rear": -v / 0.3, "frame.vx": v, "steer": 0.0})
    found = ld.linearize(system, state)
    assert np.abs(found.residual.values[7:]).max() < 1e-9
    assert (len(found.states), sum(s.name.endswith(".speed") for s in found.states)) == (10, 3)
    poles = found.poles()
    assert sum(found.zero_chains) == 6
    M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
    C1 = np.array([[0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
    K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
    K2 = np.array([[0, 76.59734589573222], [0, 2.65431523794604]])
    A = np.block(
        [[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, G * K0 + v**2 * K2), -np.linalg.solve(M, v * C1)]]
    )
    expected = sorted(np.linalg.eigvals(A), key=lambda p: (round(abs(p), 6), p.imag))
    # ten digits of the same, as they are quoted
    quoted = [-0.3228664290, -0.7753418822 - 4.4648677138j, -0.7753418822 + 4.4648677138j, -14.0783896928]
    np.testing.assert_allclose(expected, quoted, rtol=1e-9)
    np.testing.assert_allclose(poles[6:], expected, rtol=EXACT)


# ------------------------------------------------------------------------------------------------- invariance


VARIANTS = {
    "plain": {}, "body order": {"order": "kdc"}, "joints reversed": {"reverse": True}, "units": {"units": "mm"},
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("cut", ["A", "B", "D"])
def test_poles_do_not_depend_on_cuts_order_direction_and_units(name, cut):
    m = parallelogram(**VARIANTS[name])
    mm = VARIANTS[name].get("units")
    damping = 0.3 if mm is None else 0.3 * np.pi / 180  # N m s/rad, N m s/deg
    m.add_force("spring", ld.forces.JointSpring(joint="B", stiffness=0.0, damping=damping))
    system = m.compile(cuts=[cut])
    state = ld.assemble(
        system, {"A": (0.4 if mm is None else np.degrees(0.4)) * (-1 if "reverse" in VARIANTS[name] else 1)}
    )
    poles = ld.linearize(system, state).poles()
    expected = np.roots([8 / 3, 0.3, 3 * G * np.cos(0.4)])  # (8/3) x'' + c x' + 3 g sin x = 0
    np.testing.assert_allclose(sorted(poles, key=np.imag), sorted(expected, key=np.imag), rtol=1e-9)


def test_poles_of_a_moving_five_bar_do_not_depend_on_independent_coordinates():
    """At an equilibrium of springs: two modes, by every regular choice of coordinates and every cut."""
    m = ld.library.five_bar()
    for joint in "AE":
        m.add_force(f"spring{joint}", ld.forces.JointSpring(joint=joint, stiffness=30.0, damping=0.2))
    reference = None
    for cut in "ABCDE":
        system = m.compile(cuts=[cut])
        there = ld.equilibrium(system)
        names = system.speeds
        for k, one in enumerate(names):
            for other in names[k + 1 :]:
                poles = ld.linearize(system, there, independent=[one, other]).poles()
                reference = poles if reference is None else reference
                np.testing.assert_allclose(poles, reference, rtol=1e-9)
    assert len(reference) == 4


# ------------------------------------------------------------------------------------------ inputs and outputs


def pendulum(k=1.0, **options):
    """Point of 1.5 kg on an arm of 0.8 m; `k`: a thousand for mm and g."""
    m = ld.Mechanism("pendulum", gravity=(0, "-g", 0), parameters={"L": 0.8 * k, "g": G}, **options)
    m.add_body("bob", ld.Inertia.point(1.5 * k, at=(0, "-L", 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "bob", at=(0, 0, 0))
    return m


def test_inputs_of_a_pendulum():
    """x'' = -(g/L) sin x - X'' cos x/L + T/(m L^2), about x = 0.5; X moves the base."""
    m = pendulum()
    m.add_motor("motor", "A", torque="-0.1*speed")
    m.add_force("push", ld.forces.AppliedForce(body="bob", at=(0, "-L", 0)))
    system = m.compile()
    names = ["motor", "push.fx", "L", "g", "ground.x", "ground.x.speed", "ground.x.acceleration"]
    found = ld.linearize(system, system.state(q={"A": 0.5}, v={"A": 0.7}), inputs=names, outputs=["A.acceleration"])
    L, mass, s, c, x1 = 0.8, 1.5, np.sin(0.5), np.cos(0.5), 0.7
    damping = -0.1 * x1
    expected = [1 / (mass * L**2), c / (mass * L), G * s / L**2 - 2 * damping / (mass * L**3), -s / L, 0.0, 0.0, -c / L]
    # parameters and bases by differences of the model's numbers: 1e-10
    np.testing.assert_allclose(found.B.values[1], expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.D.values[0], expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.B.values[0], 0.0, atol=1e-15)
    np.testing.assert_allclose(found.A.values, [[0, 1], [-G * c / L, -0.1 / (mass * L**2)]], rtol=EXACT, atol=EXACT)
    np.testing.assert_allclose(found.residual, [x1, -G * s / L + damping / (mass * L**2)], rtol=EXACT)


def test_a_driver_is_three_inputs():
    """Points on a driven arm: absolute angle p + x; (1 + cos x + ...) by hand for unit masses and lengths."""
    m = ld.Mechanism("driven", gravity=(0, -G, 0))
    m.add_body("arm", ld.Inertia.point(1.0, at=(1, 0, 0)))
    m.add_body("bob", ld.Inertia.point(1.0, at=(2, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "arm", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=(0, 0, 1)), "arm", "bob", at=(1, 0, 0))
    m.add_driver("drive", "A", "0.3 + 1.1*t + 0.2*t**2")
    system = m.compile()
    state = ld.assemble(system, {"B": -0.6}, {"B": 0.9})
    names = ["drive", "drive.speed", "drive.acceleration"]
    found = ld.linearize(system, state, inputs=names, outputs=["A", "A.speed", "A.acceleration", "B.acceleration"])
    p, w, x = 0.3, 1.1, -0.6
    # x'' = -p''(1 + cos x) - p'^2 sin x - g cos(p + x)
    expected = [G * np.sin(p + x), -2 * w * np.sin(x), -(1 + np.cos(x))]
    np.testing.assert_allclose(found.B.values[1], expected, rtol=EXACT)
    np.testing.assert_allclose(found.D.values, np.vstack([np.eye(3), expected]), rtol=EXACT, atol=EXACT)
    assert found.A.values[1, 0] == pytest.approx(0.4 * np.sin(x) - w**2 * np.cos(x) + G * np.sin(p + x), rel=EXACT)
    assert [s.unit for s in found.inputs] == ["rad", "rad/s", "rad/s^2"]


def test_outputs_of_a_pendulum():
    """Hanging: the bearing feels m g x sideways; a point moves by its arm; loads are those of the motor."""
    m = pendulum(1e3, units={"length": "mm", "angle": "deg", "mass": "g"})
    m.add_point("tip", (0, "-L", 0), on="bob")
    m.add_measure("half", "A.speed/2")
    system = m.compile()
    names = ["x(tip)", "half", "A.fx", "A.fy", "A.acceleration"]
    found = ld.linearize(system, system.state(), outputs=names)
    rad = np.pi / 180
    C = found.C.values
    assert C[0] == pytest.approx([800.0 * rad, 0.0], rel=EXACT)
    assert C[1] == pytest.approx([0.0, 0.5], rel=EXACT)
    assert C[4] == pytest.approx([-G / 0.8, 0.0], rel=EXACT)
    unit = {s.name: s.factor for s in found.outputs}["A.fx"]
    assert C[2, 0] * unit == pytest.approx(-1.5 * G * rad, rel=EXACT)  # on the child: m x'' = -m g x
    assert C[3, 0] == pytest.approx(0.0, abs=1e-9 * abs(C[2, 0]))
    assert found.output_values.sel(output="A.fy") * unit == pytest.approx(1.5 * G, rel=EXACT)


def test_reactions_and_cut_joints_in_a_loop():
    """Parallelogram at angle x: the cranks stay parallel; B turns back by x; shared sideways load by hand."""
    m = parallelogram()
    m.add_motor("motor", "A", torque=0.0)
    system = m.compile()
    found = ld.linearize(system, inputs=["motor"], outputs=["D", "C.speed", "B.acceleration", "motor.load", "A.fx"])
    C, D = found.C.values, found.D.values[:, 0]
    w2 = 11.03625
    np.testing.assert_allclose(C[:4], [[1, 0], [0, 1], [w2, 0], [0, 0]], atol=1e-12)
    np.testing.assert_allclose(D[:4], [0, 0, -0.375, 1], atol=1e-12)
    # crank c about A: J x'' = T - m g x/2 + (k_x, force of the coupler at B) L cos: with k_y = -M g/2 from the coupler
    # moment: x''/3 = T - g x/2 - g x + k, force: f + k = x''/2, so f = x''/2 - x''/3 + T - 1.5 g x
    expected = [-w2 / 6 - 1.5 * G, 0.375 / 6 + 1.0]
    assert C[4, 0] == pytest.approx(expected[0], rel=1e-12)
    assert D[4] == pytest.approx(expected[1], rel=1e-12)


def test_frequency_response_of_a_damped_pendulum():
    m = pendulum()
    m.add_motor("motor", "A", torque="-0.1*speed")
    found = ld.linearize(m.compile(), inputs=["motor"])
    w, J = np.array([0.5, 3.0, 20.0]), 1.5 * 0.64
    expected = 1 / (1.5 * G * 0.8 - J * w**2 + 0.1j * w)
    np.testing.assert_allclose(found.frequency_response(w).values[:, 0, 0], expected, rtol=EXACT)


# ------------------------------------------------------------------------------------------------------- cost


def test_a_platform_takes_twice_as_many_evaluations_as_freedoms(monkeypatch):
    """Complex evaluations of the dynamics of the 6-UPS platform at rest: 12 for six degrees of freedom."""
    from loopdyn.tree import rnea

    system = ld.library.stewart_6ups().compile()
    state = ld.assemble(system)
    ld.linearize(system, state)
    calls, compiled = [], rnea.rnea

    def counted(ints, floats, work):
        calls.append(work.dtype.kind)
        return compiled(ints, floats, work)

    monkeypatch.setattr(rnea, "rnea", counted)
    found = ld.linearize(system, state)
    assert calls.count("c") <= 2 * 6 + 2
    assert len(found.states) == 12


# ----------------------------------------------------------------------------------------------------- refused


def test_singular_poses_are_refused():
    """A parallelogram of equal lengths folded flat has a second motion."""
    m = parallelogram()
    system = m.compile()
    flat = ld.assemble(system, {"A": np.pi / 2})
    with pytest.raises(SingularityError, match="singular pose"):
        ld.linearize(system, flat)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": ["moter"]}, "no motor, force, driver, parameter or moved base 'moter'"),
        ({"inputs": ["motor", "motor"]}, "named twice"),
        ({"inputs": ["crank"]}, "no motor"),
        ({"outputs": ["Q"]}, "unknown name 'Q'"),
        ({"independent": ["A", "B"]}, "1 independent position and 1 independent speed"),
        ({"independent": ["Q"]}, "no coordinate 'Q'"),
        ({"independent": "A"}, "Give a list"),
    ],
)
def test_wrong_names_are_refused(options, message):
    m = parallelogram()
    m.add_motor("motor", "A", torque=0.0)
    with pytest.raises(LoopdynError, match=message):
        ld.linearize(m.compile(), **options)


def test_open_loops_and_indeterminate_reactions_are_refused():
    system = parallelogram().compile()
    with pytest.raises(LoopdynError, match="open at this state"):
        ld.linearize(system, system.state(q={"A": 0.3}))
    with pytest.raises(LoopdynError, match="statically indeterminate"):
        ld.linearize(system, outputs=["A.fz"])


def test_idle_and_cyclic_freedoms_are_counted():
    """A free shaft beside a pendulum: one chain of two zero poles, exactly zero."""
    m = pendulum()
    m.add_body("wheel", ld.Inertia.rod(mass=1.0, start=(1, 0, 0), end=(1, 0, 1), radius=0.2))
    m.add_joint("W", ld.Revolute(axis=(0, 0, 1)), m.ground, "wheel", at=(1, 0, 0))
    found = ld.linearize(m.compile())
    assert found.zero_chains == (2,)
    assert found.modes().free == (("W",),)
    assert found.poles()[:2].tolist() == [0, 0]
    assert np.abs(found.poles()[2:]) == pytest.approx(np.sqrt(G / 0.8), rel=EXACT)


def test_reactions_by_parameters_and_moved_bases():
    """Pendulum at x = 0.5, at rest: the bearing carries m (g + X'') and m x'' across; X level, L the length."""
    m = pendulum()
    system = m.compile()
    names = ["L", "g", "ground.x.acceleration", "ground.y.acceleration"]
    found = ld.linearize(system, system.state(q={"A": 0.5}, v={"A": 0.7}), inputs=names, outputs=["A.fx", "A.fy"])
    # along the arm: m (L w^2 + g cos x - X'' sin x + Y'' cos x); across it nothing. F axes are those of the ground
    s, c, w, mass, L = np.sin(0.5), np.cos(0.5), 0.7, 1.5, 0.8
    along = np.array([w**2, c, -s, c])  # towards the pin, at (-s, c)
    expected = mass * np.outer([-s, c], along)
    np.testing.assert_allclose(found.D.values, expected, rtol=1e-9, atol=1e-9)
    T = mass * (L * w**2 + G * c)
    slope = -mass * G * s  # of the tension
    turned = [slope * -s + T * -c, slope * c + T * -s]
    np.testing.assert_allclose(found.C.values[:, 0], turned, rtol=EXACT)
    np.testing.assert_allclose(found.C.values[:, 1], 2 * mass * L * w * np.array([-s, c]), rtol=EXACT)


# ---------------------------------------------------------------------------------------------------- along runs


@pytest.mark.parametrize(
    ("speed", "expected"),
    [(5.0, [-0.3987593 + 0.9170556j, -0.3987593 - 0.9170556j]), (6.8620697, [-1.2070493, -0.8284666])],
)
def test_floquet_multipliers_of_a_parallelogram_on_a_shaken_base(speed, expected):
    """Mathieu's equation x'' = -1.2 (g - 0.05 W^2 cos W t) x, whose multipliers were computed independently."""
    m = parallelogram(coupler=1.0, width=1.0)
    m.move_base(y=f"0.05*cos({speed!r}*t)")
    system = m.compile()
    period = 2 * np.pi / speed
    run = ld.simulate(system, ld.assemble(system), (0, 1.001 * period), progress=False)
    found = ld.linearize(system, run).floquet(period)
    np.testing.assert_allclose(found.multipliers, expected, atol=1e-7)  # digits given
    assert np.prod(found.multipliers) == pytest.approx(1.0, abs=1e-8)  # no damping


def test_matrices_along_a_run():
    """Falling pendulum: A(t) = -(g/L) cos x(t)."""
    system = pendulum().compile()
    run = ld.simulate(system, system.state(q={"A": 1.0}), (0, 1), t_eval=np.linspace(0, 1, 11), progress=False)
    A = ld.linearize(system, run).A
    assert A.dims == ("time", "rate", "state")
    np.testing.assert_allclose(A.sel(rate="A.speed", state="A"), -G / 0.8 * np.cos(run["A"]), rtol=EXACT)
    with pytest.raises(LoopdynError, match="not periodic"):
        ld.linearize(system, run).floquet(0.5)


def test_saved_matrices(tmp_path):
    from scipy.io import loadmat

    found = ld.linearize(parallelogram().compile())
    found.save(tmp_path / "a.npz")
    found.save(tmp_path / "a.mat")
    data, mat = np.load(tmp_path / "a.npz"), loadmat(tmp_path / "a.mat")
    np.testing.assert_array_equal(data["A"], found.A.values)
    np.testing.assert_array_equal(mat["A"], found.A.values)
    assert data["states"].tolist() == ["A", "A.speed"]
    with pytest.raises(LoopdynError, match=r"neither .npz nor .mat"):
        found.save(tmp_path / "a.txt")
    np.testing.assert_array_equal(found.to_scipy().A, found.A.values)


def test_a_mode_is_drawn(tmp_path):
    found = ld.linearize(ld.library.double_pendulum().compile(), ld.equilibrium(ld.library.double_pendulum().compile()))
    page = found.modes().animate(1, tmp_path / "mode.html")
    assert page.stat().st_size > 1e5
    assert len(found.plot().axes) == 1


def test_python_control_takes_both_systems():
    """LQR of python-control makes the poles of A - B K those that it says; the nonlinear system agrees with B."""
    control = pytest.importorskip("control", reason="python-control is not installed: pip install 'loopdyn[control]'")
    m = ld.library.five_bar()
    for joint in "AE":
        m.add_motor(f"motor{joint}", joint, torque=0.0)
    system = m.compile()
    there = ld.equilibrium(system)
    found = ld.linearize(system, there, inputs=["motorA", "motorE"])
    linear = found.to_control()
    assert linear.input_labels == ["motorA", "motorE"]
    np.testing.assert_allclose(linear.A, found.A.values)
    K, _, poles = control.lqr(linear, np.eye(4), 0.1 * np.eye(2))
    assert (poles.real < 0).all()
    np.testing.assert_allclose(
        np.sort_complex(np.linalg.eigvals(linear.A - linear.B @ K)), np.sort_complex(poles), rtol=1e-6
    )
    nonlinear = ld.to_control(system, there.state, inputs=["motorA", "motorE"], outputs=["A", "E.acceleration"])
    x = np.concatenate([there.state.q, there.state.v])
    rates = nonlinear.dynamics(0.0, x, [0.3, -0.2])
    n = len(there.state.q)
    k = [system.speeds.index(label) for label in ("A", "E")]
    # linear in the loads at rest
    np.testing.assert_allclose(rates[n:][k], found.B.values[2:] @ [0.3, -0.2], rtol=1e-8)
    np.testing.assert_allclose(nonlinear.output(0.0, x, [0.3, -0.2]), [there["A"], rates[n:][k[1]]], rtol=1e-12)


# ------------------------------------------------------------------------------------------------------- remarks


def test_a_corner_of_a_table_is_said():
    """A spring with a kink at zero: the equations hold to one side, and a warning says so."""
    m = pendulum()
    table = ld.forces.Table(of="position", points=((-1, 1), (0, 0), (1, -3)), interpolation="linear")
    m.add_motor("kinked", "A", torque=table)
    system = m.compile()
    with pytest.warns(ld.LoopdynWarning, match="corner of its table of position"):
        found = ld.linearize(system)
    J = 1.5 * 0.64
    sides = [-(k + 1.5 * G * 0.8) / J for k in (1.0, 3.0)]
    assert min(abs(found.A.values[1, 0] - x) for x in sides) < 1e-9
    assert any("corner" in note for note in found.notes)


def test_friction_limits_and_residuals_are_remarked():
    m = pendulum()
    m.add_force("rubs", ld.forces.JointFriction(joint="A", coulomb=0.1, transition=0.5))
    system = m.compile()
    found = ld.linearize(system, system.state(q={"A": 0.3}))
    assert found.A.values[1, 1] == pytest.approx(-0.1 / 0.5 / (1.5 * 0.64), rel=EXACT)
    assert any("friction 'rubs'" in note for note in found.notes)
    assert any("not an equilibrium" in note for note in found.notes)
    assert ld.linearize(pendulum().compile()).notes == ()


def test_user_forces_are_differentiated():
    """A cubic brake about a speed w: -3 c w^2, by differences whose fourth-order error vanishes for a cubic."""
    m = pendulum()

    def brake(t, q, v, out):
        out[0] -= 0.2 * v[0] ** 3

    m.add_force("brake", ld.forces.UserForce(function=brake))
    system = m.compile()
    found = ld.linearize(system, system.state(v={"A": 2.0}))
    assert found.A.values[1, 1] == pytest.approx(-0.2 * 3 * 4 / (1.5 * 0.64), rel=1e-9)


def test_one_length_of_a_parallelogram_is_no_input():
    m = ld.Mechanism("parallelogram", gravity=(0, -G, 0), parameters={"w": 1.0, "x": 0.0})
    z = (0, 0, 1)
    m.add_body("c", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(0, -1, 0)))
    m.add_body("k", ld.Inertia.rod(mass=1.0, start=(0, -1, 0), end=("w", -1, 0)))
    m.add_body("d", ld.Inertia.rod(mass=1.0, start=("w", 0, 0), end=("w", -1, 0)))
    m.add_joint("A", ld.Revolute(axis=z), m.ground, "c", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=z), "c", "k", at=(0, -1, 0))
    m.add_joint("C", ld.Revolute(axis=z), "k", "d", at=("w", -1, 0))
    m.add_joint("D", ld.Revolute(axis=(0, "x", 1)), m.ground, "d", at=("w", 0, 0))
    system = m.compile()
    with pytest.raises(LoopdynError, match="cannot follow a change of input 'x'"):
        ld.linearize(system, inputs=["x"])  # which tilts one pin
    # the width of a parallelogram of equal rods: 2 g/(5/3) whatever it is
    found = ld.linearize(system, inputs=["w"])
    np.testing.assert_allclose(found.B.values, 0.0, atol=1e-9)


def test_the_command_prints_modes(tmp_path):
    import json
    from pathlib import Path

    from typer.testing import CliRunner

    from loopdyn.app.cli import app

    file = Path(__file__).parents[2] / "examples" / "mechanisms" / "double_pendulum.yaml"
    result = CliRunner().invoke(app, ["modes", str(file), "--json", "--save", str(tmp_path / "lin.npz")])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert [s["name"] for s in data["states"]] == ["A", "B", "A.speed", "B.speed"]
    assert len(data["modes"]) == 2
    assert (tmp_path / "lin.npz").exists()
    result = CliRunner().invoke(app, ["modes", str(file)])
    assert "rad/s" in result.output
    files = {option: tmp_path / name for option, name in (("--plot", "poles.png"), ("--animate", "mode.html"))}
    given = [x for option, name in files.items() for x in (option, str(name))]
    result = CliRunner().invoke(app, ["modes", str(file), "--mode", "1", *given])
    assert result.exit_code == 0, result.output
    assert files["--plot"].read_bytes().startswith(b"\x89PNG")
    assert "body" in files["--animate"].read_text()


def test_positions_and_speeds_of_a_rolling_disc_can_be_chosen():
    """Five positions and three speeds by name: the same pole; a contradictory choice is refused."""
    system = disc(chain=True).compile()
    state = ld.assemble(system, v={"spin": 10.0})
    names = ["P.x", "P.y", "yaw", "lean", "spin", "yaw.speed", "lean.speed", "spin.speed"]
    found = ld.linearize(system, state, independent=names)
    assert [s.name for s in found.states] == names
    np.testing.assert_allclose(found.modes().omega, [14.6232691283], rtol=1e-10)
    with pytest.raises(SingularityError, match="not independent"):  # rolling: P.x moves as it spins
        ld.linearize(system, state, independent=[*names[:5], "P.x.speed", "lean.speed", "spin.speed"])


def test_a_body_on_a_ball_in_motion():
    """Neighbouring motions of a heavy body that turns: their growth over T is exp(A T) at the middle, to T^2."""
    from scipy.linalg import expm

    m = ld.Mechanism("top", gravity=(0, 0, -G))
    m.add_body("top", ld.Inertia(1.3, (0.1, 0.05, -0.4), {"xx": 0.2, "yy": 0.15, "zz": 0.1, "xy": 0.01}))
    m.add_joint("S", ld.Spherical(), m.ground, "top", at=(0, 0, 0))
    system = m.compile()
    rng = np.random.default_rng(0)
    q = ld.tree.increment(system, system.q_reference, rng.normal(size=3))
    start = ld.State(0.0, q, 2.0 * rng.normal(size=3), system=system)
    T, e = 1e-3, 1e-4

    def axes(state):
        return ld.tree.body_motion(system, state).rotation[1]

    def end(state, t=T):
        run = ld.simulate(system, state, (0, t), t_eval=[0, t], rtol=1e-12, progress=False)
        return run.state(len(run.path.t) - 1)

    def apart(one, other):
        """Rotation vector and change of the angular velocity, axes of F, as the states are defined."""
        turn = axes(one) @ axes(other).T
        spin = axes(one) @ one.v - axes(other) @ other.v
        return np.array([*(turn[i, j] - turn[j, i] for i, j in ((2, 1), (0, 2), (1, 0))), *(2 * spin)]) / 2

    R, last, growth = axes(start), end(start), np.zeros((6, 6))
    for k in range(6):
        d = e * np.eye(6)[k]
        for sign in (1, -1):
            pose = ld.State(0.0, ld.tree.increment(system, q, sign * R.T @ d[:3]), start.v)
            there = ld.State(0.0, pose.q, axes(pose).T @ (R @ start.v + sign * d[3:]), system=system)
            growth[:, k] += sign * apart(end(there), last) / (2 * e)
    middle = end(start, T / 2)
    A = ld.linearize(system, ld.State(0.0, middle.q, middle.v, system=system)).matrices.A
    # T^3 A^3/24 with A = 11: 5e-8, and as much by differences
    np.testing.assert_allclose(expm(A * T), growth, atol=1e-7)
