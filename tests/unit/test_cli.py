"""`inspect` and `compare`: what they print, as text and JSON, and their exit codes."""

from __future__ import annotations

import inspect
import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import get_args

import pytest
from tests.marks import gallery_slow
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.analysis.comparing import every_formulation
from loopdyn.app.bench import PROBLEMS
from loopdyn.app.cli import app, models, options
from loopdyn.formulations import registry as formulations
from loopdyn.integrators import registry as integrators
from loopdyn.integrators.drift import DRIFTS
from loopdyn.interchange.loading import READ

FOLDER = Path(__file__).parents[2] / "examples" / "mechanisms"
MODELS = sorted(p.stem for p in FOLDER.glob("*.yaml"))


def run(*arguments: object):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def unclosable(tmp_path: Path) -> Path:
    """A four-bar whose coupler is too short: its end cannot reach the rocker."""
    text = (FOLDER / "four_bar.yaml").read_text()
    m = ld.load(FOLDER / "four_bar.yaml")
    r = m.resolver()
    cx, cy, _ = r.vector(m.joints["C"].at, "length", "", ())
    file = tmp_path / "short.yaml"
    short = m.model_copy(deep=True)
    frames = {
        "parent_frame": ld.Frame(position=(0.2, 0.3, 0)),
        "child_frame": ld.Frame(position=(cx, cy, 0)),
        "at": None,
    }
    short.joints["C"] = m.joints["C"].model_copy(update=frames)
    short.save(file)
    assert file.read_text() != text
    return file


# ------------------------------------------------------------------------------------------------------- inspect


def test_inspect_prints_topology_mobility_redundancy_and_uniqueness_in_one_screen():
    result = run("inspect", FOLDER / "four_bar.yaml")
    assert result.exit_code == 0
    for text in (
        "cut: C, revolute",
        "1 degree of freedom, 3 redundant constraints",
        "verdict: overconstrained",
        "dependent constraints, statically indeterminate reactions: A, B, C, D (mx, my, fz)",
        "8 of 20 components are statically determinate",
    ):
        assert text in result.output
    assert len(result.output.splitlines()) <= 30


@pytest.mark.parametrize("name", gallery_slow(MODELS))
def test_inspect_works_for_every_example(name):
    result = run("inspect", FOLDER / f"{name}.yaml")
    assert result.exit_code == 0, result.output
    assert "verdict:" in result.output
    loops = len(ld.load(FOLDER / f"{name}.yaml").compile().topology.loops)
    assert len(result.output.splitlines()) <= max(60, 6 * loops)


def test_inspect_json_holds_the_same():
    result = run("inspect", FOLDER / "rssr.yaml", "--json")
    assert result.exit_code == 0
    data = json.loads(result.output)
    assert data["assembled"] is True
    assert data["mobility"]["dof"] == 2
    assert data["mobility"]["idle"] == ["coupler"]
    assert data["mobility"]["redundant"] == 0
    assert data["mobility"]["unique"]["B"] == {"fx": True, "fy": True, "fz": True}
    assert data["cut_joints"]


def test_inspect_json_knows_no_infinity():
    """A tree has no rows: the gap of its rank is infinite, which JSON does not know."""
    result = run("inspect", FOLDER / "pendulum.yaml", "--json")
    assert result.exit_code == 0
    json.loads(result.output, parse_constant=lambda c: pytest.fail(f"{c} in JSON"))


def test_inspect_of_what_cannot_be_closed_shows_the_topology_and_says_so(unclosable):
    result = run("inspect", unclosable)
    assert result.exit_code == 1
    assert "crank  (A, revolute)" in result.stdout
    assert "constraint rows   nc = 5" in result.stdout
    assert "cannot be closed" in result.stderr
    assert "The topology is valid" in result.stderr
    assert f"loopdyn inspect {unclosable}" in result.stderr
    assert "Traceback" not in result.output


