"""The notebooks of the examples, executed without Jupyter, and what Jupyter would show."""

from __future__ import annotations

import ast
import html
import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import loopdyn as ld

matplotlib.use("Agg")

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"
NAMES = ("first_mechanism", "reactions_and_motor", "parallel_robot", "suspension", "tolerances")


def cells(name: str) -> list[dict]:
    """Cells with code."""
    every = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))["cells"]
    return [cell for cell in every if cell["cell_type"] == "code"]


def executed(name: str) -> list:
    """What each cell shows: the value of its last line, if that is an expression."""
    names, found = {}, []
    for cell in cells(name):
        *lines, last = ast.parse("".join(cell["source"])).body
        if not isinstance(last, ast.Expr):
            lines, last = [*lines, last], None
        exec(compile(ast.Module(lines, []), name, "exec"), names)
        if last is not None:
            found.append(eval(compile(ast.Expression(last.value), name, "eval"), names))
    return found


@pytest.fixture(scope="module")
def shown():
    """What the first notebook shows, as HTML."""
    return [value._repr_html_() for value in executed("first_mechanism")]


def test_the_mechanism_is_a_page_in_the_notebook(shown):
    view = html.unescape(shown[0])
    assert shown[0].startswith("<iframe srcdoc=")
    assert "<title>four_bar</title>" in view
    assert '"name":"coupler"' in view


def test_results_are_shown_in_words_and_tables(shown):
    _, mobility, reactions, turn, run, energy = shown
    assert "four_bar: 1 degree of freedom, 3 redundant constraints" in mobility  # Gruebler: 6*3 - 5*4 + 3 = 1
    assert reactions.startswith("<table><tr><th>joint</th><th>mx (N*m)</th>")
    assert [f"<th>{joint}</th>" in reactions for joint in "ABCD"] == [True] * 4
    assert turn.startswith("<pre>")
    assert "four_bar: finished" in run
    assert "xarray" in energy


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_have_no_output_and_no_counts(name):
    """Saved without what was computed: they are small, and their changes can be read."""
    assert cells(name)
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in cells(name))


def test_there_are_five_notebooks():
    assert {file.stem for file in NOTEBOOKS.glob("*.ipynb")} == set(NAMES)


def test_the_motor_of_a_slider_crank_at_constant_speed_does_no_work_over_a_turn():
    mobility, loads, bearings, (work, peak), reactions, speeds = executed("reactions_and_motor")
    assert mobility.dof == 1
    assert abs(work) < 1e-10 * peak  # rounding; the trapezoidal rule is exact for periodic motions
    assert "A load" in str(loads)
    assert "B radial force" in str(bearings)
    assert reactions._repr_html_().startswith("<table>")
    assert speeds["smallest"] < 7200 < speeds["largest"]  # about its speed without load


def test_the_angles_of_the_five_bar_are_those_of_the_triangle():
    mobility, angles, (count, by_hand), jacobian, area, line = executed("parallel_robot")
    assert mobility.dof == 2
    assert count == 4
    assert angles["A"] == pytest.approx(by_hand, abs=1e-4)  # digits shown
    # speed of C along a forearm comes from its own arm alone: a_i sin(angle between arm and forearm)
    arm, tip = np.radians(90 + by_hand), np.array([120.0, 260.0])
    elbow = 150 * np.array([np.cos(arm), np.sin(arm)])
    along = (tip - elbow) / 200
    across = 150 * np.array([-np.sin(arm), np.cos(arm)])
    assert along @ jacobian.values[:2] == pytest.approx([np.radians(1) * along @ across, 0.0], abs=1e-5)  # digits
    assert area.data["reached"].sum() > 60
    assert line.values[5] == pytest.approx([line.values[5, 0], -line.values[5, 0]])  # symmetric at x = 100 mm


def test_the_tyre_carries_the_weight_and_a_run_oscillates_with_the_frequency_of_its_mode():
    (load, frequencies), ride, (measured, mode) = (value for value in executed("suspension") if value is not None)
    assert load == pytest.approx((400 + 4 + 2.5 + 32) * 9.81, rel=1e-9)
    assert ride[1] == pytest.approx(frequencies[0], abs=1e-4)  # digits shown
    assert sorted(ride) == ride  # a stiffer spring
    assert measured == pytest.approx(mode, rel=0.01)  # 10 mm are not small


def test_tolerances_of_a_slider_crank_are_those_of_its_closed_form():
    found, (x, slopes, deviation), parts, table = executed("tolerances")
    assert found.nominal["x"] == pytest.approx(x, abs=1e-6)  # digits shown
    for name, slope in slopes.items():
        assert parts.set_index("dimension").loc[name, "slope"] == pytest.approx(slope, abs=1e-6)
    assert found.summary.loc["x", "linear_deviation"] == pytest.approx(deviation, abs=1e-6)
    assert found.summary.loc["x", "deviation"] == pytest.approx(
        deviation, rel=0.15
    )  # of 300 samples: 4 % is one deviation
    assert list(table["status"]) == ["finished"] * 6


def test_table_of_reactions_has_declared_units_marks_and_no_markup_of_names():
    """A moment of 2 N m is 2000 N mm; a name is no markup."""
    wrench = np.array([[0.0, 0.0, 2.0, 3.0, 0.0, 0.0]])
    unique = np.array([[False, False, True, True, True, False]])
    units = ld.Mechanism(units={"torque": "N*mm"}).units
    found = ld.results.Reactions(("<b>",), wrench, unique, "least", 0.0, {}, units)
    assert "<th>mz (N*mm)</th>" in found._repr_html_()
    row = "<th>&lt;b&gt;</th><td>0?</td><td>0?</td><td>2000 </td><td>3 </td><td>0 </td><td>0?</td>"
    assert row in found._repr_html_()
    assert "statically indeterminate; distribution: least" in found._repr_html_()


def test_a_mechanism_that_cannot_be_drawn_says_why():
    m = ld.Mechanism("half <made>")
    m.add_body("rod", ld.Inertia(mass=1.0))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rood", at=(0, 0, 0))
    shown = m._repr_html_()
    assert shown.startswith("<pre>half &lt;made&gt;: 1 bodies, 1 joints\nIt cannot be drawn: ")
    assert "there is no body 'rood'" in shown
