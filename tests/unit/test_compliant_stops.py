"""Compliant stops: a mass on a one-sided spring and damper against the closed forms, units, files, mistakes.

The load ends before the spring is straight again where damping would pull: at k d + c d' = 0.
"""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.contacts import Stop

PRECISE = {"rtol": 1e-11, "progress": False}
Z = (0, 0, 1)
MASS, SPEED, GAP = 2.0, 0.8, 0.1  # kg, m/s, m
STIFFNESS = 3e3  # N/m


def slider(stop: Stop, units: dict | None = None) -> ld.System:
    """A mass on a horizontal slide that is GAP away from a stop ahead."""
    m = ld.Mechanism("slider", units=units or {})
    m.add_body("b", ld.Inertia(MASS, (0, 0, 0), np.eye(3)))
    m.add_joint("X", ld.Prismatic(axis=(1, 0, 0)), m.ground, "b", at=(0, 0, 0))
    m.add_contact("stop", stop)
    return m.compile()


def contact(damping: float) -> tuple[float, float]:
    """Duration of the contact and the speed after it, by the damped oscillation d = v/w exp(-z t) sin(w t)."""
    z = damping / (2 * MASS)
    w = np.sqrt(STIFFNESS / MASS - z * z)
    end = (np.pi - np.arctan(damping * w / (STIFFNESS - damping * z))) / w
    return end, SPEED * np.exp(-z * end) * (np.cos(w * end) - z / w * np.sin(w * end))


@pytest.mark.parametrize("damping", [0.0, 15.0, 60.0])
def test_a_mass_leaves_a_compliant_stop_after_half_a_period(damping):
    system = slider(Stop(joint="X", upper=GAP, stiffness=STIFFNESS, damping=damping))
    run = ld.simulate(system, system.state(v={"X": SPEED}), (0, 0.4), **PRECISE)
    touched, left = (next(e for e in run.events if e.kind == kind) for kind in ("contact", "separation"))
    duration, after = contact(damping)
    if damping == 0.0:
        assert duration == pytest.approx(np.pi * np.sqrt(MASS / STIFFNESS), rel=1e-14)
    assert touched.t == pytest.approx(GAP / SPEED, rel=1e-9)
    # the step across the end of a damped load is not smooth inside: its error may be larger than the tolerance
    inside = 1e-9 if damping < 60.0 else 1e-5
    assert left.t - touched.t == pytest.approx(duration, rel=inside)
    assert left.after["X.speed"] == pytest.approx(after, rel=inside)
    force, gap = run["stop.force"].values, run["stop.gap"].values
    assert force.min() == 0.0
    t = run.path.t
    outside = (t < touched.t) | (t > left.t)
    assert np.all(force[outside] == 0.0)
    assert np.all(force[~outside] >= 0.0)
    np.testing.assert_allclose(gap, GAP - run["X"].values, rtol=0, atol=1e-14)
    # work of the stop: all that is lost of the kinetic energy, nothing if there is no damping
    assert 0.5 * MASS * (SPEED**2 - after**2) == pytest.approx(-run.path.work[-1].sum(), abs=10 * inside)
    assert run.energy_error < 1e-9
    assert {e.kind for e in run.events} == {"contact", "separation"}


def test_energy_of_the_stop_is_that_of_its_spring():
    system = slider(Stop(joint="X", upper=GAP, stiffness=STIFFNESS))
    run = ld.simulate(system, system.state(v={"X": SPEED}), (0, 0.2), **PRECISE)
    kinetic = 0.5 * MASS * run["X.speed"].values ** 2
    np.testing.assert_allclose(kinetic + run.elastic_energy, 0.5 * MASS * SPEED**2, rtol=1e-9)
    assert run.elastic_energy.max() > 0.1


def test_numbers_are_in_the_units_of_the_model():
    """Torque per degree, N mm: the period of a wheel on the stop is that of the spring in SI units."""
    stiffness, inertia = 40.0, 0.02  # N mm/deg, kg m^2
    m = ld.Mechanism("wheel", units={"length": "mm", "angle": "deg", "torque": "N*mm"})
    m.add_body("b", ld.Inertia(1.0, (0, 0, 0), np.eye(3) * inertia * 1e6))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "b", at=(0, 0, 0))
    m.add_contact("stop", Stop(joint="A", lower=-10, upper=10, stiffness=stiffness))
    system = m.compile()
    run = ld.simulate(system, system.state(v={"A": 90.0}), (0, 1.0), **PRECISE)
    up, left, down = (e.t for e in run.events[:3])
    assert [e.name for e in run.events[:3]] == ["stop upper: contact", "stop upper: separation", "stop lower: contact"]
    period = np.pi * np.sqrt(inertia / (stiffness * 1e-3 * 180 / np.pi))
    assert up == pytest.approx(10 / 90, rel=1e-9)
    assert left - up == pytest.approx(period, rel=1e-8)
    assert down - left == pytest.approx(20 / 90, rel=1e-8)
    deepest = 90.0 / (np.pi / period)  # degrees
    dense = ld.simulate(
        system, system.state(v={"A": 90.0}), (0, up + period / 2), t_eval=[0, up + period / 2], **PRECISE
    )
    assert dense["stop.gap"].values[-1] == pytest.approx(-deepest, rel=1e-8)
    assert dense["stop.force"].values[-1] == pytest.approx(stiffness * deepest, rel=1e-8)
    assert (system.labels["stop.gap"].unit, system.labels["stop.force"].unit) == ("deg", "N*mm")


