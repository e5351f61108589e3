"""Analyses that begin at a state with redundant constraints left open: a four-bar whose right angles are rounded.

Its axes are tilted by 3.67e-6 rad, so that everything must be as in the plane but for that times factors of some ten.
Positions are compared with the closed form of the four-bar, other results with the mechanism dimensioned exactly.
"""

import re

import numpy as np
import pytest
from tests.literature.blajer1994 import reactions_by

import loopdyn as ld
from loopdyn.analysis.comparing import compare
from loopdyn.tree import terms

ROUNDED, EXACT = "1.5708", "1.5707963267948966"
TILT = 1.5708 - np.pi / 2
NEAR = 1e-4  # loads of some 30 N and N m, times the tilt and the shape: some 30 TILT


def four_bar(right):
    """A URDF four-bar in the plane z = 0, crank and coupler turned out of it and back by right angles."""
    inertial = (
        '<inertial><origin xyz="0.2 0.05 -0.1"/><mass value="1"/>'
        '<inertia ixx=".03" iyy=".03" izz=".03" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    links = "".join(f'<link name="{name}">{inertial}</link>' for name in ("crank", "coupler", "rocker"))

    def joint(name, parent, child, at, rpy, axis):
        ends = f'<parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>'
        return f'<joint name="{name}" type="continuous"><origin xyz="{at}" rpy="{rpy} 0 0"/>{ends}</joint>'

    text = (
        f'<robot name="r"><link name="world"/>{links}'
        + joint("A", "world", "crank", "0 0 0", right, "0 1 0")
        + joint("B", "crank", "coupler", "0 0 -0.5", f"-{right}", "0 0 1")
        + joint("D", "world", "rocker", "1.1 0 0", "0", "0 0 1")
        + '<loop name="C" type="revolute"><predecessor link="coupler"><origin xyz="1.2 0.4 0"/></predecessor>'
        + '<successor link="rocker"><origin xyz="0.1 0.9 0"/></successor><axis xyz="0 0 1"/></loop></robot>'
    )
    m = ld.read_urdf(text).mechanism
    m.gravity = (0, -9.81, 0)
    m.add_force("spring", ld.forces.JointSpring(joint="A", stiffness=5.0, rest=0.2))
    return m.compile()


def rocker_angle(A):
    """D by hand: B on a circle of 0.5 m about the origin, C where two circles about B and (1.1, 0) meet, the upper."""
    B = np.array([-0.5 * np.sin(A), 0.5 * np.cos(A)])
    D, b, r = np.array([1.1, 0.0]), np.hypot(1.2, 0.4), np.hypot(0.1, 0.9)
    d = np.linalg.norm(D - B)
    along = (b**2 - r**2 + d**2) / (2 * d)
    e = (D - B) / d
    C = B + along * e + np.sqrt(b**2 - along**2) * np.array([-e[1], e[0]])
    return np.arctan2(*(C - D)[::-1]) - np.arctan2(0.9, 0.1)


@pytest.fixture(scope="module")
def both():
    """The exact and the rounded mechanism, each with a state."""
    found = []
    for right in (EXACT, ROUNDED):
        system = four_bar(right)
        found.append((system, ld.assemble(system, q={"A": 0.2}, v={"A": 2.0}, tolerance=1e-5)))
    assert found[0][1].tolerated is None
    assert set(found[1][1].tolerated.rows) == {"C.mx", "C.my", "C.fz"}
    return found


def test_a_drive_within_a_tolerance_is_that_of_the_closed_form(both):
    system, state = both[1]
    found = ld.drive(system, "A", (0.0, 2 * np.pi, 25), near=state)
    A = found.data["q"].sel(coordinate="A").values
    D = found.data["q"].sel(coordinate="D").values
    assert found.status == "complete"
    # the plane's projection of tilted links is shorter by the square of the tilt, so that far less than TILT is seen
    assert np.abs(D - [rocker_angle(a) for a in A]).max() < TILT
    assert 0.5 * TILT < max(found.left_open.values()) < 1e-5
    assert "left open within the tolerance" in str(found)
    assert found.state(3).tolerated == state.tolerated
    assert all(e.state.tolerated == state.tolerated for e in found.events)


def test_a_drive_ends_in_words_where_rows_leave_the_tolerance(both):
    system, _ = both[1]
    state = ld.assemble(system, q={"A": 0.2}, tolerance=5e-6)  # over a turn they are open by up to 2 TILT
    found = ld.drive(system, "A", (0.0, 2 * np.pi, 61), near=state)
    assert found.status == "stopped"
    assert found.limit.kind == "tolerance"
    assert re.search(r"is open by .* more than the tolerance 5e-06 .* or allow a larger one", found.message)
    assert max(found.left_open.values()) <= 5e-6


def test_equilibrium_within_a_tolerance_is_that_of_the_plane(both):
    one, other = (ld.equilibrium(system, state) for system, state in both)
    assert other.stability == one.stability == "stable"
    assert np.abs(one.state.q - other.state.q).max() < NEAR
    assert np.abs(one.stiffness - other.stiffness).max() < NEAR
    assert np.abs(one.reactions.wrench - other.reactions.wrench).max() < NEAR
    assert "left open within the tolerance" in other.note
    assert other.state.tolerated is not None


def test_all_equilibria_within_a_tolerance_are_those_of_the_plane(both):
    one, other = (ld.equilibrium(system, state, search={"A": (-3.0, 3.0)}) for system, state in both)
    assert [e.stability for e in one] == [e.stability for e in other]
    assert len(other) > 0
    assert np.abs(np.array([e["A"] for e in one]) - [e["A"] for e in other]).max() < NEAR


def test_zero_force_and_preload_leave_rows_open(both):
    system, state = both[1]
    (found,) = ld.analyses.zero_force(system, "spring", {"A": (-1.0, 1.0)}, state)
    assert found.q[system.coordinates.index("A")] == pytest.approx(0.2, abs=1e-9)  # its rest
    assert found.tolerated == state.tolerated
    one, two = (ld.analyses.preload(s, "spring", x).value for s, x in both)
    assert one == pytest.approx(two, abs=NEAR)


def test_inverse_dynamics_within_a_tolerance_is_that_of_the_plane(both):
    times = np.linspace(0.0, 3.0, 13)
    one, other = (ld.inverse_dynamics(s, {"A": "0.2 + 2*t"}, times, near=x) for s, x in both)
    assert np.abs(one.load - other.load).max() < NEAR
    assert np.abs(one.wrench[0] - other.wrench[0]).max() < NEAR
    assert set(other.left_open) == {"C.mx", "C.my", "C.fz"}
    assert "left open within the tolerance" in str(other)
    assert other.state(-1).tolerated is not None


def test_inverse_dynamics_of_states_and_runs_that_leave_rows_open_gives_no_load_to_free_motion(both):
    system, state = both[1]
    of_state = ld.inverse_dynamics(system, [state], accelerations=[ld.accelerations(system, state)], motors=["A"])
    run = ld.simulate(system, state, (0.0, 0.2), t_eval=[0.0, 0.1, 0.2], progress=False)
    for found in (of_state, ld.inverse_dynamics(system, run, motors=["A"])):
        assert np.abs(found.load).max() < 1e-9  # forces of some 10 N m act, and nothing is missing
        assert found.left_open


def test_branches_within_a_tolerance_are_both_closures_of_the_plane(both):
    system, state = both[1]
    found = ld.analyses.branches(system, {"A": 0.3}, near=state)
    angles = sorted(b.state.q[system.coordinates.index("D")] % (2 * np.pi) for b in found)
    upper = rocker_angle(0.3) + np.arctan2(0.9, 0.1)
    # the other closure: C mirrored at the line from D to B
    lower = 2 * np.arctan2(0.5 * np.cos(0.3), -0.5 * np.sin(0.3) - 1.1) - upper
    expected = sorted((x - np.arctan2(0.9, 0.1)) % (2 * np.pi) for x in (upper, lower))
    assert np.abs(np.array(angles) - expected).max() < TILT
    assert all(b.state.tolerated == state.tolerated for b in found)
    assert "left open within the tolerance" in str(found)


def test_coordinates_cuts_and_sweeps_within_a_tolerance_are_those_of_the_plane(both):
    one, other = (ld.analyses.coordinates(system, state) for system, state in both)
    assert list(one.cosine.values()) == pytest.approx(list(other.cosine.values()), abs=NEAR)
    assert [c.joints for c in one.cuts] == [c.joints for c in other.cuts]
    assert [c.measure for c in one.cuts] == pytest.approx([c.measure for c in other.cuts], abs=NEAR)
    assert np.abs(one.sweep("A").cosine - other.sweep("A").cosine).max() < NEAR


def test_reconnecting_within_a_tolerance_chooses_rows_of_the_other_cut(both):
    system, state = both[1]
    other = system.mechanism.compile(cuts=["B"])
    change = ld.analyses.reconnect(system, other, state)
    assert {row.partition(".")[0] for row in change.state.tolerated.rows} == {"B"}
    assert abs(change.energy_loss) < TILT  # of 0.2 J, by a jump of the tilt
    assert np.abs(terms(other.for_state(change.state), change.state).phi).max() < 1e-11


def test_formulations_are_compared_within_a_tolerance(both):
    system, state = both[1]
    found = compare(system, state)
    assert found.acceleration_difference < 1e-9
    assert "graph" in found.results
    assert "leave nothing open" in found.unsupported["closure"]
    one, other = (reactions_by(s, x, "35") for s, x in both)
    assert np.abs(one - other).max() < NEAR


@pytest.mark.parametrize("refuse", [
    lambda s, x: ld.analyses.singular_poses(s, "A", near=x),
    lambda s, x: ld.analyses.equations(s, ["A"], x),
])  # fmt: skip
def test_what_goes_by_formulas_refuses_and_says_what_to_use(both, refuse):
    with pytest.raises(ld.LoopdynError, match=r"leave no constraint open.*Use ld\."):
        refuse(*both[1])


def test_the_tolerance_of_a_state_holds_where_it_is_assembled_again(both):
    system, state = both[1]
    there = ld.assemble(system, q={"A": 1.0}, near=state)
    assert there.tolerated == state.tolerated
    assert there.q[system.coordinates.index("D")] == pytest.approx(rocker_angle(1.0), abs=TILT)
    run = ld.simulate(system, state, (0.0, 0.01), progress=False)
    assert ld.assemble(run.system, q={"A": 1.0}).tolerated == state.tolerated


def test_a_report_and_variants_take_a_tolerance(both, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    m = both[1][0].mechanism
    options = {"progress": False, "tolerance": 1e-5}
    found = ld.analyses.variants(m, [{"name": "one"}], (0, 0.05), **options)
    assert found.failed == ()
    page = ld.report(m, tmp_path / "page.html", t_span=(0, 0.05), turn="A", variants=found, **options).read_text()
    assert page.count("left open within the tolerance") >= 2  # of mobility and of the drive
    with pytest.raises(ld.errors.AssemblyError, match="contradict each other"):
        ld.report(m, tmp_path / "page.html", t_span=(0, 0.05))


@pytest.mark.parametrize("command", [
    ["drive", "A", "--from", "0", "--to", "1"],
    ["equilibrium"],
    ["equilibrium", "--search", "A=-1:1"],
    ["inverse", "--motion", "A=10*t", "-t", "0.1"],
    ["compare"],
])  # fmt: skip
def test_commands_take_tolerances_in_units_of_the_file(both, tmp_path, command):
    from typer.testing import CliRunner

    from loopdyn.app.cli import app

    file = tmp_path / "bar.yaml"
    both[1][0].mechanism.save(file)
    name, *rest = command
    refused = CliRunner().invoke(app, [name, str(file), *rest])
    assert refused.exit_code == 1
    assert "contradict each other" in refused.output
    given = ["--angle-tolerance", "1e-5", "--length-tolerance", "1e-5"]
    closed = CliRunner().invoke(app, [name, str(file), *rest, *given])
    assert closed.exit_code == 0, closed.output