def test_inspect_json_of_what_cannot_be_closed_says_so(unclosable):
    result = run("inspect", unclosable, "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["assembled"] is False
    assert "cannot be closed" in data["error"]
    assert data["nc"] == 5


# ------------------------------------------------------------------------------------------------------- compare


def test_compare_prints_accelerations_and_reactions_of_all_formulations():
    result = run("compare", FOLDER / "four_bar.yaml")
    assert result.exit_code == 0
    for name in every_formulation():
        assert name in result.output
    # theta1'' at the start of the reference, and the force at A0 (tests/data/reference/four_bar)
    line = next(x for x in result.output.splitlines() if x.startswith("A "))
    assert line.split()[1:] == ["-57.584"] * len(every_formulation())
    line = next(x for x in result.output.splitlines() if x.startswith("A.fx"))
    assert line.split()[1:] == ["-10.872"] * len(every_formulation())
    assert "largest relative difference" in result.output
    assert "microseconds" in result.output


@pytest.mark.parametrize("name", ["slider_crank", "bricard_slender", "rssr", "flyball", "four_bar_mm"])
def test_compare_json_holds_numbers_that_agree(name):
    result = run("compare", FOLDER / f"{name}.yaml", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    assert data["acceleration_difference"] < 1e-8
    assert data["reaction_difference"] < 1e-8
    for one in data["formulations"].values():
        assert one["seconds"] > 0
        assert set(one) == {"accelerations", "reactions", "seconds", "approximate"}


def test_compare_of_what_cannot_be_closed_fails_plainly(unclosable):
    result = run("compare", unclosable)
    assert result.exit_code == 1
    assert "cannot be closed" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["inspect", "compare"])
def test_missing_file_fails_and_wrong_use_is_code_2(command, tmp_path):
    assert run(command, tmp_path / "none.yaml").exit_code == 1
    assert run(command).exit_code == 2
    help_text = run(command, "--help")
    assert help_text.exit_code == 0
    assert "--json" in help_text.output


# ------------------------------------------------------------------------------------------------ ld.reactions


def test_public_reactions_find_the_accelerations_themselves():
    system = ld.library.four_bar().compile()
    state = ld.assemble(system, v={"A": 8.0})
    r = ld.reactions(system, state)
    # first row of the reference: force on the crank at A0
    assert r["A"]["fx"] == pytest.approx(-10.872318434346, rel=1e-10)
    assert r["A"]["fy"] == pytest.approx(-17.356459236205, rel=1e-10)
    given = ld.reactions(system, state, ld.accelerations(system, state, "oracle"))
    assert given["A"]["fx"] == pytest.approx(r["A"]["fx"], rel=1e-10)


# ----------------------------------------------------------------------------------------------------------- run


def test_run_prints_a_closing_table():
    result = run("run", FOLDER / "four_bar.yaml", "-t", "0.5")
    assert result.exit_code == 0, result.output
    for text in ("finished: reached t = 0.5 s", "steps", "energy error", "largest residual", "formulation"):
        assert text in result.output


def test_run_writes_its_results_and_reports_as_json(tmp_path):
    files = tmp_path / "run.nc", tmp_path / "run.csv"
    command = ("run", FOLDER / "four_bar.yaml", "-t", "0.5", "--every", "0.025", "-o", files[0], "--csv", files[1])
    result = run(*command, "--rtol", "1e-10", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["status"] == "finished"
    assert data["outputs"] == 21
    assert data["energy_error"] < 1e-8
    # theta1(0.5) of the reference, turned from the reference pose at 1 rad
    rows = (Path(__file__).parents[1] / "data/reference/four_bar/reference.csv").read_text().splitlines()
    expected = next(float(row.split(",")[1]) for row in rows[1:] if float(row.split(",")[0]) == 0.5)
    assert data["final"]["q"]["A"] == pytest.approx(expected - 1.0, abs=1e-7)
    again = ld.load_run(files[0])
    assert again.path.q[-1, 0] == data["final"]["q"]["A"]
    assert files[1].read_text().startswith("time,q A,")
    assert len(files[1].read_text().splitlines()) == 22


def test_run_with_a_fixed_step_and_another_formulation():
    result = run("run", FOLDER / "pendulum.yaml", "-t", "0.2", "-f", "oracle", "-i", "rk4", "--step", "0.01", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["steps"] == 20


def test_run_takes_an_absolute_tolerance():
    """The one given is used: at a tolerance of 1 rad all steps are as long as they may be, a tenth of the span."""
    result = run("run", FOLDER / "pendulum.yaml", "-t", "0.2", "--atol", "1")
    assert result.exit_code == 0, result.output
    assert "rtol 1e-08, atol 1, drift" in result.output
    assert "10 (0 rejected)" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-i", "rk4"), "needs the size of a step"),
        (("-i", "stif"), "is not one of 'auto', 'dop853'"),
        (("-i", "dop853", "--step", "0.1"), "chooses its steps itself"),
        (("-f", "relativ"), "is not one of 'auto', 'graph'"),
        (("--drift", "projektion"), "is not one of 'projection'"),
        (("--rtol", "0"), "rtol is 0"),
        (("--atol", "-1"), "atol is -1"),
        (("-t", "-1"), "Give positive numbers"),
        (("--every", "0"), "Give positive numbers"),
    ],
)
def test_run_refuses_wrong_options_in_words(arguments, words):
    result = run("run", FOLDER / "pendulum.yaml", *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_every_output_of_run_is_written(tmp_path):
    import openpyxl

    files = {"-o": "run.nc", "--csv": "run.csv", "--xlsx": "run.xlsx", "--plot": "run.pdf", "--html": "page.html"}
    options = [x for option, name in files.items() for x in (option, tmp_path / name)]
    result = run("run", FOLDER / "four_bar.yaml", "-t", "0.2", "--every", "0.02", *options)
    assert result.exit_code == 0, result.output
    for name in files.values():
        assert (tmp_path / name).stat().st_size > 1000
        assert str(tmp_path / name) in result.output
    assert (tmp_path / "run.pdf").read_bytes().startswith(b"%PDF")
    assert "<html" in (tmp_path / "page.html").read_text()[:200]
    book = openpyxl.load_workbook(tmp_path / "run.xlsx")
    assert book.sheetnames == ["summary", "bearings", "events", "run"]
    rows = {row[0]: row[1:] for row in book["summary"].iter_rows(values_only=True)}
    assert rows["quantity"] == ("unit", "min", "t_min", "max", "t_max", "rms")
    largest = ld.load_run(tmp_path / "run.nc").data["wrench"].sel(joint="A", component="fx").values.max()
    assert rows["A.fx"][3] == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("name", ["run.png", "run.svg"])
def test_run_writes_an_overview_as_a_picture(tmp_path, name):
    result = run("run", FOLDER / "pendulum.yaml", "-t", "0.2", "--plot", tmp_path / name)
    assert result.exit_code == 0, result.output
    assert (tmp_path / name).stat().st_size > 5000


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("-o", "run.txt", "must end in .nc"),
        ("--plot", "run.doc", "must end in .png or .svg or .pdf"),
        ("--xlsx", "run.csv", "must end in .xlsx"),
        ("--html", "page.txt", "must end in .html"),
        ("--csv", "none/run.csv", "there is no folder"),
    ],
)
def test_files_that_cannot_be_written_are_refused_before_the_run(tmp_path, option, name, words):
    result = run("run", FOLDER / "pendulum.yaml", "-t", "1e9", option, tmp_path / name)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())


