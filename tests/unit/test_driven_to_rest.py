"""Fully driven mechanisms whose speeds pass zero together: regular poses, where minimal coordinates go on."""

import numpy as np
import pytest

import loopdyn as ld

PINS = {
    "A": (0, 0, 0), "K": (0.3, -0.4, 0), "L": (1.2, 0.9, 0), "B": (2.5, 1.5, 0),
    "M": (1.5, 1.6, 0), "N": (2.4, 2.0, 0), "D": (3.3, -0.2, 0), "T": (3.0, -1.0, 0),
}  # fmt: skip
DISTANCES = {"lift": ("S1", 0.3), "reach": ("S2", 0.25), "dig": ("D", 0.8)}  # of the two pistons and of the bucket


def backhoe(law: str) -> ld.System:
    """A backhoe, two loops with a piston each; `law` of t, from 0 to 1, moves both pistons and the bucket."""
    m = ld.Mechanism("backhoe", gravity=(0, -9.81, 0))
    at = {name: np.array(p, float) for name, p in PINS.items()}
    ends = {"boom": ("A", "B"), "stick": ("N", "D"), "bucket": ("D", "T")}
    for mass, (name, (a, b)) in zip((300, 150, 80), ends.items(), strict=True):
        m.add_body(name, ld.Inertia.rod(mass=mass, start=at[a], end=at[b], radius=0.05))
    pin = ld.Revolute(axis=(0, 0, 1))
    for k, parent, a, b in ((1, "ground", "K", "L"), (2, "boom", "M", "N")):
        middle = 0.5 * (at[a] + at[b])
        m.add_body(f"barrel{k}", ld.Inertia.rod(mass=20, start=at[a], end=middle, radius=0.05))
        m.add_body(f"piston{k}", ld.Inertia.rod(mass=10, start=middle, end=at[b], radius=0.05))
        m.add_joint(a, pin, parent, f"barrel{k}", at=at[a])
        m.add_joint(f"S{k}", ld.Prismatic(axis=at[b] - at[a]), f"barrel{k}", f"piston{k}", at=middle)
    for name, parent, child in (
        ("A", "ground", "boom"), ("B", "boom", "stick"), ("D", "stick", "bucket"),
        ("L", "piston1", "boom"), ("N", "piston2", "stick"),
    ):  # fmt: skip
        m.add_joint(name, pin, parent, child, at=at[name])
    for name, (joint, distance) in DISTANCES.items():
        m.add_driver(name, joint, f"{distance} * ({law})")
    return m.compile()


def boom_angle(extension: float) -> float:
    """Angle of the boom at an extension of its piston: cosine law in the triangle A K L."""
    a, k, l = (np.array(PINS[name][:2], float) for name in "AKL")
    b, c = np.linalg.norm(k - a), np.linalg.norm(l - a)

    def opposite(d: float) -> float:
        return float(np.arccos((b * b + c * c - d * d) / (2 * b * c)))

    return opposite(np.linalg.norm(l - k) + extension) - opposite(np.linalg.norm(l - k))


@pytest.mark.parametrize("formulation", ["partition", "closure", "rcr", "graph"])
def test_motions_that_come_to_rest_together_are_followed(formulation):
    """All speeds are zero at t = 1 and 2 s: `partition` and `closure` called the pose singular.

    Speeds that follow were compared with the fastest, which is zero there.
    The pose is regular: seven speeds, rank seven (of 13 rows).
    """
    system = backhoe("0.5 - 0.5*cos(pi*t)")
    start = ld.assemble(system)
    times = np.array([0.5, 1.0, 1.5, 2.0, 2.25])
    run = ld.simulate(system, start, (0, 2.25), t_eval=times, formulation=formulation, rtol=1e-6, progress=False)
    assert run.status == "finished", run.message
    boom = run.path.q[:, system.coordinates.index("A")]
    expected = [boom_angle(0.3 * (0.5 - 0.5 * np.cos(np.pi * t))) for t in times]
    np.testing.assert_allclose(boom, expected, atol=1e-5)  # ten times rtol: some ten steps
    J = ld.terms(system, run.at(2.0)).J
    assert np.linalg.matrix_rank(J, tol=1e-6) == system.nv


def test_a_motion_whose_speed_jumps_is_not_called_a_singular_pose():
    system = backhoe("min(t, 0.2)")
    run = ld.simulate(system, ld.assemble(system), (0, 0.4), formulation="partition", rtol=1e-5, progress=False)
    assert run.status == "failed"
    assert "jump at t = 0.2" in run.message
    assert "where the pose is regular" in run.message
    assert "singular" not in run.message


def test_an_energy_error_above_one_per_cent_is_warned_of():
    """Runge-Kutta of order 4 with some eight steps in a swing of a pendulum."""
    system = ld.library.pendulum().compile()
    with pytest.warns(ld.LoopdynWarning, match="relative energy-balance error of the run is .*%, more than 1%"):
        run = ld.simulate(system, system.state(), (0, 10), integrator=ld.integrators.RK4(step=0.3), progress=False)
    assert run.status == "finished"
    assert 0.01 < run.energy_error < 0.5
