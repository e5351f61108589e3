"""Sizes, masses, speeds and stiffnesses far from one: an answer that holds, or a refusal in words."""

import warnings

import numpy as np
import pytest

import loopdyn as ld

PIN = ld.Revolute(axis=(0, 0, 1))
STATES = ("finished", "stopped", "failed")


def rod(m, name, mass, start, end):
    length = float(np.linalg.norm(np.subtract(end, start)))
    middle = tuple(np.add(start, end) / 2)
    return m.add_body(name, ld.Inertia(mass=mass, com=middle, matrix=np.eye(3) * mass * length**2 / 12))


def four_bar(rng, size, masses):
    """A crank of 3-4-5 sides; the pin C by the intersection of two circles. Some are at or beside change points."""
    rods = ((0.5, 1.2, 0.9, 1.1), (1, 1, 1, 1), (1, 2, 1, 2), (1, 2, 1 + 10.0 ** rng.uniform(-12, -3), 2))
    a, b, c, d = rods[rng.integers(len(rods))]
    B, D = np.array([0.6 * a, 0.8 * a, 0.0]), np.array([d, 0.0, 0.0])
    e = D - B
    r = np.linalg.norm(e)
    x = (r * r + b * b - c * c) / (2 * r)
    C = B + e / r * x + np.array([-e[1], e[0], 0.0]) / r * np.sqrt(max(b * b - x * x, 0.0))
    A, B, C, D = (tuple(p * size) for p in (np.zeros(3), B, C, D))
    m = ld.Mechanism("four_bar", gravity=(0, -9.81, 0))
    for name, mass, ends in zip(("crank", "coupler", "rocker"), masses, ((A, B), (B, C), (D, C)), strict=True):
        rod(m, name, mass, *ends)
    for name, parent, child, at in (("A", "ground", "crank", A), ("B", "crank", "coupler", B),
                                    ("C", "coupler", "rocker", C), ("D", "ground", "rocker", D)):  # fmt: skip
        m.add_joint(name, PIN, parent, child, at=at)
    return m


def slider_crank(rng, size, masses):
    A, B, C = (tuple(np.array(p) * size) for p in ((0, 0, 0), (0.3, 0.4, 0), (0.3 + np.sqrt(1.28), 0, 0)))
    m = ld.Mechanism("slider_crank", gravity=(0, -9.81, 0))
    rod(m, "crank", masses[0], A, B)
    rod(m, "rod", masses[1], B, C)
    m.add_body("block", ld.Inertia(mass=masses[2], com=C, matrix=np.eye(3) * masses[2] * (0.05 * size) ** 2))
    m.add_joint("A", PIN, m.ground, "crank", at=A)
    m.add_joint("B", PIN, "crank", "rod", at=B)
    m.add_joint("C", PIN, "rod", "block", at=C)
    m.add_joint("S", ld.Prismatic(axis=(1, 0, 0)), m.ground, "block", at=C)
    return m


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_numbers_a_run_conserves_energy_and_closes_or_says_why_it_does_not(seed):
    """Judges: the dense oracle for accelerations; energy, which nothing takes or gives; the loops themselves."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-6, 6) if seed % 2 else 1.0
    masses = 10.0 ** rng.uniform(-9, 9, 3) if seed % 3 == 0 else np.full(3, 10.0 ** rng.uniform(-6, 6))
    if seed % 7 == 0:
        masses[rng.integers(3)] = 0.0
    m = (four_bar, slider_crank)[seed % 2 == 0](rng, size, masses)
    speed = (0.0, 1.0, 10.0 ** rng.uniform(0, 5))[seed % 3]
    if seed % 5 == 0:
        m.add_force(
            None, ld.forces.JointSpring(joint="A", stiffness=10.0 ** rng.uniform(0, 9) * float(masses.max()) * size**2)
        )
    end = min(1.0, 20.0 / max(speed, 1.0), 3.0 * np.sqrt(size))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            system = m.compile()
            state = ld.assemble(system, v={"A": speed})
            found, exact = ld.accelerations(system, state), ld.accelerations(system, state, "oracle")
            run = ld.simulate(system, state, (0, end), t_eval=np.linspace(0, end, 11), progress=False)
        except ld.LoopdynError:  # refused in words
            return
    assert not [w for w in given if issubclass(w.category, RuntimeWarning)]  # nothing divided by zero on the way
    # masses are up to 1e18 apart, of which the oracle's dense factors keep 16 digits: half of them is asked for
    # and fast parallelograms subtract squares of speeds from one another until only gravity is left: some last places
    rounding = 100 * np.finfo(float).eps * float(np.abs(state.v[0])) ** 2  # the crank's, 1/s^2
    assert np.abs(found - exact).max() < 1e-5 * np.abs(exact).max() + 1e-9 + rounding
    assert run.status in STATES
    assert np.isfinite(run.path.q).all()
    if run.status == "finished":
        assert run.energy_error < 1e-4  # rtol is 1e-8; stiff springs oscillate thousands of times
        assert run.largest_residual < 1e-8
