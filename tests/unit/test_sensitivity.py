"""Derivatives by parameters at states, along drives and at equilibria, against closed forms and differences."""

import numpy as np
import pytest

import loopdyn as ld


def five_points(f, x, h):
    """Richardson difference of a whole computation; its error is h^4, rounding 1e-13/h."""
    up, down, up2, down2 = (f(x + k * h) for k in (1, -1, 2, -2))
    return (8 * (up - down) - (up2 - down2)) / (12 * h)


def pendulum():
    m = ld.library.pendulum()
    m.points |= {"tip": {"at": ("-length", 0, 0), "on": "bob"}}
    return m.compile()


def coupler_point(a, b, c, d, theta, u, w):
    """Coupler point of a four-bar, fixed to the coupler at (u, w) from the crank pin, by the law of cosines."""
    B = np.array([a * np.cos(theta), a * np.sin(theta)])
    diagonal = np.array([d, 0.0]) - B
    e = np.hypot(*diagonal)
    phi = np.arctan2(diagonal[1], diagonal[0]) + np.arccos((b**2 + e**2 - c**2) / (2 * b * e))
    return B + [u * np.cos(phi) - w * np.sin(phi), u * np.sin(phi) + w * np.cos(phi)]


def test_pendulum_in_closed_form():
    """A point mass at -L (cos A, sin A): A'' = g cos(A)/L, and the pull along its rod m (L A'^2 - g sin A)."""
    system, g = pendulum(), 9.81
    state = system.state(q={"A": 0.5}, v={"A": 2.0})
    found = ld.sensitivity(system, ["x(tip)", "ax(tip)", "A.acceleration", "A.fx*cos(A) + A.fy*sin(A)"], state=state)
    a, c, s = g * np.cos(0.5), np.cos(0.5), np.sin(0.5)
    expected = {  # by length, mass, g at L = m = 1
        "x(tip)": (-c, 0.0, 0.0),
        "ax(tip)": (4.0 * c, 0.0, c * s),  # -(L cos A)'' = L (A'' sin A + A'^2 cos A), and L A'' = g cos A
        "A.acceleration": (-a, 0.0, c),
        "A.fx*cos(A) + A.fy*sin(A)": (4.0, 4.0 + g * s, s),  # m (L A'^2 + g sin A) towards the pin
    }
    for name, values in expected.items():  # loads by differences of 1e-10, others exact up to those of the floats
        assert [found[name, p] for p in ("length", "mass", "g")] == pytest.approx(values, abs=1e-8), name


@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_coupler_point_of_a_four_bar_in_closed_form(name):
    sizes = {"a": 0.3, "b": 0.9, "c": 0.8, "d": 1.0}
    u, w, reference = 0.4, 0.2, 1.1

    m = ld.Mechanism("four-bar", gravity=(0, -9.81, 0), parameters=sizes)
    m.parameters |= {
        "bx": f"a*cos({reference})",
        "by": f"a*sin({reference})",
        "diagonal": "sqrt((d - bx)**2 + by**2)",
        "phi": "atan2(-by, d - bx) + acos((b**2 + diagonal**2 - c**2)/(2*b*diagonal))",
        "cx": "bx + b*cos(phi)",
        "cy": "by + b*sin(phi)",
    }
    rod = ld.Inertia.rod
    crank = m.add_body("crank", rod(mass=1.0, start=(0, 0, 0), end=("bx", "by", 0)))
    coupler = m.add_body("coupler", rod(mass=1.0, start=("bx", "by", 0), end=("cx", "cy", 0)))
    rocker = m.add_body("rocker", rod(mass=1.0, start=("d", 0, 0), end=("cx", "cy", 0)))
    z = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", z, m.ground, crank, at=(0, 0, 0))
    m.add_joint("B", z, crank, coupler, at=("bx", "by", 0))
    m.add_joint("C", z, coupler, rocker, at=("cx", "cy", 0))
    m.add_joint("D", z, m.ground, rocker, at=("d", 0, 0))
    m.points |= {
        "P": {"at": (f"bx + {u}*cos(phi) - {w}*sin(phi)", f"by + {u}*sin(phi) + {w}*cos(phi)", 0), "on": "coupler"}
    }
    system = m.compile()
    turn = 0.4
    state = ld.assemble(system, {"A": turn})
    found = ld.sensitivity(system, ["x(P)", "y(P)"], name, state=state, hold=["A"])

    def P(value):
        return coupler_point(*(sizes | {name: value}).values(), reference + turn, u, w)

    expected = five_points(P, sizes[name], 1e-3)  # error 1e-11 of numbers of the order of one
    assert found.values == pytest.approx(P(sizes[name]), abs=1e-12)
    assert found.derivatives[:, 0] == pytest.approx(expected, abs=1e-9)