def test_run_that_fails_says_why_and_exits_with_1(tmp_path):
    m = ld.load(FOLDER / "pendulum.yaml")
    m.add_motor("drive", "A", torque="sqrt(0.3 - t)")
    m.save(tmp_path / "bad.yaml")
    result = run("run", tmp_path / "bad.yaml", "-t", "1", "--json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["status"] == "failed"
    assert "not a finite number" in data["message"]
    assert data["reached"] == pytest.approx(0.3, abs=0.01)


# -------------------------------------------------------------------------------------- statics and motor loads


def test_equilibrium_searches_in_the_units_of_the_file(tmp_path):
    """A lever of 2 kg and 1 m: it hangs at -90 deg and stands at 90 deg, stiffness +-m g l/2."""
    m = ld.Mechanism("lever", gravity=(0, -10, 0), units={"length": "mm", "angle": "deg"})
    m.add_body("rod", ld.Inertia.rod(mass=2, start=(0, 0, 0), end=(1000, 0, 0)))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    file = tmp_path / "lever.yaml"
    m.save(file)
    result = run("equilibrium", file, "--search", "A=-170:170")
    assert result.exit_code == 0
    assert "stable    A = -90 deg, stiffness 0.174533 N*m/deg" in result.output
    assert "unstable  A = 90 deg, stiffness -0.174533 N*m/deg" in result.output
    data = json.loads(run("equilibrium", file, "--json").output)
    assert data["equilibria"][0]["q"]["A"] == pytest.approx(-90.0)
    assert data["equilibria"][0]["reactions"]["A"]["fy"] == pytest.approx(20.0)
    text = run("equilibrium", file)
    assert "stable equilibrium" in text.output
    assert "joint" in text.output  # reactions


def test_inverse_prints_tables_and_writes_files(tmp_path):
    csv, plot = tmp_path / "loads.csv", tmp_path / "loads.png"
    result = run("inverse", FOLDER / "four_bar_mm.yaml", "--motion", "A=360*t", "-t", 1, "--csv", csv, "--plot", plot)
    assert result.exit_code == 0
    for text in ("fully actuated", "replaced by these loads: motor", "A load", "N*m", "B radial force"):
        assert text in result.output
    lines = csv.read_text().splitlines()
    assert lines[0] == "time in s,A load in N*mm,A speed in deg/s,A power in W"
    assert len(lines) == 202
    assert float(lines[1].split(",")[2]) == pytest.approx(360.0)
    assert plot.read_bytes().startswith(b"\x89PNG")
    more = ["--motor", "A", "--motor", "D", "--weight", "A=1", "--weight", "D=2", "--every", "0.1", "--json"]
    data = json.loads(run("inverse", FOLDER / "four_bar_mm.yaml", "--motion", "A=360*t", *more).output)
    assert data["verdict"] == "over-actuated: 1 of 2 motors redundant"
    assert data["motors"]["D load"]["unit"] == "N*mm"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("equilibrium", "--search", "Z=0:1"), 2, "no joint coordinate 'Z'"),
        (("equilibrium", "--search", "A=1"), 2, "not a range"),
        (("equilibrium", "--search", "A=2:1"), 2, "does not ascend"),
        (("equilibrium", "--search", "A"), 2, "NAME=VALUE"),
        (("equilibrium",), 1, "as a load on"),
        (("inverse",), 1, "leaves 1 free. Give the motion of 1 more"),
        (("inverse", "--motion", "Z=t"), 2, "no joint coordinate 'Z'"),
        (("inverse", "--motion", "A=t", "--weight", "A=x"), 2, "not a number"),
        (("inverse", "--motion", "A=t", "--motion", "A=2*t"), 2, "twice"),
        (("inverse", "--motion", "A=sin("), 1, "driver 'motion_A'"),
        (("inverse", "--motion", "D=360*t"), 1, "cannot be followed beyond"),
        (("inverse", "--motion", "A=t", "-t", "-1"), 2, "positive numbers"),
        (("inverse", "--motion", "A=t", "--plot", "loads.xyz"), 2, "must end in"),
    ],
)
def test_wrong_use_of_statics_and_inverse_says_what_to_do(arguments, code, words):
    command, *options = arguments
    result = run(command, FOLDER / "four_bar_mm.yaml", *options)
    assert result.exit_code == code
    assert words in " ".join(result.output.replace("│", " ").split())