def test_a_distance_is_bounded_by_a_compliant_stop():
    """A mass that hangs on a slack rope stretches it: the closed form of a fall onto a spring."""
    m = ld.Mechanism("rope", gravity=(0, -9.81, 0))
    m.add_body("b", ld.Inertia(MASS, (0, -0.5, 0), np.eye(3)))
    m.add_joint("Y", ld.Prismatic(axis=(0, 1, 0)), m.ground, "b", at=(0, -0.5, 0))
    ends = {"body1": "ground", "point1": (0, 0, 0), "body2": "b", "point2": (0, -0.5, 0)}
    m.add_contact("rope", Stop(**ends, upper=1.0, stiffness=STIFFNESS))
    system = m.compile()
    run = ld.simulate(system, system.state(), (0, 1.0), **PRECISE)
    fall = np.sqrt(2 * 0.5 / 9.81)
    speed, w = 9.81 * fall, np.sqrt(STIFFNESS / MASS)
    static = 9.81 / w**2
    touched, left = (next(e.t for e in run.events if e.kind == kind) for kind in ("contact", "separation"))
    assert touched == pytest.approx(fall, rel=1e-9)
    assert left - touched == pytest.approx(2 * (np.pi - np.arctan2(speed / w, static)) / w, rel=1e-8)
    assert run.energy_error < 1e-9


def test_a_load_rests_on_a_compliant_stop_by_weight_over_stiffness():
    m = ld.Mechanism("load", gravity=(0, -9.81, 0))
    m.add_body("b", ld.Inertia(MASS, (0, 0, 0), np.eye(3)))
    m.add_joint("Y", ld.Prismatic(axis=(0, 1, 0)), m.ground, "b", at=(0, 0, 0))
    m.add_contact("stop", Stop(joint="Y", lower=0.0, stiffness=STIFFNESS, damping=200.0))
    system = m.compile()
    found = ld.equilibrium(system)
    depth = MASS * 9.81 / STIFFNESS
    assert found.state["Y"] == pytest.approx(-depth, rel=1e-9)
    poles = np.linalg.eigvals(ld.linearize(system, found.state).A)
    assert np.prod(poles).real == pytest.approx(STIFFNESS / MASS, rel=1e-6)
    run = ld.simulate(system, system.state(), (0, 3.0), **PRECISE)
    assert run["stop.force"].values[-1] == pytest.approx(MASS * 9.81, rel=1e-9)
    assert run["Y"].values[-1] == pytest.approx(-depth, rel=1e-9)


def rocker(**stop: object) -> ld.Mechanism:
    m = ld.library.four_bar()
    m.add_contact("stop", Stop(joint="D", upper=0.1, **stop))
    return m


@pytest.mark.parametrize("formulation", ["relative", "partition", "absolute", "rcr"])
def test_formulations_agree_on_a_compliant_stop_in_a_loop(formulation):
    """Of a joint in the tree and of one that is cut; the oracle adds its torque to the four-bar without the stop."""
    for cuts in (["C"], ["D"]):
        system, bare = (rocker(**x).compile(cuts=cuts) for x in ({"stiffness": 300.0, "damping": 2.0}, {}))
        state = ld.assemble(system, q={"D": 0.15}, v={"A": 1.0})
        torque = -300.0 * 0.05 - 2.0 * state["D.speed"]
        loaded = ld.library.four_bar()
        loaded.add_motor("motor", "D", torque=float(torque))
        expected = ld.accelerations(loaded.compile(cuts=cuts), state, formulation="oracle")
        found = ld.accelerations(system, state, formulation=formulation)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        with pytest.warns(ld.errors.LoopdynWarning, match="is closed at this state"):
            free = ld.accelerations(bare, state)
        assert np.abs(free - expected).max() > 1.0


def test_a_loop_with_a_compliant_stop_is_kept_in_a_file(tmp_path):
    m = rocker(stiffness="2*k", damping=2.0)
    m.parameters = {**m.parameters, "k": 150.0}
    m.save(tmp_path / "rocker.yaml")
    assert 'stiffness: "2*k"' in (tmp_path / "rocker.yaml").read_text()
    again = ld.load(tmp_path / "rocker.yaml")
    assert again == m
    system, other = m.compile(), rocker(stiffness=360.0, damping=2.0).compile()
    state = ld.assemble(other, q={"D": 0.15})
    stiffer = ld.accelerations(system.with_parameters(k=180.0), state)
    np.testing.assert_allclose(stiffer, ld.accelerations(other, state), rtol=1e-12)