def numbers(m):
    """Parameters that are numbers, and not zero, up to three of them."""
    return [name for name, x in m.parameters.items() if not isinstance(x, str) and x][:3]


def value(system, state, solved, carried, name):
    """Number of a label at a state, by the functions of its kind."""
    label = system.labels[name]
    if label.kind == "acceleration":
        return solved[label.index] / label.factor
    if label.kind == "reaction":
        return carried.wrench[carried.joints.index(label.element), label.index] / label.factor
    return state[name]


def check_state(build, parameters, tolerance=1e-7):
    """Five quantities at a moving state against Richardson differences of the whole computation."""
    system = build().compile()
    start = ld.assemble(system)
    held = ld.sensitivity(system, "t", parameters[0], state=start).held
    tree = [label for label in held if label in system.coordinates]
    speeds = {label: 0.7 + 0.2 * k for k, label in enumerate(held)}
    state = ld.assemble(system, {x: start[x] for x in tree}, speeds, near=start)
    of = [*(f"{x}.acceleration" for x in list(system.speeds)[:2] if x in system.coordinates)]
    of += [x for x in system.coordinates if x in system.speeds][-2:]
    of += [f"{x}.speed" for x in list(system.coordinates) if x in system.speeds][-1:]
    joint = next(j for j in system.joints.values() if j.in_tree)
    found_unique = ld.reactions(system, state)
    k = found_unique.joints.index(joint.name)
    components = ("mx", "my", "mz", "fx", "fy", "fz")
    of += [f"{joint.name}.{c}" for c, known in zip(components, found_unique.unique[k], strict=True) if known][-2:]
    of = list(dict.fromkeys(of))
    found = ld.sensitivity(system, of, parameters, state=state, hold=held)

    def whole(name, x):
        other = system.with_parameters(**{name: x})
        given = {label: state[label] for label in tree}
        near = ld.assemble(other, given, speeds, near=state)
        solved, carried = ld.accelerations(other, near), ld.reactions(other, near)
        return np.array([value(other, near, solved, carried, label) for label in of])

    for name in parameters:
        p = system.mechanism.parameters[name]
        expected = five_points(lambda x, n=name: whole(n, x), p, 1e-3 * abs(p))
        size = np.maximum(np.abs(expected) * abs(p), np.abs(found.values))
        j = parameters.index(name)
        size = np.where(size > 1e-6, size, 1.0)
        size = np.maximum(size, 1e-4 * np.abs(found.values).max())  # rounding of the largest numbers is in all of them
        error = np.abs(found.derivatives[:, j] - expected) * abs(p) / size
        assert error.max() < tolerance, (name, of, error, found.derivatives[:, j], expected)


@pytest.mark.parametrize("name", ["slider_crank", "rssr"])
def test_states_against_differences_of_the_whole(name):
    """Differences with steps of a thousandth have errors of 1e-10 or so of the value."""
    build = ld.library.ALL[name]
    check_state(build, numbers(build()))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ld.library.ALL if name != "random_mechanism"])  # which has none
def test_states_of_the_library_against_differences_of_the_whole(name):
    """As above, on every mechanism of the library that has parameters."""
    build = ld.library.ALL[name]
    check_state(build, numbers(build()))


def slide(A, crank, rod, offset=0.02, angle=0.5):
    """Slide of the slider-crank from its reference pose, x(A) - x(0) with x = r cos + sqrt(l^2 - (r sin - h)^2)."""

    def x(a):
        return crank * np.cos(a) + np.sqrt(rod**2 - (crank * np.sin(a) - offset) ** 2)

    return x(angle + A) - x(angle)


def test_slide_of_a_slider_crank_by_its_lengths_in_closed_form():
    system = ld.library.slider_crank().compile()
    turn = ld.drive(system, "A", (0, 1.2, 7))
    found = ld.sensitivity(system, ["D"], ["crank", "rod"], state=turn)
    assert found.data["derivative"].dims == ("quantity", "parameter", "sample")
    A, h = np.linspace(0, 1.2, 7), 1e-20  # imaginary step: exact
    assert found["D", "crank"] == pytest.approx(
        slide(A, 0.15 + 1j * h, 0.45).imag / h, abs=1e-9
    )  # floats differ by 1e-10
    assert found["D", "rod"] == pytest.approx(slide(A, 0.15, 0.45 + 1j * h).imag / h, abs=1e-9)


