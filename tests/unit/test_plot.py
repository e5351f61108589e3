"""Plots of runs, pictures and films of mechanisms."""

import matplotlib as mpl
import numpy as np
import pytest
from tests import sweeps
from tests.marks import gallery_slow

import loopdyn as ld
from loopdyn.output.plot.film import write_film
from loopdyn.output.plot.runs import RunPlots

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import PolyCollection
from PIL import Image


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def run():
    return sweeps.four_bar()


def legends_are_beside_the_data(figure) -> bool:
    figure.canvas.draw()
    return all(ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1 for ax in figure.axes)


def test_coordinates_are_drawn_with_names_units_and_a_legend_beside(run):
    figure = RunPlots(run).coordinates()
    (ax,) = figure.axes
    assert [line.get_label() for line in ax.lines] == list(run.system.coordinates)
    for line, values in zip(ax.lines, run.data["q"].values.T, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("rad", "time in s")
    assert "four_bar" in figure.get_suptitle()
    assert legends_are_beside_the_data(figure)


def test_there_is_one_panel_per_unit():
    figure = RunPlots(sweeps.platform()).velocities()
    assert [ax.get_ylabel() for ax in figure.axes] == ["rad/s", "m/s"]
    assert legends_are_beside_the_data(figure)


def test_single_coordinates_are_chosen_by_name(run):
    (ax,) = RunPlots(run).accelerations("D", "A").axes
    assert [line.get_label() for line in ax.lines] == ["D", "A"]
    assert ax.get_ylabel() == "rad/s^2"
    with pytest.raises(ld.errors.ModelError, match="no label 'Q'"):
        RunPlots(run).coordinates("Q")


def test_undetermined_components_of_reactions_are_hatched(run):
    # Pins along z in a plane loop: only what acts in the plane is determined.
    figure = RunPlots(run).reactions("C")
    hatched = {
        c.get_label(): c.get_hatch() for ax in figure.axes for c in ax.collections if isinstance(c, PolyCollection)
    }
    assert hatched == {f"{name}, indeterminate": "////" for name in ("fz", "tx", "ty")}
    assert "rocker" in figure.get_suptitle()
    assert [ax.get_ylabel() for ax in figure.axes] == ["N", "N*m"]
    assert legends_are_beside_the_data(figure)
    with pytest.raises(ld.errors.ModelError, match="no joint 'X'"):
        RunPlots(run).reactions("X")


def test_energies_add_up_to_the_total(run):
    energies, balance = RunPlots(run).energies().axes
    kinetic, potential, total = (line.get_ydata() for line in energies.lines)
    np.testing.assert_allclose(total, kinetic + potential)
    np.testing.assert_array_equal(balance.lines[0].get_ydata(), run.data["energy_balance"].values)


def test_residuals_are_drawn_on_a_logarithmic_scale_their_largest_row(run):
    (ax,) = RunPlots(run).residuals().axes
    assert ax.get_yscale() == "log"
    assert [line.get_label() for line in ax.lines] == ["position", "velocity", "acceleration"]
    rows = run.data["residual_position"].expand_dims(row=3, axis=1) * np.array([1.0, -4.0, 2.0])
    by_row = sweeps.Sweep(run.system, run.data.assign(residual_position=rows), run.states)
    largest = RunPlots(by_row).residuals().axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(largest, 4.0 * run.data["residual_position"].values)


def test_the_phase_portrait_is_speed_over_coordinate(run):
    (ax,) = RunPlots(run).phase("A").axes
    t = run.data["time"].values
    np.testing.assert_allclose(ax.lines[0].get_xdata(), 0.9 * np.sin(np.pi * t), atol=1e-12)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 0.9 * np.pi * np.cos(np.pi * t), atol=1e-12)
    with pytest.raises(ld.errors.ModelError, match=r"S1\.w"):
        RunPlots(sweeps.platform()).phase("S1.w")


def test_active_coordinates_are_drawn_where_a_run_has_them(run):
    with pytest.raises(ld.LoopdynError, match=r"no 'partition'.*It has: q"):
        RunPlots(run).active()
    n = len(run.states)
    on = np.zeros((n, 3), bool)
    on[: n // 2, 0] = on[n // 2 :, 2] = True
    values = np.linspace([0.1, 0.2, 0.3], [1.0, 0.5, 0.0], n)
    speeds = {"speed": list(run.system.speeds)}
    data = run.data.assign_coords(speeds).assign(
        partition=(("time", "speed"), on), criterion=(("time", "speed"), values)
    )
    bars, criterion = RunPlots(sweeps.Sweep(run.system, data, run.states)).active().axes
    assert [label.get_text() for label in bars.get_yticklabels()] == list(run.system.speeds)
    np.testing.assert_array_equal([line.get_ydata() for line in criterion.lines], values.T)


def test_a_planar_mechanism_is_drawn_in_its_plane_with_equal_scales():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, q={"A": 0.3})
    ax = system.plot(state)
    assert ax.name == "rectilinear"
    assert ax.get_aspect() == 1.0
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x in m", "y in m")
    drawn = np.array([line.get_xydata()[0] for line in ax.lines if line.get_marker() == "o"])
    motion = ld.tree.body_motion(system, state)
    for j in system.joints.values():
        at = motion.position[j.child] + motion.rotation[j.child] @ j.M[0]
        assert np.abs(drawn - at[:2]).max(axis=1).min() < 1e-12, j.name
    assert {"A", "B", "C", "D", "crank", "coupler", "rocker"} <= {t.get_text() for t in ax.texts}


def test_a_spatial_mechanism_is_drawn_in_3d_with_one_scale():
    ax = ld.library.stewart_6ups().compile().plot(names=False)
    assert ax.name == "3d"
    ranges = np.array([np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim()), np.ptp(ax.get_zlim())])
    np.testing.assert_allclose(ranges / ranges[0], np.array(ax._box_aspect) / ax._box_aspect[0], rtol=1e-12)
    assert not ax.texts


@pytest.mark.parametrize("name", gallery_slow(ld.library.ALL))
def test_every_mechanism_of_the_library_can_be_drawn(name):
    ax = ld.library.ALL[name]().compile().plot()
    ax.figure.set_dpi(20)
    ax.figure.canvas.draw()


def test_a_film_has_a_frame_for_every_moment_at_the_asked_speed(run, tmp_path):
    path = write_film(run, tmp_path / "film.gif", fps=4, speed=1.0, dpi=30)
    with Image.open(path) as film:
        assert film.n_frames == 9  # 2 s, both ends
        film.seek(0)
        first = np.asarray(film.convert("RGB"))
        film.seek(3)
        assert (np.asarray(film.convert("RGB")) != first).any()


def test_mp4_and_png_are_written(run, tmp_path):
    film = write_film(run, tmp_path / "film.mp4", fps=2, dpi=30).read_bytes()
    assert film[4:8] == b"ftyp"
    with Image.open(write_film(run, tmp_path / "still.png", dpi=40)) as still:
        assert still.size == (300, 240)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("film.avi", {}, r"film.avi.*\.mp4"),
        ("film.gif", {"fps": 0}, "positive"),
        ("film.gif", {"speed": -1}, "positive"),
    ],
)
def test_wrong_wishes_for_a_film_are_named(run, tmp_path, name, options, words):
    with pytest.raises(ld.LoopdynError, match=words):
        write_film(run, tmp_path / name, **options)
