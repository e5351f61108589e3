"""First page of a report: the last cycle apart from the start-up, the worst bearings, motors."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import loopdyn as ld
from loopdyn.output.first_page import Cycle, characteristic, cycle_of, plot_motor_loads, worst_bearings

mpl.use("Agg")
FOUR_BAR = Path(__file__).parents[2] / "examples" / "mechanisms" / "four_bar_mm.yaml"
MASS, RADIUS, SPEED, LAG = 2.0, 0.1, 10.0, 5.0  # kg, m, rad/s, 1/s


@pytest.fixture(scope="module")
def started():
    """An unbalanced rotor whose speed approaches 10 rad/s: its angle is 10 t + exp(-5 t) - 1."""
    m = ld.Mechanism("rotor")
    body = m.add_body("rotor", ld.Inertia(mass=MASS, com=(RADIUS, 0, 0), inertia={"xx": 0.01, "yy": 0.01, "zz": 0.01}))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, body, at=(0, 0, 0))
    m.add_driver("drive", "A", f"{SPEED}*t + exp(-{LAG}*t) - 1")
    system = m.compile()
    return ld.simulate(system, ld.assemble(system), (0, 2), t_eval=np.linspace(0, 2, 401), progress=False)


def force(t):
    """Force of the bearing on the rotor: mass times radius times the size of w^2 and of its angular acceleration."""
    w, rate = SPEED - LAG * np.exp(-LAG * t), LAG**2 * np.exp(-LAG * t)
    return MASS * RADIUS * np.hypot(w**2, rate)


def test_the_last_cycle_is_the_last_full_turn_of_the_input(started):
    t = started.path.t
    angle = SPEED * t + np.exp(-LAG * t) - 1
    begin = np.flatnonzero(angle[-1] - angle >= 2 * np.pi)[-1]
    assert cycle_of(started, "A").first == begin
    assert cycle_of(started, None) is None
    assert Cycle.last(np.linspace(0, 6.28, 100), 2 * np.pi) is None


def test_the_worst_bearing_has_its_force_in_the_start_up_and_in_the_last_cycle(started):
    cycle, force_ = cycle_of(started, "A"), force(started.path.t)
    ((name, before, last, rms),) = worst_bearings(started, cycle)
    # what is along the axis is zero and determinate; the driver's torque is no force
    assert name == "A"
    assert before == pytest.approx(force_[: cycle.first + 1].max(), rel=1e-6)
    assert last == pytest.approx(force_[cycle.first :].max(), rel=1e-6)
    square = force_[cycle.first :] ** 2  # outputs are evenly spaced; RMS is the mean over time
    assert rms == pytest.approx(np.sqrt(np.mean(0.5 * (square[1:] + square[:-1]))), rel=1e-6)
    ((_, whole, _),) = worst_bearings(started, None)
    assert whole == pytest.approx(force_.max(), rel=1e-6)


def test_the_characteristic_of_a_motor_is_its_law_in_declared_units():
    m = ld.load(FOUR_BAR)
    system = m.compile()
    speeds = np.array([0.0, 540.0, 1080.0])  # deg/s
    np.testing.assert_allclose(characteristic(system, "motor", speeds), [150.0, 75.0, 0.0], atol=1e-12)  # N mm, by hand
    m.forces["motor"] = m.forces["motor"].model_copy(update={"torque": "stall*cos(position)"})
    assert characteristic(m.compile(), "motor", speeds) is None


def test_operating_points_of_a_motor_without_inertia_before_it_lie_on_its_characteristic():
    run = ld.simulate(ld.load(FOUR_BAR).compile(), t_span=(0, 1.5), progress=False)
    cycle = cycle_of(run, "A")
    figure = plot_motor_loads(run, cycle)
    lines = {line.get_label(): np.array(line.get_data()) for line in figure.axes[0].lines}
    assert set(lines) == {"characteristic", "start-up", "last cycle"}
    speed, load = lines["last cycle"]
    np.testing.assert_allclose(load, 150.0 * (1.0 - speed / 1080.0), rtol=1e-9)
    assert "deg/s" in figure.axes[0].get_xlabel()
    assert "N*mm" in figure.axes[0].get_ylabel()


def test_a_report_begins_with_title_author_notes_units_motors_and_bearings(tmp_path):
    notes = "For the <workshop>.\n\nSecond paragraph."
    options = dict(title="Press & drive", author="A. Engineer", notes=notes, t_span=(0, 1.5), turn="A", progress=False)
    text = ld.report(ld.load(FOUR_BAR), tmp_path / "report.html", **options).read_text("utf-8")
    first, rest = text.split("</section>")
    for words in ("<h1>Press &amp; drive</h1>", "A. Engineer", "For the &lt;workshop&gt;.", "<p>Second paragraph.</p>",
                  "length mm", "Last cycle", "Loads of the motors", "Worst bearings", "largest in N"):  # fmt: skip
        assert words in first
    assert len(re.findall("<tr>", first)) == 5  # heads and four bearings
    assert "<h2>Mechanism</h2>" in rest


def test_the_rms_of_the_first_page_is_the_time_mean_that_the_table_of_bearings_has():
    """Outputs at uneven times: a plain mean would weigh the dense ones."""
    system = ld.library.four_bar().compile()
    times = np.concatenate([np.linspace(0.0, 0.1, 101), np.linspace(0.2, 1.0, 9)])
    run = ld.simulate(system, t_span=(0, 1), t_eval=times, progress=False)
    expected = {joint: np.linalg.norm(run.bearings().load(joint)[0], axis=1) for joint in "ABCD"}
    for name, _, found in worst_bearings(run, None):
        y = expected[name.split()[0]] ** 2
        mean = float(np.sum(0.5 * (y[1:] + y[:-1]) * np.diff(times))) / (times[-1] - times[0])
        assert found == pytest.approx(np.sqrt(mean), rel=1e-12)  # rounding of a hundred terms
