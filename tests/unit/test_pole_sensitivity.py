"""Derivatives of poles by parameters: closed forms, Richardson differences of poles, repeated poles."""

import numpy as np
import pytest

import loopdyn as ld

G = 9.81
# Derivatives of A are five-point differences of exact matrices: errors of 1e-12 and rounding of 1e-13 over 1e-3.
CLOSE = 1e-9


def five_points(f, x, h):
    """Richardson difference; its error is the fourth power of h/x."""
    up, down, up2, down2 = (f(x + k * h) for k in (1, -1, 2, -2))
    return (8 * (up - down) - (up2 - down2)) / (12 * h)


def parallelogram(**changed):
    """Cranks of mass `crank` and length L, a coupler of mass `coupler`; torsion spring k at each pin."""
    parameters = {"L": 1.0, "crank": 1.0, "coupler": 2.0, "k": 3.0, "c": 0.2} | changed
    m = ld.Mechanism("parallelogram", gravity=(0, -G, 0), parameters=parameters)
    m.add_body("left", ld.Inertia.rod(mass="crank", start=(0, 0, 0), end=(0, "-L", 0)))
    m.add_body("middle", ld.Inertia.rod(mass="coupler", start=(0, "-L", 0), end=(2, "-L", 0)))
    m.add_body("right", ld.Inertia.rod(mass="crank", start=(2, 0, 0), end=(2, "-L", 0)))
    z = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", z, m.ground, "left", at=(0, 0, 0))
    m.add_joint("B", z, "left", "middle", at=(0, "-L", 0))
    m.add_joint("C", z, "middle", "right", at=(2, "-L", 0))
    m.add_joint("D", z, m.ground, "right", at=(2, 0, 0))
    for joint in "ABCD":
        m.add_force(f"spring{joint}", ld.forces.JointSpring(joint=joint, stiffness="k", damping="c"))
    return m


def test_hanging_parallelogram_by_length_masses_spring_and_damper_in_closed_form():
    """J s^2 + 4 c s + K = 0 with J = (2 m/3 + M) L^2 and K = (m + M) g L + 4 k: both cranks and the coupler fall."""
    system = parallelogram().compile()
    L, m, M, k, c = 1.0, 1.0, 2.0, 3.0, 0.2
    J, K = (2 * m / 3 + M) * L**2, (m + M) * G * L + 4 * k
    names = ["L", "crank", "coupler", "k", "c"]
    dJ = dict(zip(names, (2 * (2 * m / 3 + M) * L, 2 * L**2 / 3, L**2, 0, 0), strict=True))
    dK = dict(zip(names, ((m + M) * G, G * L, G * L, 4, 0), strict=True))
    dC = dict(zip(names, (0, 0, 0, 0, 4), strict=True))
    s = (-4 * c + np.sqrt((4 * c) ** 2 - 4 * J * K + 0j)) / (2 * J)
    omega = np.sqrt(K / J)
    of = ["omega(0)", "frequency(0)", "damping(0)", "pole(0).real", "pole(0).imag"]
    found = ld.sensitivity(system, of, names, state=ld.equilibrium(system))
    assert found.values == pytest.approx(
        [omega, omega / (2 * np.pi), 2 * c / np.sqrt(J * K), s.real, s.imag], rel=1e-11
    )
    assert found.units == ("rad/s", "Hz", "1", "rad/s", "rad/s")
    for p in names:
        ds = -(dJ[p] * s**2 + dC[p] * s + dK[p]) / (2 * J * s + 4 * c)
        d_omega = (dK[p] - omega**2 * dJ[p]) / (2 * J * omega)
        d_damping = dC[p] / (2 * np.sqrt(J * K)) - c / np.sqrt(J * K) * (dJ[p] / J + dK[p] / K)
        expected = [d_omega, d_omega / (2 * np.pi), d_damping, ds.real, ds.imag]
        assert [found[x, p] for x in of] == pytest.approx(expected, abs=CLOSE * omega), p


def test_hanging_parallelogram_of_the_issue_without_springs():
    """omega^2 = g (m + M)/((2 m/3 + M) L) = 11.03625: by L it falls by half of it per L."""
    system = parallelogram(k=1e-300, c=0.0).compile()
    found = ld.sensitivity(system, "omega(0)", ["L", "crank", "coupler"])
    omega = np.sqrt(11.03625)
    assert found.value("omega(0)") == pytest.approx(omega, rel=1e-11)
    assert found["omega(0)", "L"] == pytest.approx(-omega / 2, abs=CLOSE)
    # omega^2 = g N/D: N' = 1 by both masses, D' = 2/3 and 1
    by = [G * (8 / 3 - 3 * d) / (8 / 3) ** 2 / (2 * omega) for d in (2 / 3, 1.0)]
    assert [found["omega(0)", p] for p in ("crank", "coupler")] == pytest.approx(by, abs=CLOSE)


def spring_pendulum():
    """Point mass m on a massless rod of length L from the horizontal, held by a torsion spring: m g L cos A = k A."""
    m = ld.library.pendulum()
    m.parameters["k"] = 20.0
    m.add_force("spring", ld.forces.JointSpring(joint="A", stiffness="k"))
    return m.compile()


