"""Trajectories against references that no formulation of loopdyn produced: see problem.md in tests/data/reference."""

import csv
from pathlib import Path

import numpy as np
import pytest

import loopdyn as ld

FOLDER = Path(__file__).parents[1] / "data" / "reference"
TIGHT = 1e-12  # rtol: errors of the references and of rounding then dominate


def reference(name: str, until: float) -> dict[str, np.ndarray]:
    with (FOLDER / name).open() as file:
        rows = [row for row in csv.DictReader(file) if float(row["t"]) <= until]
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def motion(
    name: str, until: float, formulation, file: str, rtol: float = TIGHT, **start
) -> tuple[ld.results.Run, dict]:
    system = getattr(ld.library, name)().compile()
    expected = reference(file, until)
    state = ld.assemble(system, **start)
    times = expected["t"]
    run = ld.simulate(
        system, state, (0, times[-1]), t_eval=times, formulation=formulation, rtol=rtol, progress=False
    ).raise_if_failed()
    return run, expected


def coordinate(run: ld.results.Run, label: str) -> np.ndarray:
    return run.path.q[:, run.system.coordinates.index(label)]


def differ(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


# Dense methods take milliseconds an evaluation: they go a part of the way here, the whole way among the slow tests.
SHORT = [pytest.param(f, 5.0, id=f) for f in ("relative", "graph")] + [pytest.param("kkt", 0.3, id="kkt")]
LONG = [pytest.param(f, 5.0, id=f, marks=pytest.mark.slow) for f in ("kkt", "oracle")]


def method(name: str):
    return ld.Absolute(solver="kkt") if name == "kkt" else name


@pytest.mark.parametrize(("formulation", "until"), [*SHORT, *LONG])
def test_four_bar_spinning(formulation, until):
    run, expected = motion("four_bar", until, method(formulation), "four_bar/reference.csv")
    assert differ(coordinate(run, "A") + 1.0, expected["theta1"]) < 1e-9
    assert differ(run.path.v[:, 0], expected["dtheta1"]) < 1e-8
    assert run.energy_error < 1e-10
    assert run.largest_residual < 1e-13


@pytest.mark.parametrize(("formulation", "until"), [*SHORT, *LONG])
def test_four_bar_released(formulation, until):
    run, expected = motion("four_bar", until, method(formulation), "four_bar/reference_release.csv", q={})
    assert differ(coordinate(run, "A") + 1.0, expected["theta1"]) < 1e-9


@pytest.mark.parametrize(("formulation", "until"), [*SHORT, *LONG])
def test_slider_crank(formulation, until):
    run, expected = motion("slider_crank", until, method(formulation), "slider_crank/reference.csv")
    assert differ(coordinate(run, "A") + 0.5, expected["theta"]) < 1e-9


def test_reactions_along_the_motion_of_the_four_bar():
    """Force on the crank at A0 and on the rocker at B0, Newton-Euler from the closed form."""
    run, expected = motion("four_bar", 1.0, "relative", "four_bar/reference_reactions.csv")
    wrench = run.data["wrench"]
    for joint, columns in (("A", ("FOx", "FOy")), ("D", ("FDx", "FDy"))):
        for component, column in zip(("fx", "fy"), columns, strict=True):
            found = wrench.sel(joint=joint, component=component).values
            assert differ(found, expected[column]) < 1e-7 * np.abs(expected[column]).max()


@pytest.mark.parametrize(
    ("formulation", "until"),
    [
        pytest.param("relative", 10.0, marks=pytest.mark.slow),
        ("graph", 10.0),
        ("kkt", 1.0),
        pytest.param("kkt", 10.0, marks=pytest.mark.slow),
        pytest.param("oracle", 10.0, marks=pytest.mark.slow),
    ],
)
def test_pendulum_A01(formulation, until):
    run, expected = motion("pendulum", until, method(formulation), "A01_pendulum/reference.csv")
    assert differ(np.pi / 2 - coordinate(run, "A"), expected["theta"]) < 1e-10


def test_pendulum_A01_at_the_default_tolerance():
    """The library asks for an energy error below 5e-5 J over 10 s."""
    run, expected = motion("pendulum", 10.0, "relative", "A01_pendulum/reference.csv", rtol=1e-8)
    assert differ(np.pi / 2 - coordinate(run, "A"), expected["theta"]) < 1e-6
    assert np.abs(run.energy_balance).max() < 5e-6


@pytest.mark.parametrize(
    ("formulation", "until"),
    [("graph", 10.0), ("relative", 1.0), ("oracle", 0.2), pytest.param("relative", 10.0, marks=pytest.mark.slow)],
)
def test_bricard_A04_with_its_redundant_row(formulation, until):
    run, expected = motion("bricard", until, formulation, "A04_bricard/reference.csv")
    body = run.system.joints["P3"].child
    path = run.point(run.system.bodies[body], at=(1, -1, 0))["position"].values
    for k, axis in enumerate("xyz"):
        assert differ(path[:, k], expected[f"P3{axis}"]) < 1e-7


@pytest.mark.parametrize(
    ("formulation", "until", "tolerance"),
    [
        ("relative", 2.0, 1e-9),  # as the reference states
        ("graph", 2.0, 1e-9),
        ("graph", 5.0, 1e-6),
        (ld.Absolute(solver="kkt"), 0.3, 1e-9),
        pytest.param("relative", 5.0, 1e-6, marks=pytest.mark.slow),
        pytest.param("oracle", 5.0, 1e-6, marks=pytest.mark.slow),
    ],
)
def test_five_bar(formulation, until, tolerance):
    run, expected = motion("five_bar", until, formulation, "five_bar/reference.csv")
    assert differ(coordinate(run, "A") - 2.6, expected["q1"]) < tolerance
    assert differ(coordinate(run, "E") - 0.9, expected["q2"]) < tolerance


@pytest.mark.parametrize("formulation", ["graph", "relative", pytest.param("oracle", marks=pytest.mark.slow)])
def test_andrews_A03(formulation):
    run, expected = motion("andrews", 0.03, formulation, "A03_andrews_squeezer/reference.csv")
    beta0 = -0.0617138900142764496
    assert differ(coordinate(run, "O") + beta0, expected["beta"]) < 1e-8
    # work of the motor and energy of the spring are booked: the balance holds
    assert run.energy_error < 1e-9
    turned = coordinate(run, "O")
    assert differ(run.path.work[:, run.system.forces.index("drive")], 0.033 * turned) < 1e-12
