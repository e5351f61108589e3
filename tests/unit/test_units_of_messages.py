"""Messages, states and times of a model in mm and deg are in these units, and in the same words everywhere."""

import re

import numpy as np
import pytest

import loopdyn as ld

FILE = "examples/mechanisms/four_bar_mm.yaml"


@pytest.fixture(scope="module")
def four_bar():
    return ld.load(FILE).compile()


def test_state_of_a_simulation_has_labels_in_declared_units(four_bar):
    start = ld.assemble(four_bar, {"A": 30}, {"A": 90})
    sim = ld.Simulation(four_bar, start, inputs=["motor"], step=1e-3)
    assert sim.state["A"] == pytest.approx(30.0)
    assert sim.state["A.speed"] == pytest.approx(90.0)
    sim.step([0.0])
    assert sim.state["A"] == sim["A"]
    assert sim.state["C.speed"] == sim["C.speed"]


def test_labels_are_shown_with_kind_and_unit(four_bar):
    lines = [line.split() for line in repr(four_bar.labels).splitlines()]
    assert ["A.speed", "speed", "deg/s"] in lines
    assert ["motor.load", "load", "N*mm"] in lines
    assert ["coupler", "body"] in lines


def test_label_of_an_acceleration_has_its_article(four_bar):
    with pytest.raises(ld.LoopdynError, match=r"'A.acceleration' is an acceleration"):
        four_bar.state()["A.acceleration"]


@pytest.mark.parametrize("t_eval", [[0, 0.5, 0.25, 1], [0, 0.5, 0.5], [], [[0, 1]]])
def test_output_times_that_do_not_ascend_are_refused_in_the_same_words(four_bar, t_eval):
    words = "t_eval must be a list of ascending times in s"
    for span in (None, (0.0, 1.0)):
        with pytest.raises(ld.LoopdynError, match=words):
            ld.drive(four_bar, "A", "90*t", t_span=span, t_eval=t_eval)
        with pytest.raises(ld.LoopdynError, match=words):
            ld.inverse_dynamics(four_bar, {"A": "90*t"}, t_eval, t_span=span)
    with pytest.raises(ld.LoopdynError, match=words):
        ld.simulate(four_bar, t_span=(0.0, 1.0), t_eval=t_eval, progress=False)


@pytest.mark.parametrize("t_span", [(1.0, 0.0), (0.0, 0.0), (0.0, np.inf)])
def test_spans_without_time_are_refused_in_the_same_words(four_bar, t_span):
    words = re.escape(f"t_span is {t_span}. Give the first and the last time in s")
    with pytest.raises(ld.LoopdynError, match=words):
        ld.drive(four_bar, "A", "90*t", t_span=t_span)
    with pytest.raises(ld.LoopdynError, match=words):
        ld.inverse_dynamics(four_bar, {"A": "90*t"}, t_span=t_span)
    with pytest.raises(ld.LoopdynError, match=words):
        ld.analyses.variants(four_bar.mechanism, [{"name": "one"}], t_span)
    with pytest.raises(ld.LoopdynError, match=words):
        ld.simulate(four_bar, t_span=t_span, progress=False)


def test_output_times_outside_of_the_span_are_refused_in_the_same_words(four_bar):
    words = "t_eval goes from 0 to 2 s, outside of t_span"
    with pytest.raises(ld.LoopdynError, match=words):
        ld.drive(four_bar, "A", "90*t", t_span=(0, 1), t_eval=[0, 2])
    with pytest.raises(ld.LoopdynError, match=words):
        ld.inverse_dynamics(four_bar, {"A": "90*t"}, [0, 2], t_span=(0, 1))
    with pytest.raises(ld.LoopdynError, match=words):
        ld.simulate(four_bar, t_span=(0, 1), t_eval=[0, 2], progress=False)


def test_gap_of_a_loop_that_does_not_close_is_in_declared_units():
    # links of 30, 20 and 10 mm over a base of 100 mm: 40 mm or more remain open
    m = ld.Mechanism("short", units={"length": "mm", "angle": "deg"})
    for name, a, b in (("crank", 0, 30), ("coupler", 30, 50), ("rocker", 90, 100)):
        m.add_body(name, ld.Inertia.rod(1.0, (a, 0, 0), (b, 0, 0)))
    z = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", z, m.ground, "crank", at=(0, 0, 0))
    m.add_joint("B", z, "crank", "coupler", at=(30, 0, 0))
    frames = [ld.Frame(position=(x, 0, 0)) for x in (50, 90)]
    m.add_joint("C", z, "coupler", "rocker", parent_frame=frames[0], child_frame=frames[1])
    m.add_joint("D", z, m.ground, "rocker", at=(100, 0, 0))
    with pytest.raises(ld.errors.AssemblyError, match=r"stays open by [\d.]+ mm") as caught:
        ld.assemble(m.compile(cuts=["C"]))
    shown = float(re.search(r"stays open by ([\d.]+) mm", str(caught.value)).group(1))
    assert shown == pytest.approx(1e3 * caught.value.gap, rel=1e-2)  # SI; three digits are shown
    assert 20.0 < shown < 60.0  # components of a gap of at least 40 mm, the larger one being 1/sqrt(2) of it or more


def test_start_beyond_a_limit_is_reported_in_declared_units():
    m = ld.Mechanism("pendulum", units={"length": "mm", "angle": "deg"})
    m.add_body("rod", ld.Inertia.rod(1.0, (0, 0, 0), (100, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1), limits=(-10, 20)), m.ground, "rod", at=(0, 0, 0))
    system = m.compile()
    state = system.state({"A": 25})
    with pytest.raises(ld.LoopdynError, match=r"\[-10, 20\] deg, by 5 deg"):
        ld.simulate(system, state, (0, 0.1), events=[ld.events.Limits()], progress=False)


def test_rows_beyond_their_tolerance_are_reported_in_declared_units():
    from tests.unit.test_units_of_results import rods

    from loopdyn.analysis.contradictions import beyond_tolerance, check_open_rows

    pose = ld.assemble(rods(True), tolerance=(1e-3, 1e-2))
    tight = rods(True).tolerating(ld.results.Tolerated(pose.tolerated.rows, 1e-9, 1e-9))  # rad, m
    message = beyond_tolerance(check_open_rows(tight, pose), "this pose")
    assert re.search(r"is open by 0\.00\d+ mm at this pose, more than the tolerance 1e-06 mm", message)