# --------------------------------------------------------------------------------------------------------- drive


def test_drive_prints_ranges_and_turning_points_in_the_units_of_the_file():
    result = run("drive", FOLDER / "four_bar_mm.yaml", "A", "--from", 0, "--to", 360, "--points", 73)
    assert result.exit_code == 0, result.output
    assert "four_bar_mm driven at A: 73 steps, A in deg from 0 to 360" in result.output
    # crank and coupler in line: law of cosines with 30 + 90, 60 and 100 mm; the crank is drawn at 60 degrees
    stretched = math.degrees(math.acos((100**2 + 120**2 - 60**2) / (2 * 100 * 120))) - 60 + 360
    assert f"turning point of D at A = {stretched:.9g} deg" in result.output


def test_drive_that_must_stop_says_where_and_keeps_what_it_has(tmp_path):
    files = {"--csv": tmp_path / "t.csv", "--plot": tmp_path / "t.png", "--html": tmp_path / "t.html"}
    options = [x for pair in files.items() for x in pair]
    result = run("drive", FOLDER / "four_bar.yaml", "D", "--from", 0, "--to", 2, "--points", 41, *options)
    assert result.exit_code == 1
    # crank folded over the coupler: pin C is 0.9 - 0.3 from A and 0.6 from D, so the rocker leans back by acos(0.5/0.6)
    cx, cy = 0.9922938867700787, 0.5999505111414504  # pin C of the drawing, by circles (tests/unit/test_library.py)
    limit = math.pi - math.acos(0.5 / 0.6) - math.atan2(cy, cx - 1)
    assert f"stopped: dead point at D = {limit:.9g} rad" in result.output
    assert all(file.stat().st_size > 1000 for file in files.values())


