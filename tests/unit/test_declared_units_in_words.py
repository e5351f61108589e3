"""A model in mm, deg, g and N*mm: no picture, page, table, text or command shows a number in m, rad, kg or N*m.

Energies are in J, powers in W and momenta in SI units in every model (`run.data` says so), poles in rad/s and 1/s.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import matplotlib
import matplotlib.text
import numpy as np
import pytest
from matplotlib import pyplot as plt
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.analysis.comparing import compare
from loopdyn.app.cli import app
from loopdyn.output.mode_animation import ModeFilm
from loopdyn.output.plot.film import write_film
from loopdyn.output.viewer.scene import describe

FILE = "examples/mechanisms/four_bar_mm.yaml"
# A unit of SI that mm, deg, g and N*mm stand for here, as a word of its own: "3 m", "in rad", "N m", "rad/s^2".
SI = re.compile(r"(?<![\w*/^.=-])(rad|rad/s\^?2?|m|m/s\^?2?|N[ *]m|kg)(?![\w*/^'.=-])")
SHOWN_IN_SI = (
    "units of the file",
    "pole",
    "real part",
    "imaginary part",
    "angular frequency",
    "natural units",
    "rad, or relative to",
)
POINT = (30.0, 26.0, 0.0)


def leaks(text: str) -> list[str]:
    return [line for line in text.splitlines() if SI.search(line) and not any(x in line for x in SHOWN_IN_SI)]


def words(figure) -> str:
    return "\n".join(t.get_text() for t in figure.findobj(matplotlib.text.Text))


@pytest.fixture(scope="module")
def known():
    matplotlib.use("Agg")
    m = ld.load(FILE)
    m.add_point("P", POINT, on="coupler")
    m.add_measure("lift", "y(P)")
    system = m.compile()
    start = ld.assemble(system)
    return m, system, start, ld.simulate(system, start, (0, 0.2), progress=False)


def test_the_pattern_finds_units_of_si():
    for text in ("3 m", "x in m", "by 0.1 rad", "N and N m", "N*m", "2 kg", "rad/s^2 and m/s^2", "(moment/0.1 m)^2"):
        assert leaks(text), text
    assert not leaks("3 mm, 0.1 deg/s, N*mm, kg*m^2/s, 5 J\nm.add_joint(...)\nfamily")


def test_results_print_declared_units_alone(known):
    m, system, start, run = known
    linear = ld.linearize(system, start, inputs=["motor"], outputs=["A", "C.fx", "lift"])
    there = ld.kinematics(system)
    found = [
        m, system, start, run, ld.mobility(system), ld.reactions(system), run.bearings(), system.topology,
        ld.drive(system, "A", (0, 90, 7)), ld.inverse_dynamics(system, {"A": "90*t"}, t_span=(0, 1)),
        ld.inverse_dynamics(system, {"A": "90*t"}, [0, 1], motors=["A", "D"]), compare(system),
        ld.equilibrium(m.with_(stall=0).compile()), ld.equilibrium(m.with_(stall=0).compile(), search={"A": (-90, 90)}),
        linear, linear.modes(), ld.analyses.branches(system, {"A": 30}), there, there.singularity("A"),
        ld.inverse_kinematics(system, {"A": 30}), ld.analyses.coordinates(system), system.labels,
        ld.workspace(system, ("coupler", POINT), inputs="A", over=(0, 90, 4)), ld.sensitivity(system, "D", "crank"),
        run.counterweight("crank", 10, (-10, 0, 0)), ld.analyses.measures(system),
        ld.analyses.variants(m, [{"crank": 31}], (0, 0.01), progress=False),
        ld.study(m, {"crank": [30, 31]}, {"top": "peak(lift)"}, over=(0, 0.01), progress=False),
    ]  # fmt: skip
    for thing in found:
        tables = [getattr(thing, name)() for name in ("table", "summary") if hasattr(thing, name)]
        texts = [str(thing), *(table.to_string() for table in tables)]
        if hasattr(thing, "to_dataframe"):
            texts.append("\n".join(map(str, thing.to_dataframe().columns)))
        if hasattr(thing, "_repr_html_") and not isinstance(thing, ld.Mechanism):
            texts.append(thing._repr_html_())
        assert not leaks("\n".join(texts)), type(thing)


def test_messages_of_loops_that_contradict_each_other_are_in_declared_units():
    m = ld.Mechanism("tilted", units={"length": "mm", "angle": "deg", "mass": "g", "torque": "N*mm"})
    A, B, C, D = (0, 0, 0), (20, 30, 0), (80, 50, 0), (70, 0, 0)
    for name, start, end in (("crank", A, B), ("coupler", B, C), ("rocker", C, D)):
        m.add_body(name, ld.Inertia.rod(mass=10, start=start, end=end))
    axis = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", axis, m.ground, "crank", at=A)
    m.add_joint("B", axis, "crank", "coupler", at=B)
    m.add_joint("C", axis, "coupler", "rocker", at=C)
    tilt = ld.joints.Rotation(axis=(1, 0, 0), angle=0.5)
    frames = [ld.Frame(position=D), ld.Frame(position=(70, 0, 0.5), rotation=tilt)]
    m.add_joint("D", axis, m.ground, "rocker", parent_frame=frames[0], child_frame=frames[1])
    with pytest.raises(ld.errors.AssemblyError) as caught:
        ld.assemble(m.compile())
    text = str(caught.value)
    assert not leaks(text)
    assert re.search(r"\d (mm|deg)\b", text)


def test_plots_have_declared_units_alone(known):
    _, system, start, run = known
    linear = ld.linearize(system, start, inputs=["motor"], outputs=["A", "C.fx"])
    drive = ld.drive(system, "A", (0, 90, 7))
    p = run.plot
    figures = (
        lambda: system.plot().figure, p, p.coordinates, p.velocities, p.accelerations, p.measures, lambda: p.phase("A"),
        lambda: p.reactions("C"), lambda: p.reactions("C", "world"), lambda: p.polar("C"), p.shaking, p.energies,
        p.residuals, drive.plot, lambda: drive.plot_point("coupler", POINT), linear.plot,
        ld.inverse_dynamics(system, {"A": "90*t"}, t_span=(0, 1)).plot,
        ld.workspace(system, ("coupler", POINT), inputs="A", over=(0, 90, 4)).plot,
        ld.sensitivity(system, "D", "crank").plot, ld.analyses.coordinates(system).sweep("A").plot,
    )  # fmt: skip
    for n, draw in enumerate(figures):
        figure = draw()
        assert not leaks(words(figure)), n
        assert words(figure).strip()
        plt.close(figure)


def test_pictures_and_films_are_drawn_in_the_declared_unit(known, monkeypatch):
    _, system, start, run = known
    # pins of the drawing: A at the origin, D at (100, 0) mm, B at 30 mm and 60 degrees
    ax = system.plot(start)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x in mm", "y in mm")
    points = np.array([line.get_xydata()[0] for line in ax.lines if len(line.get_xydata()) == 1])
    for x, y in ((0, 0), (100, 0), (15, 15 * np.sqrt(3))):
        assert np.hypot(*(points - (x, y)).T).min() < 1e-3
    assert ax.get_xlim()[0] < 0 < 100 < ax.get_xlim()[1] < 200
    seen = []
    monkeypatch.setattr("loopdyn.output.plot.film.write_figure", lambda path, figure, dpi: seen.append(figure.axes[0]))
    write_film(run, "film.png")
    assert seen[0].get_xlabel() == "x in mm"
    assert 100 < np.ptp(seen[0].get_xlim()) < 300
    plt.close("all")


def test_a_spatial_picture_is_drawn_in_the_declared_unit():
    m = ld.Mechanism("ball", units={"length": "mm"})
    m.add_body("rod", ld.Inertia.rod(mass=1, start=(0, 0, 0), end=(30, 40, 120), radius=2))
    m.add_joint("S", ld.Spherical(), m.ground, "rod", at=(0, 0, 0))
    ax = m.compile().plot()
    assert {ax.get_xlabel(), ax.get_ylabel(), ax.get_zlabel()} == {"x in mm", "y in mm", "z in mm"}
    assert ax.get_zlim()[0] < 0 < 120 < ax.get_zlim()[1] < 400
    plt.close("all")


def test_pages_have_declared_units_and_read_points_in_them(known):
    _, system, _, run = known
    scene = describe(run, traces=[("coupler", POINT)])
    assert scene["units"] == {
        "length": {"unit": "mm", "si": 1e-3}, "mass": {"unit": "g", "si": 1e-3},
        "force": {"unit": "N", "si": 1.0}, "torque": {"unit": "N*mm", "si": 1e-3},
    }  # fmt: skip
    body = system.bodies.index("coupler")
    x, R = system.reference_poses[body]
    np.testing.assert_allclose(R @ scene["traces"][0]["point"] + x, np.array(POINT) / 1000, atol=1e-12)  # SI inside
    assert not leaks("\n".join(f"{g['title']} ({g['unit']})" for g in scene["quantities"]))
    script = Path(ld.__file__).parent / "output/viewer/page.js"
    assert not re.search(r"\"(N|N m|m|kg|rad)\"|} m squares", script.read_text(encoding="utf-8"))


def test_arrows_are_pale_for_indeterminate_moments(known):
    # the page finds the marks of a moment under the unit that it shows: with another one it found none
    scene = describe(known[3])
    keys = {(g["key"], g["unit"]) for g in scene["quantities"] if "open" in g}
    assert {(f"wrench:{x}", scene["units"][d]["unit"]) for x in "ABCD" for d in ("force", "torque")} == keys


def test_the_film_of_a_mode_has_its_angles_in_degrees(known):
    _, system, start, _ = known
    film = ModeFilm(system, start, np.array([1.0, 0.0, 0.0], complex), 0.2)
    R = film.poses()[1][:, system.bodies.index("crank")]  # the body's axes are those of the world at A = 0
    angle = np.degrees(np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    np.testing.assert_allclose(film.data["q"].sel(coordinate="A"), angle, atol=1e-9)
    assert np.ptp(angle) > 5


def test_what_reactions_are_given_by_label_is_in_declared_units():
    def door(units: dict[str, str], L: float, M: float) -> ld.System:
        m = ld.Mechanism("door", gravity=(0, 0, -9.81), units=units)
        m.add_body("leaf", ld.Inertia.box(20 * M, (0.4 * L, 0, 1.0 * L), (0.8 * L, 0.04 * L, 2.0 * L)))
        for name, z in (("low", 0.3), ("high", 1.7)):
            m.add_joint(name, ld.Revolute(axis=(0, 0, 1)), m.ground, "leaf", at=(0, 0, z * L))
        return m.compile()

    si = door({}, 1.0, 1.0)
    mm = door({"length": "mm", "angle": "deg", "mass": "g", "torque": "N*mm"}, 1e3, 1e3)
    soft = {"low": (1e-3,) * 3 + (1e-8,) * 3, "high": (2e-3,) * 3 + (3e-8,) * 3}  # rad/(N m), m/N
    factor = np.array([np.degrees(1.0) / 1e3] * 3 + [1e3] * 3)  # deg/(N mm), mm/N
    for one, other in (
        ({"compliance": soft}, {"compliance": {k: tuple(factor * x) for k, x in soft.items()}}),
        ({"length": 0.7}, {"length": 700.0}),
    ):
        a, b = ld.reactions(si, **one), ld.reactions(mm, **other)
        assert not a.unique.all()
        np.testing.assert_allclose(b.wrench, a.wrench, atol=1e-8 * np.abs(a.wrench).max())
    assert "700 mm" in b.norm
    assert "0.7 m)" in a.norm
    with pytest.raises(ld.LoopdynError, match="neither one number nor six"):
        ld.reactions(si, compliance={"low": (1.0, 2.0)})


def test_the_comparison_of_formulations_is_in_declared_units(known):
    _, system, start, _ = known
    found, at = compare(system, start), ld.reactions(system, start)
    data = found.as_data()
    assert data["units"] == {"accelerations": "deg/s^2", "reactions": "N and N*mm"}
    assert data["formulations"]["graph"]["reactions"]["C"]["fx"] == pytest.approx(at["C.fx"])
    assert data["formulations"]["graph"]["reactions"]["C"]["mx"] == pytest.approx(at["C.mx"], abs=1e-9)
    a = np.degrees(ld.accelerations(system, start))
    assert data["formulations"]["graph"]["accelerations"]["A"] == pytest.approx(a[0])
    assert dataclasses.replace(found).acceleration_difference < 1e-9


COMMANDS = (
    ["inspect", FILE], ["compare", FILE], ["drive", FILE, "A", "--from", "0", "--to", "90", "--points", "5"],
    ["run", FILE, "-t", "0.02"], ["inverse", FILE, "--motion", "A=90*t", "-t", "0.5"],
    ["equilibrium", FILE, "--set", "stall=0", "--search", "A=-90:90"],
    ["modes", FILE, "--at-start", "--input", "motor"],
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda x: " ".join(x[::2]))
def test_commands_print_declared_units_alone(command):
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    assert not leaks(found.output)


def test_the_last_state_and_loads_of_commands_are_in_declared_units():
    found = CliRunner().invoke(app, ["equilibrium", FILE, "--set", "stall=0", "--search", "A=-90:90", "--json"])
    rest = json.loads(found.output)["equilibria"]
    system = ld.load(FILE).with_(stall=0).compile()
    for given, e in zip(rest, ld.equilibrium(system, search={"A": (-90, 90)}), strict=True):
        assert given["q"]["A"] == pytest.approx(e["A"])
        assert given["reactions"]["C"]["fx"] == pytest.approx(e.reactions["C.fx"])