def test_reactions_balance_beside_a_compliant_stop():
    """Static: the torque of the stop about the rocker's pin is in the reactions of all joints, residual zero."""
    system = rocker(stiffness=300.0).compile()
    found = ld.reactions(system, ld.assemble(system, q={"D": 0.15}))
    assert found.residual < 1e-10


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        (
            {"joint": "X", "upper": 1, "stiffness": 10, "restitution": 0.5},
            "a stiffness and a restitution",
        ),
        ({"joint": "X", "upper": 1, "stiffness": 10, "restitution": 0}, "a stiffness and a restitution"),
        ({"joint": "X", "upper": 1, "damping": 10}, "has damping but no stiffness"),
        ({"joint": "X", "upper": 1, "stiffness": 0}, "'stiffness' is zero"),
        ({"joint": "X", "upper": 1, "stiffness": -1}, "'stiffness' is negative"),
        ({"joint": "X", "upper": 1, "stiffness": 1, "damping": -1}, "'damping' is negative"),
        ({"measure": "half", "upper": 1, "stiffness": 1}, "is compliant, but bounds a measure"),
        ({"joint": "X", "measure": "half", "upper": 1}, "bounds one thing"),
        ({"measure": "hal", "upper": 1}, "there is no measure 'hal'"),
        ({"measure": "fast", "upper": 1}, "which depends on speeds"),
        ({"measure": "square", "upper": 1}, "neither a length nor an angle"),
        ({"measure": "turned", "upper": 1}, "has no turns"),
    ],
)
def test_mistakes_are_named(stop, message):
    m = ld.Mechanism("slider")
    m.add_body("b", ld.Inertia(1.0, (0, 0, 0), np.eye(3)))
    m.add_joint("X", ld.Prismatic(axis=(1, 0, 0)), m.ground, "b", at=(0, 0, 0))
    m.add_point("P", (0, 0, 0), on="b")
    m.add_point("Q", (0, 1, 0), on="ground")
    for name, formula in {"half": "X/2", "fast": "X.speed", "square": "X*X", "turned": "angle(P, Q)"}.items():
        m.add_measure(name, formula)
    m.add_contact("stop", Stop(**stop))
    with pytest.raises(ld.errors.ModelError, match=message):
        m.compile()


def test_a_compliant_stop_and_a_rebound_at_the_limits_contradict_each_other():
    m = ld.Mechanism("slider")
    m.add_body("b", ld.Inertia(1.0, (0, 0, 0), np.eye(3)))
    slide = ld.Prismatic(axis=(1, 0, 0))
    m.add_joint("X", slide, m.ground, "b", at=(0, 0, 0), limits=(-1, 1), at_limit={"rebound": 0.5})
    m.add_contact("stop", Stop(joint="X", stiffness=10.0))
    with pytest.raises(ld.errors.ModelError, match=r"the rebound in 'at_limit' of 'X', which contradict"):
        m.compile()


def test_limits_of_a_joint_are_the_bounds_of_a_compliant_stop():
    m = ld.Mechanism("slider")
    m.add_body("b", ld.Inertia(MASS, (0, 0, 0), np.eye(3)))
    m.add_joint("X", ld.Prismatic(axis=(1, 0, 0)), m.ground, "b", at=(0, 0, 0), limits=(-1, GAP), at_limit="stop")
    m.add_contact("stop", Stop(joint="X", stiffness=STIFFNESS))
    system = m.compile()
    run = ld.simulate(system, system.state(v={"X": SPEED}), (0, 0.4), **PRECISE)
    assert run.status == "finished"
    assert run.events[1].t - run.events[0].t == pytest.approx(np.pi * np.sqrt(MASS / STIFFNESS), rel=1e-8)


def test_a_load_between_two_outputs_is_warned_of():
    m = ld.Mechanism("buffer")
    m.add_body("wagon", ld.Inertia.box(mass=2.0, size=(0.2, 0.1, 0.1), at=(0, 0, 0)))
    m.add_joint("X", ld.Prismatic(axis=(1, 0, 0)), m.ground, "wagon", at=(0, 0, 0))
    m.add_contact("stop", ld.contacts.Stop(joint="X", upper=0.1, stiffness=3e6))
    system = m.compile()
    start = ld.assemble(system, v={"X": 0.8})
    with pytest.warns(ld.LoopdynWarning, match="'stop' from t = 0.125 to 0.12756.* between outputs"):
        ld.simulate(system, start, (0, 1), progress=False)
    dense = ld.simulate(system, start, (0, 1), t_eval=np.linspace(0, 1, 5001), progress=False)
    half = np.pi * np.sqrt(2.0 / 3e6)  # s, of the contact; outputs are 2e-4 s apart, at most half of it from the peak
    least = np.cos(np.pi * 1e-4 / half)
    assert least < dense["stop.force"].max() / (0.8 * np.sqrt(2.0 * 3e6)) < 1.0 + 1e-6
