"""The notebook of the examples, executed without Jupyter, and what Jupyter would show."""

from __future__ import annotations

import ast
import html
import json
from pathlib import Path

import numpy as np
import pytest

import loopdyn as ld

NOTEBOOK = Path(__file__).parents[2] / "examples" / "four_bar.ipynb"


@pytest.fixture(scope="module")
def shown():
    """What each cell with code shows: its last line if that is an expression, as HTML if it has that."""
    names, found = {}, []
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        *lines, last = ast.parse("".join(cell["source"])).body
        if not isinstance(last, ast.Expr):
            lines, last = [*lines, last], None
        exec(compile(ast.Module(lines, []), str(NOTEBOOK), "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
            found.append(value._repr_html_())
    return found


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


def test_notebook_has_no_output_and_no_counts():
    """Saved without what it computed: it is small, and its changes can be read."""
    cells = [c for c in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in cells)


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
