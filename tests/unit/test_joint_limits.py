"""Limits of joints in runs: watched without being asked for, at cut joints too; `at_limit` decides what happens."""

import json
import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.app.cli import app
from loopdyn.joints.base import Rebound

G = 9.81
LOW = -np.pi / 6
SLACK = 2e-9  # by so much a limit may be passed before that counts (1e-9 rad), and the tolerance of the run


def gate(at_limit=None) -> ld.Mechanism:
    """A rod of 1 m on a pin, released from the horizontal: it swings down to -180 degrees and back."""
    m = ld.Mechanism("gate", gravity=(0, -G, 0), units={"angle": "deg"})
    m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    pin = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", pin, "ground", "rod", at=(0, 0, 0), limits=(-30, 90), at_limit=at_limit)
    return m


def fall(angle: float) -> tuple[float, float]:
    """Time and speed at which the gate has fallen by an angle: (dθ/dt)^2 = 3 g sin θ for a rod of 1 m."""
    seconds, _ = quad(lambda x: 2 * x / np.sqrt(3 * G * np.sin(x * x)), 0, np.sqrt(angle), epsabs=1e-13)  # θ = x^2
    return seconds, float(np.sqrt(3 * G * np.sin(angle)))


def four_bar(at_limit=None, cuts=("A",)) -> tuple[ld.System, ld.State]:
    """A four-bar whose crank pin has limits, the upper one 0.5 rad from the start; by default this joint is cut."""
    m = ld.library.four_bar()
    m.joints["A"] = m.joints["A"].model_copy(update={"limits": (-3.0, 0.5), "at_limit": at_limit})
    system = m.compile(cuts=list(cuts))
    assert ("A" in system.coordinates) == ("A" not in cuts)
    return system, ld.assemble(system)


def crank(system: ld.System, state: ld.State) -> tuple[float, float]:
    """Angle of the crank against the reference pose, where all coordinates are zero, and its rate: from its motion."""
    motion = ld.tree.body_motion(system, state)
    k = motion.bodies.index("crank")
    R = motion.rotation[k]
    return float(np.arctan2(R[1, 0], R[0, 0])), float(motion.angular_velocity[k, 2])


# ------------------------------------------------------------------------------------------------- by default


@pytest.mark.jit_off
def test_a_joint_that_leaves_its_limits_is_an_event_and_a_warning():
    system = gate().compile()
    with pytest.warns(ld.LoopdynWarning, match="A beyond its lower limit from t = 0.26.* s on.*at_limit: stop"):
        run = ld.simulate(system, system.state(), (0, 1), progress=False)
    assert run.status == "finished"
    assert [e.name for e in run.events] == ["A beyond its lower limit"]
    seconds, speed = fall(-LOW)
    assert run.events[0].t == pytest.approx(seconds, abs=SLACK / speed)
    assert run.events[0].state.q[0] == pytest.approx(LOW, abs=SLACK)


def test_a_run_within_the_limits_says_nothing():
    system = gate().compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = ld.simulate(system, system.state(), (0, 0.2), progress=False)
    assert run.events == ()


@pytest.mark.parametrize("cuts", [("A",), ("C",)])
def test_limits_are_watched_whatever_is_cut(cuts):
    system, start = four_bar(cuts=cuts)
    with pytest.warns(ld.LoopdynWarning, match="A beyond its upper limit"):
        run = ld.simulate(system, start, (0, 0.2), progress=False)
    event = run.events[0]
    assert event.name == "A beyond its upper limit"
    assert crank(system, event.state)[0] == pytest.approx(0.5, abs=1e-7)  # rtol over some steps


def test_a_start_outside_is_an_event_and_a_warning():
    system = gate().compile()
    with pytest.warns(ld.LoopdynWarning, match=r"'A' starts outside its limits \[-30, 90\] deg, by 27.3 deg"):
        run = ld.simulate(system, system.state(q={"A": np.degrees(-1.0)}), (0, 0.1), progress=False)
    assert (run.events[0].t, run.events[0].name) == (0.0, "A beyond its lower limit")


def test_limits_of_angles_are_meant_but_for_whole_turns():
    system = gate().compile()
    with pytest.warns(ld.LoopdynWarning, match="A beyond its lower limit"):
        run = ld.simulate(system, system.state(q={"A": 3 * 360.0}), (0, 1), progress=False)
    assert run.events[0].t == pytest.approx(fall(-LOW)[0], abs=1e-8)


def test_limits_a_turn_apart_at_a_cut_joint_are_said_to_be_unwatched():
    m = ld.library.four_bar()
    m.joints["A"] = m.joints["A"].model_copy(update={"limits": (-4.0, 4.0)})
    system = m.compile(cuts=["A"])
    with pytest.warns(ld.LoopdynWarning, match="'A' belongs to a cut joint.*not monitored"):
        ld.simulate(system, ld.assemble(system), (0, 0.1), progress=False)


# ----------------------------------------------------------------------------------------------- as at_limit says


def test_a_stop_ends_the_run_at_the_limit():
    system = gate("stop").compile()
    run = ld.simulate(system, system.state(), (0, 1), progress=False)
    assert run.status == "stopped"
    assert "A at its lower limit" in run.message
    assert run.path.q[-1, 0] == pytest.approx(LOW, abs=1e-12)
    assert run.path.t[-1] == pytest.approx(fall(-LOW)[0], abs=1e-9)