def test_transmission_angle_of_a_slider_crank_against_differences_of_drives():
    system = ld.library.slider_crank().compile()
    p = system.mechanism.parameters
    turn = ld.drive(system, "A", (0, 1.2, 7))
    found = ld.sensitivity(system, ["transmission_angle(D)"], ["crank", "rod"], state=turn)

    def whole(name, value):
        return ld.drive(system.with_parameters(**{name: value}), "A", (0, 1.2, 7)).transmission_angle("D").values

    for name in ("crank", "rod"):
        expected = five_points(lambda x, n=name: whole(n, x), p[name], 1e-3 * p[name])
        assert found["transmission_angle(D)", name] == pytest.approx(expected, abs=1e-8), name  # differences: 1e-10


def spring_pendulum():
    """A point mass m on a massless rod of length L, with a torsion spring k: m g L cos A = k A at rest."""
    m = ld.library.pendulum()
    m.parameters["k"] = 20.0
    m.add_force("spring", ld.forces.JointSpring(joint="A", stiffness="k"))
    return m.compile()


def test_equilibrium_in_closed_form():
    system = spring_pendulum()
    rest = ld.equilibrium(system)
    A, g, k = rest["A"], 9.81, 20.0
    stiffness = k + g * np.sin(A)
    expected = {"length": g * np.cos(A) / stiffness, "mass": g * np.cos(A) / stiffness, "k": -A / stiffness}
    found = ld.sensitivity(system, ["A", "spring.load"], list(expected), state=rest)
    for name, slope in expected.items():
        assert found["A", name] == pytest.approx(slope, abs=1e-10)
    # the spring's load is -k A; loads are differences of 1e-10
    assert found["spring.load", "mass"] == pytest.approx(-k * expected["mass"], abs=1e-8)


def test_refusals():
    system = ld.library.four_bar().compile()
    with pytest.raises(ld.LoopdynError, match="Did you mean 'crank'"):
        ld.sensitivity(system, "A", "crnk")
    with pytest.raises(ld.LoopdynError, match="no parameter is named"):
        ld.sensitivity(system, "A", [])
    with pytest.raises(ld.LoopdynError, match="indeterminate"):
        ld.sensitivity(system, "A.fz", "crank")


def test_an_equilibrium_with_an_idle_freedom_moves_beside_it():
    """A pendulum against a spring, as above, with a wheel on its own axis that nothing holds or loads."""
    m = ld.library.pendulum()
    m.parameters["k"] = 20.0
    m.add_force("spring", ld.forces.JointSpring(joint="A", stiffness="k"))
    wheel = m.add_body("wheel", ld.Inertia.cylinder(mass=1.0, radius=0.1, length=0.1, axis=(0, 0, 1), at=(-1, 0, 0)))
    m.add_joint("W", ld.Revolute(axis=(0, 0, 1)), "bob", wheel, at=(-1, 0, 0))
    system = m.compile()
    rest = ld.equilibrium(system)
    found = ld.sensitivity(system, ["A", "W"], "k", state=rest)
    A, g = rest["A"], 9.81  # two masses of 1 kg at the length of 1 m: 2 g cos A = k A
    assert found["A", "k"] == pytest.approx(-A / (20.0 + 2 * g * np.sin(A)), abs=1e-10)
    assert found["W", "k"] == pytest.approx(0.0, abs=1e-12)
    assert found.held == ("W",)


def test_a_parameter_that_loads_a_neutral_motion_is_refused():
    """A wheel without weight about its axis: an eccentric mass `u` in the plane loads it, so that it must turn over."""
    m = ld.Mechanism("wheel", gravity=(0, -9.81, 0), parameters={"u": 0.0})
    m.add_body("wheel", ld.Inertia.from_principal(1.0, ("u", 0, 0), (0.1, 0.1, 0.1)))
    m.add_joint("W", ld.Revolute(axis=(0, 0, 1)), m.ground, "wheel", at=(0, 0, 0))
    system = m.compile()
    with pytest.raises(ld.LoopdynError, match="along a motion that 'u' loads \\(W\\)"):
        ld.sensitivity(system, "W", "u", state=ld.equilibrium(system))


def test_an_angle_of_half_a_turn_has_a_derivative():
    """T at (-L, e1) with e1 = 0: the angle is 180 deg, and by e1 it changes by -1/L; it was that of a full turn."""
    m = ld.Mechanism("rotor", gravity=(0, 0, 0), parameters={"L": 0.5, "e1": 0.0})
    m.add_body("rotor", ld.Inertia.point(1.0, at=("L", 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rotor", at=(0, 0, 0))
    m.points |= {"O": {"at": (0, 0, 0), "on": "ground"}, "X": {"at": (1, 0, 0), "on": "ground"}}
    m.points |= {"T": {"at": ("-L", "e1", 0), "on": "rotor"}}
    found = ld.sensitivity(m, "angle(X, O, T, about=z)", ["e1", "L"])
    assert found.values == pytest.approx([np.pi])
    assert found.derivatives[0] == pytest.approx([-2.0, 0.0], abs=1e-9)
