"""`loopdyn bench`: problems with known solutions, by chosen formulations."""

import json

import pytest
from typer.testing import CliRunner

import loopdyn as ld
from loopdyn.app.bench import PROBLEMS, run_by_mujoco, run_problem
from loopdyn.app.cli import app


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *arguments])


def test_a_table_shows_errors_of_chosen_problems_and_formulations(tmp_path):
    picture = tmp_path / "bench.svg"
    result = run("a04", "A03", "-f", "auto", "-f", "graph", "--plot", str(picture))
    assert result.exit_code == 0, result.output
    for word in ("A03", "A04", "auto", "graph", "quadrature", "energy error"):
        assert word in result.output
    assert picture.stat().st_size > 1000


def test_json_holds_the_same_numbers():
    result = run("A01", "--json", "--rtol", "1e-10")
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.output)
    assert found["error"] < 1e-8
    assert found["status"] == "finished"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["A9"], "'A9' is not one of"),
        (["A01", "-f", "grph"], "'grph' is not one of"),
        (["A01", "--peers", "--step", "0"], "--step is 0"),
    ],
)
def test_wrong_names_are_refused(arguments, words):
    result = run(*arguments)
    assert result.exit_code != 0
    assert words in result.output


@pytest.mark.parametrize(("name", "allowed"), [("A01", 1e-6), ("A03", 1e-7), ("A04", 1e-7), ("A02", 1e-6)])
def test_errors_at_the_default_tolerance(name, allowed):
    assert run_problem(name).error < allowed


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_finishes(name):
    result = run_problem(name)
    assert result.status == "finished", result.message
    assert result.energy_error < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rtol", "allowed"), [("A04", 1e-10, 1e-8), ("A03", 1e-11, 1e-9)])
def test_tight_tolerances_are_worth_it(name, rtol, allowed):
    assert run_problem(name, rtol=rtol).error < allowed


@pytest.mark.slow
def test_the_governor_needs_far_fewer_steps_than_an_explicit_method():
    explicit = 10.0 / 1e-4  # the time constant of its dampers is 1e-4 s
    assert run_problem("A05").steps < 0.1 * explicit


def test_mujoco_runs_beside_us():
    """The pendulum has no loop: the Runge-Kutta method of order 4 with 1 ms is as good as it can be."""
    result = run_by_mujoco("A01")
    assert result.status == "finished"
    assert result.steps == 10_000
    assert result.error < 1e-9  # elliptic functions


def test_a_peer_that_blows_up_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_by_mujoco("A05")  # stiff, by an explicit method
    assert result.status == "failed"
    assert "unstable" in result.message
    assert not list(tmp_path.iterdir())  # no log of MuJoCo is left


def test_a_peer_that_cannot_run_a_problem_is_left_out_and_said(monkeypatch):
    def refuse(name, step):
        raise ld.LoopdynError("MuJoCo is not installed. Install loopdyn[mjcf].")

    monkeypatch.setattr("loopdyn.app.bench.run_by_mujoco", refuse)
    found = CliRunner().invoke(app, ["bench", "A01", "--peers", "--json"])
    assert found.exit_code == 0
    assert "A01 by MuJoCo is left out: MuJoCo is not installed" in found.stderr
    assert [r["formulation"] for r in json.loads(found.stdout)] == ["auto"]
