"""Anderson and Critchley (2003), Fig. 6: drift of a four-bar with constraints at acceleration and at velocity level.

RK4 with h = 0.01 s. The paper's own parameters are lost with its figures: these three sets and their errors come from
an independent prototype in the coordinates of the paper (relative angles, loop closed at the last pin). The error is
the gap at that pin.
"""

from functools import cache

import numpy as np
import pytest

import loopdyn as ld

FRAME, LENGTHS, MASSES, WIDTH = 1.0, (0.4, 0.9, 0.7), (1.0, 2.0, 1.5), 0.02
START = [1.0, -0.5857315426515687, -2.0422256866237967]
RATES = np.array([1.0, -1.2451133102801084, 0.5996804065950313])  # of all angles for a crank at 1 rad/s
TIMES = (1, 2, 5, 10, 20)

# gravity, speed of the crank, accelerations at the start, and the gap at TIMES with constraints at acceleration level
SETS = {
    "violent": (9.81, 2.0, [-14.154216517932133, 19.04505877201462, -7.6810852254679585],
                [5.611573334692377e-06, 3.6701570045324874e-05, 2.5722032331506456e-04, 1.0876658265855982e-03,
                 4.462901768200932e-03]),
    "gentle": (0.0, 1.0, [-0.5826290140219722, 1.0808029875518224, -0.14766093126283547],
               [2.3284789625082686e-10, 1.6591738659942528e-09, 6.219941812237191e-09, 2.7931337431755016e-08,
                1.3472627569794573e-07]),
    "spinning": (0.0, 6.0, None,
                 [2.1036160360922535e-06, 4.708281373708306e-05, 4.2307765983024285e-04, 1.8514040349665174e-03,
                  7.723913359071417e-03]),
}  # fmt: skip
# With velocities enforced the prototype's gap of the gentle set stays at 1.3e-9 from the first second on, where ours is
# 1.5e-10; why is not known. Differences of that size, and growing at that rate per second, are not resolved by it.
UNRESOLVED = 1.3e-9


def four_bar(gravity: float) -> ld.System:
    """Three bars in a row along x at the reference pose, whose last end is pinned to the ground at (FRAME, 0)."""
    m = ld.Mechanism("four_bar", gravity=(0, -gravity, 0))
    x, parent = 0.0, m.ground
    for k, (length, mass) in enumerate(zip(LENGTHS, MASSES, strict=True), 1):
        izz = mass * (length**2 + WIDTH**2) / 12
        m.add_body(f"bar{k}", ld.Inertia.planar(mass=mass, com=(x + length / 2, 0, 0), izz=izz))
        m.add_joint(f"q{k}", ld.Revolute(axis=(0, 0, 1)), parent, f"bar{k}", at=(x, 0, 0))
        x, parent = x + length, f"bar{k}"
    ends = {"parent_frame": ld.Frame(position=(FRAME, 0, 0)), "child_frame": ld.Frame(position=(x, 0, 0))}
    m.add_joint("q4", ld.Revolute(axis=(0, 0, 1)), m.ground, "bar3", **ends)
    return m.compile(cuts=["q4"])


@cache
def gap(name: str, drift: str) -> np.ndarray:
    """Gap at the last pin, every 0.01 s for 20 s."""
    gravity, speed, _, _ = SETS[name]
    system = four_bar(gravity)
    state = ld.assemble(system, q=START, v=speed * RATES)
    run = ld.simulate(system, state, (0, 20), t_eval=np.linspace(0, 20, 2001), integrator=ld.RK4(step=0.01),
                      drift=drift, progress=False).raise_if_failed()  # fmt: skip
    return np.linalg.norm(run.diagnostics.residual[:, 0], axis=1)


@pytest.mark.parametrize("name", ["violent", "gentle"])
def test_accelerations_at_the_start(name):
    gravity, speed, expected, _ = SETS[name]
    system = four_bar(gravity)
    a = ld.accelerations(system, ld.assemble(system, q=START, v=speed * RATES))
    np.testing.assert_allclose(a, expected, rtol=1e-8)


@pytest.mark.parametrize("name", SETS)
def test_gap_with_constraints_at_acceleration_level_is_that_of_the_prototype(name):
    found = gap(name, "none")[[100 * t for t in TIMES]]
    tolerance = [UNRESOLVED * (1 + t) for t in TIMES] if name == "gentle" else [1e-3 * x for x in SETS[name][3]]
    assert np.all(np.abs(found - SETS[name][3]) < tolerance)


@pytest.mark.parametrize("name", SETS)
def test_at_acceleration_level_the_gap_grows_with_the_square_of_time(name):
    """Twice the time, four times the gap; a linear growth would be two."""
    found = gap(name, "none")
    assert 3.5 < found[2000] / found[1000] < 5.5


@pytest.mark.parametrize("name", SETS)
def test_at_velocity_level_the_gap_is_bounded_or_grows_linearly(name):
    """Largest gap until 10 s and until 20 s; it stays a hundred times smaller than without."""
    found = gap(name, "velocity")
    assert found.max() / found[:1001].max() < 2.2
    assert found.max() < 0.01 * gap(name, "none").max()


@pytest.mark.parametrize("name", SETS)
def test_with_projection_there_is_no_drift(name):
    """One correction a step: what is left is the square of the error of a step, the same all the time."""
    found = gap(name, "projection")
    assert found.max() < 1e-9
    assert found[1001:].max() < 2.0 * found[:1001].max() + 1e-14