def test_drive_json_holds_the_same():
    result = run("drive", FOLDER / "quick_return.yaml", "A", "--from", 0, "--to", 6, "--points", 61, "--json")
    assert result.exit_code == 0
    data = json.loads(result.output)
    assert data["status"] == "complete"
    assert data["steps"] == 61
    assert data["coordinates"]["A"] == {"unit": "rad", "min": 0.0, "max": 6.0}
    assert {e["kind"] for e in data["events"]} == {"turning point"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("five_bar.yaml", "A", "--from", 0, "--to", 1), 1, "does not determine the motion"),
        (("four_bar.yaml", "Q", "--from", 0, "--to", 1), 1, "there is no joint coordinate 'Q'"),
        (("four_bar.yaml", "A", "--from", 0, "--to", 1, "--points", 1), 2, "less than 2"),
        (("four_bar.yaml", "A", "--from", 0, "--to", 1, "--plot", "x.doc"), 2, "must end in .png"),
        (("nothing.yaml", "A", "--from", 0, "--to", 1), 1, "there is no such file"),
        (("four_bar.yaml", "A", "--from", 0), 2, "Missing option"),
    ],
)
def test_wrong_use_of_drive_is_said(arguments, code, said):
    result = run("drive", FOLDER / arguments[0], *arguments[1:])
    assert result.exit_code == code
    assert said in result.output
    assert "Traceback" not in result.output


# -------------------------------------------------------------------------------------------------- new and view


KINDS = {"four-bar": 1, "slider-crank": 0, "five-bar": 2, "pendulum": 1, "blank": 6}


@pytest.mark.parametrize("kind", KINDS)
def test_new_writes_a_model_that_compiles_and_closes(kind, tmp_path, monkeypatch):
    """Degrees of freedom by the count in the plane: 3*3 - 2*4 = 1; less a driver 0; 3*4 - 2*5 = 2; a free body: 6."""
    monkeypatch.chdir(tmp_path)
    result = run("new", "--kind", kind)
    assert result.exit_code == 0, result.output
    file = tmp_path / f"{kind.replace('-', '_')}.yaml"
    assert " FILE" not in file.read_text()
    system = ld.load(file).compile()
    assert system.name == file.stem
    assert ld.mobility(system, ld.assemble(system)).dof == KINDS[kind]


def test_new_does_not_overwrite_a_file(tmp_path):
    (tmp_path / "mine.yaml").write_text("loopdyn: 1")
    result = run("new", tmp_path / "mine")
    assert result.exit_code == 1
    assert "mine.yaml' exists, and is not overwritten" in result.output
    assert (tmp_path / "mine.yaml").read_text() == "loopdyn: 1"
    assert run("new", tmp_path / "no folder" / "mine").exit_code == 2
    assert run("new", tmp_path / "other", "--kind", "six-bar").exit_code == 2


def test_the_new_pendulum_falls_from_the_horizontal_as_the_closed_form_says(tmp_path):
    """A rod of length L about its end: 3 g/(2 L) = 29.43 rad/s^2 at L = 0.5 m."""
    run("new", tmp_path / "rod", "--kind", "pendulum")
    system = ld.load(tmp_path / "rod.yaml").compile()
    assert ld.accelerations(system, ld.assemble(system))[0] == pytest.approx(-29.43, rel=1e-12)


def test_view_moves_a_mechanism_with_one_input_by_a_turn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("typer.launch", opened.append)
    result = run("view", FOLDER / "four_bar_mm.yaml")
    assert result.exit_code == 0, result.output
    assert "four_bar_mm, moved along A" in result.output
    assert opened == [(tmp_path / "four_bar_mm.html").as_uri()]