def test_the_equilibrium_moves_with_the_parameter_in_closed_form():
    """omega^2 = (k + m g L sin A)/(m L^2), where A itself changes: (k + m g L sin A) dA = d(m g L) cos A - dk A."""
    system = spring_pendulum()
    rest = ld.equilibrium(system)
    A, k = rest["A"], 20.0
    K = k + G * np.sin(A)
    omega = np.sqrt(K)
    dA = {"length": G * np.cos(A) / K, "mass": G * np.cos(A) / K, "k": -A / K}
    dK = {p: G * np.cos(A) * dA[p] + (1.0 if p == "k" else G * np.sin(A)) for p in dA}
    dJ = {"length": 2.0, "mass": 1.0, "k": 0.0}
    found = ld.sensitivity(system, ["omega(0)", "A"], list(dA), state=rest)
    for p in dA:
        assert found["omega(0)", p] == pytest.approx((dK[p] - K * dJ[p]) / (2 * omega), abs=1e-8), p
        assert found["A", p] == pytest.approx(dA[p], abs=1e-9)  # other quantities beside it


def test_a_pose_that_is_held_is_no_equilibrium_with_another_parameter_and_says_so():
    system = spring_pendulum()
    rest = ld.equilibrium(system).state
    with pytest.warns(ld.LoopdynWarning, match="at the pose held"):
        found = ld.sensitivity(system, "omega(0)", "k", state=rest)
    omega = np.sqrt(20.0 + G * np.sin(rest.q[0]))
    assert found["omega(0)", "k"] == pytest.approx(1 / (2 * omega), abs=CLOSE)


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "double_wishbone"])
def test_poles_of_the_library_about_equilibria_against_differences(name):
    """Differences of whole equilibria with steps of a thousandth; damped and undamped modes, redundant rows."""
    system = ld.library.ALL[name]().compile()
    rest = ld.equilibrium(system)
    p = next(n for n, x in system.mechanism.parameters.items() if not isinstance(x, str) and x)
    modes = len(ld.linearize(system, rest).modes())
    of = [f"omega({k})" for k in range(modes)]
    found = ld.sensitivity(system, of, p, state=rest)
    value = system.mechanism.parameters[p]

    def whole(x):
        other = system.with_parameters(**{p: x})
        there = ld.equilibrium(other, near=rest.state)
        return ld.linearize(other, there).modes().omega

    expected = five_points(whole, value, 1e-3 * value)
    error = np.abs(found.derivatives[:, 0] - expected) * abs(value) / found.values
    assert error.max() < 1e-7, (found.derivatives[:, 0], expected)


def test_repeated_poles_are_refused_with_how_close_they_are():
    """Two equal pendulums; parted by a thousandth of a length each has its own derivative again."""

    def two(other):
        m = ld.Mechanism("two", gravity=(0, -G, 0), parameters={"L": 1.0, "other": other})
        for k, length in enumerate(("L", "other")):
            m.add_body(f"bob{k}", ld.Inertia.point(1.0, at=(k, f"-{length}", 0)))
            m.add_joint(f"P{k}", ld.Revolute(axis=(0, 0, 1)), m.ground, f"bob{k}", at=(k, 0, 0))
        return m.compile()

    with pytest.raises(ld.LoopdynError, match=r"repeated: the next one is \S+ rad/s away, \S+ of its size"):
        ld.sensitivity(two(1.0), "omega(0)", "L")
    found = ld.sensitivity(two(1.001), ["omega(0)", "omega(1)"], "L")  # the longer one is slower
    assert found.derivatives[:, 0] == pytest.approx([0.0, -np.sqrt(G) / 2], abs=1e-8)


def test_critical_damping_is_a_repeated_pole():
    """s^2 + 2 s + 1 = 0: computed poles are the root of rounding apart, and their derivative is infinite."""
    m = ld.Mechanism("critical", gravity=(0, 0, 0), parameters={"k": 1.0})
    m.add_body("body", ld.Inertia.point(1.0))
    m.add_joint("x", ld.Prismatic(axis=(1, 0, 0)), m.ground, "body", at=(0, 0, 0))
    m.add_force("spring", ld.forces.JointSpring(joint="x", stiffness="k", damping=2.0))
    with pytest.raises(ld.LoopdynError, match="repeated"):
        ld.sensitivity(m.compile(), "pole(0).real", "k")


def test_poles_are_of_states_with_modes_that_exist():
    system = spring_pendulum()
    with pytest.raises(ld.LoopdynError, match="has 1 modes here"):
        ld.sensitivity(system, "omega(1)", "k", state=ld.equilibrium(system))
    with pytest.raises(ld.LoopdynError, match="not of a drive"):
        ld.sensitivity(system, "omega(0)", "k", state=ld.drive(system, "A", (0, 0.5, 3)))
    with pytest.raises(ld.LoopdynError, match="not of a run"):
        ld.sensitivity(system, "omega(0)", "k", t_span=(0, 1))
