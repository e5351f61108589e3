"""Pictures can be read without colour: curves with a name differ in line style, marker or width."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from tests.docs.without_colour import look_alike, watch

import loopdyn as ld

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run():
    system = ld.library.slider_crank().compile()
    return ld.simulate(system, ld.assemble(system, v={"A": 6.0}), (0, 0.5), progress=False)


@pytest.mark.parametrize("kind", ["coordinates", "velocities", "accelerations", "energies", "residuals"])
def test_curves_of_a_run_differ_without_colour(run, kind):
    figure = getattr(run.plot, kind)()
    assert any(len(ax.get_lines()) > 1 for ax in figure.axes)
    assert look_alike(figure) == []
    plt.close(figure)


def test_curves_of_reactions_and_shaking_forces_differ_without_colour(run):
    for figure in (run.plot.reactions("B"), run.plot.shaking(), run.plot.polar("B")):
        assert look_alike(figure) == []
        plt.close(figure)


def test_curves_of_a_drive_differ_without_colour():
    turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 2 * np.pi, 61))
    figure = turn.plot()
    assert look_alike(figure) == []
    plt.close(figure)


def test_curves_of_the_same_look_are_noticed():
    figure, ax = plt.subplots()
    ax.plot([0, 1], [0, 1], color="red", label="a")
    ax.plot([0, 1], [1, 0], color="blue", label="b")
    assert len(look_alike(figure)) == 1
    plt.close(figure)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["docs/pictures.py", "docs/howto/pictures.py"])
def test_pictures_of_pages_can_be_read_without_colour(script, tmp_path, monkeypatch):
    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", matplotlib.figure.Figure.savefig)  # put back afterwards
    found = watch()
    runpy.run_path(str(ROOT / script))["main"](tmp_path)
    assert found == []


THEORY = [pytest.param(p, id=p.stem) for p in sorted((ROOT / "docs" / "theory").glob("*_picture*.py"))]


@pytest.mark.slow
@pytest.mark.parametrize("script", THEORY)
def test_pictures_of_the_theory_can_be_read_without_colour(script, tmp_path):
    copy = tmp_path / script.name
    copy.write_text(script.read_text())
    code = (
        "import runpy; from tests.docs.without_colour import watch; found = watch(); "
        f"runpy.run_path({str(copy)!r}, run_name='__main__'); assert not found, found"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "MPLBACKEND": "Agg"}
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