def test_view_shows_the_start_pose_of_what_has_no_single_input_and_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr("typer.launch", lambda address: pytest.fail("a browser was opened"))
    run("new", tmp_path / "five", "--kind", "five-bar")
    result = run("view", tmp_path / "five.yaml", "--no-open", "-o", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert "five in its start pose: A does not determine the motion" in result.output
    assert (tmp_path / "page.html").stat().st_size > 0
    asked = run("view", tmp_path / "five.yaml", "--no-open", "-o", tmp_path / "page.html", "--turn", "A")
    assert asked.exit_code == 1
    assert run("view", tmp_path / "five.yaml", "--from", "1").exit_code == 2


@pytest.mark.parametrize("ending", [".xml", ".urdf"])
@pytest.mark.parametrize("command", ["inspect", "view"])
def test_other_formats_are_read_by_every_command(command, ending, tmp_path):
    model = tmp_path / f"bar{ending}"
    ld.library.pendulum().save(tmp_path / "bar.yaml")
    assert run("convert", tmp_path / "bar.yaml", model).exit_code == 0
    options = ["--no-open", "-o", tmp_path / "page.html"] if command == "view" else []
    result = run(command, model, *options)
    assert result.exit_code == 0, result.output


# ------------------------------------------------------------------------------------ choices, units, missing files


def test_choices_of_the_command_line_are_those_of_the_library():
    assert set(get_args(options.FormulationName)) == set(formulations.CLASSES)
    assert set(get_args(options.IntegratorName)) == set(integrators.CLASSES)
    assert set(get_args(options.DriftName)) == set(DRIFTS)
    assert set(options.BENCHES) == {*PROBLEMS, "all"}
    assert set(options.READABLE) == set(READ)


def test_t_is_the_duration_in_every_command():
    for command in app.registered_commands:
        for p in inspect.signature(command.callback).parameters.values():
            text = str(p.annotation)
            if "'-t'" in text or p.annotation == "Duration":
                assert p.annotation == "Duration", (command.callback.__name__, text)
            assert "'-t'" not in text.replace('"', "'")


@pytest.mark.parametrize("command", ["inspect", "view", "compare", "run", "equilibrium", "inverse", "report"])
def test_a_missing_file_is_said_with_the_nearest_names(command, tmp_path):
    (tmp_path / "four_bar.yaml").write_text("loopdyn: 1")
    (tmp_path / "four_bar.html").write_text("")
    result = run(
        command, tmp_path / "four_bra.yaml", *(["-o", tmp_path / "x.html"] if command in ("view", "report") else [])
    )
    assert result.exit_code == 1
    assert "there is no such file. Did you mean 'four_bar.yaml'?" in result.output
    nowhere = run("inspect", tmp_path / "no folder" / "a.yaml")
    assert "There is no folder" in nowhere.output


def test_the_last_state_of_a_run_is_in_the_units_of_the_file(tmp_path):
    """A wheel turns freely: 90 deg/s for 0.5 s is 45 deg, by hand."""
    file = tmp_path / "wheel.yaml"
    file.write_text(WHEEL)
    data = json.loads(run("run", file, "-t", "0.5", "--json").stdout)
    assert data["units"]["angle"] == "deg"
    assert data["final"]["q"]["A"] == pytest.approx(45.0, rel=1e-9)  # the default rtol is 1e-8 a step
    assert data["final"]["v"]["A"] == pytest.approx(90.0, rel=1e-9)


WHEEL = """loopdyn: 1
name: wheel
units: {length: mm, angle: deg, mass: g, torque: N*mm}
bodies: {wheel: {planar: {mass: 1000, com: [0, 0, 0], izz: 5.0e+6}}}
joints: {A: {type: revolute, parent: ground, child: wheel, at: [0, 0, 0], axis: [0, 0, 1]}}
start: {v: {A: 90}}
"""


def test_a_tolerance_on_the_command_line_is_in_units_of_the_file():
    """A rod of 100 mm too long by 0.01 mm closes within 0.02 mm, not within 0.002 mm."""
    m = ld.Mechanism("frame", units={"length": "mm", "angle": "deg", "mass": "g"})
    m.add_body("slider", ld.Inertia.point(mass=1, at=(0, 0, 0)))
    m.add_joint("A", ld.Prismatic(axis=(1, 0, 0)), m.ground, "slider", at=(0, 0, 0))
    for name, length in (("rod", 100.0), ("other", 100.01)):
        m.add_constraint(name, ld.constraints.Distance(body1="ground", body2="slider", point1=(-100, 0, 0),
                                                      point2=(0, 0, 0), length=length))  # fmt: skip
    system = m.compile()
    for allowed, closes in ((0.02, True), (0.002, False)):
        with pytest.raises(ld.errors.AssemblyError) if not closes else nullcontext():
            models.tolerated_start(system, None, allowed)


def test_the_shell_completes_choices_and_model_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "four.yaml").write_text("")
    (tmp_path / "four.txt").write_text("")
    (tmp_path / "folder").mkdir()
    assert options.complete_models("fo") == ["folder/", "four.yaml"]
    line = {"_LOOPDYN_COMPLETE": "complete_bash", "COMP_WORDS": "loopdyn run four.yaml --drift ", "COMP_CWORD": "4"}
    result = CliRunner().invoke(app, [], env=line, prog_name="loopdyn")
    assert result.output.split() == ["projection", "velocity", "baumgarte", "none"]