def test_a_rebound_turns_the_speed_about():
    """At 0.5 of the speed the rod comes up again by a quarter of the height, in the sine of the angle."""
    system = gate({"rebound": 0.5}).compile()
    run = ld.simulate(system, system.state(), (0, 0.6), progress=False)
    event = run.events[0]
    speed = fall(-LOW)[1]
    assert event.state.v[0] == pytest.approx(-speed, rel=1e-7)
    assert event.after.v[0] == pytest.approx(0.5 * speed, rel=1e-7)
    later = run.path.t > event.t
    assert run.path.q[later, 0].max() == pytest.approx(-np.arcsin(0.75 * 0.5), abs=1e-4)  # outputs are 3 ms apart
    assert run.energy_error < 1e-7


def test_a_stop_and_a_rebound_work_at_a_cut_joint():
    system, start = four_bar("stop")
    run = ld.simulate(system, start, (0, 0.2), progress=False)
    assert run.status == "stopped"
    assert crank(system, ld.State(run.path.t[-1], run.path.q[-1], run.path.v[-1]))[0] == pytest.approx(0.5, abs=1e-7)
    system, start = four_bar(Rebound(0.5))
    run = ld.simulate(system, start, (0, 0.2), progress=False)
    before, after = (crank(system, s)[1] for s in (run.events[0].state, run.events[0].after))
    assert after == pytest.approx(-0.5 * before, rel=1e-9)
    # one degree of freedom: all speeds scale, and the energy with their square
    kinetic = ld.tree.energy(system, run.events[0].state).kinetic
    assert run.events[0].energy_loss == pytest.approx(0.75 * kinetic, rel=1e-6)
    assert run.largest_residual < 1e-9


def test_an_event_of_the_run_takes_the_place_of_at_limit():
    system = gate("stop").compile()
    run = ld.simulate(system, system.state(), (0, 0.5), events=[ld.events.Limits(restitution=0.5)], progress=False)
    assert run.status == "finished"
    assert run.events[0].after.v[0] > 0.0


def test_a_start_on_the_limit_is_watched():
    """Released on its lower limit, it leaves at once; with a stop the run ends there."""
    for at_limit, status in ((None, "finished"), ("stop", "stopped")):
        system = gate(at_limit).compile()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            run = ld.simulate(system, system.state(q={"A": np.degrees(LOW)}), (0, 0.2), progress=False)
        assert run.status == status
        assert len(run.events) == 1
        assert run.events[0].t < 1e-3
        assert len(said) == (at_limit is None)


def test_a_start_beyond_a_stop_is_refused():
    system = gate("stop").compile()
    with pytest.raises(ld.LoopdynError, match=r"'A' starts outside its limits .* is to stop or rebound there"):
        ld.simulate(system, system.state(q={"A": np.degrees(-1.0)}), (0, 1), progress=False)


# --------------------------------------------------------------------------------------------- files and words


@pytest.mark.parametrize("at_limit", ["warn", "stop", {"rebound": 0.5}])
def test_files_hold_at_limit(tmp_path, at_limit):
    gate(at_limit).save(tmp_path / "gate.yaml")
    text = (tmp_path / "gate.yaml").read_text()
    assert "at_limit:" in text
    found = ld.load(tmp_path / "gate.yaml")
    assert found == gate(at_limit)
    assert found.compile().at_limit == {"A": 0.5 if isinstance(at_limit, dict) else at_limit}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"at_limit": "stop"}, "has 'at_limit' but no limits"),
        ({"limits": (0, 1), "at_limit": {"rebound": 2}}, "'rebound' is 2. Give a number from 0 to 1"),
        ({"limits": (0, 1), "at_limit": "stopp"}, "at_limit"),
        ({"limits": (0, 1), "at_limit": {"bounce": 1}}, "at_limit"),
    ],
)
def test_wrong_at_limit_is_refused_in_words(given, words):
    m = ld.Mechanism("gate")
    m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))

    def build() -> None:
        m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), "ground", "rod", at=(0, 0, 0), **given)
        m.compile()

    with pytest.raises(ld.errors.ModelError, match=words):
        build()


def test_the_command_line_notes_it(tmp_path):
    gate().save(tmp_path / "gate.yaml")
    plain = CliRunner().invoke(app, ["run", str(tmp_path / "gate.yaml"), "-t", "1"])
    assert plain.exit_code == 0, plain.output
    assert "note: A beyond its lower limit from t = 0.26" in plain.output
    assert "UserWarning" not in plain.output
    said = CliRunner().invoke(app, ["run", str(tmp_path / "gate.yaml"), "-t", "1", "--json"])
    assert any("beyond its lower limit" in text for text in json.loads(said.stdout)["warnings"])


@pytest.mark.parametrize(
    ("limits", "start", "inside"),
    [
        ((-60, 400), -100, False),  # more than a turn apart: as they stand
        ((0, 720), -10, False),
        ((0, 720), 400, True),
        ((-60, 60), 350, True),  # less than a turn apart: but for whole turns
        ((-60, 60), -70, False),
    ],
)
def test_limits_hold_but_for_whole_turns_only_where_they_are_less_than_a_turn_apart(limits, start, inside):
    m = ld.Mechanism("p")
    m.add_body("b", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(0.3, 0, 0)))
    given = tuple(np.radians(limits))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1), limits=given, at_limit="stop"), m.ground, "b", at=(0, 0, 0))
    system = m.compile()
    state = system.state(q={"A": np.radians(start)})
    if inside:
        assert ld.simulate(system, state, (0.0, 0.01), progress=False).status == "finished"
    else:
        with pytest.raises(ld.LoopdynError, match="starts outside its limits"):
            ld.simulate(system, state, (0.0, 0.01), progress=False)
