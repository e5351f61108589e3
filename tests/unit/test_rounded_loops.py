"""Loops that rounded dimensions keep from closing: what is said of them, and how they are closed with a tolerance."""

import itertools

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.analysis.contradictions import changes_that_close, contradiction
from loopdyn.tree import terms

Z = (0, 0, 1)


def three_rods(excess, shift=None, from_plate=False):
    """A plate on three parallel rods of length 1, the middle one longer; `shift`: where joints sit on rods, along y.

    With `from_plate` the rows of the upper pins are in axes of the plate, which does not turn.
    """
    m = ld.Mechanism("three rods", gravity=(0, -9.81, 0))
    pin, shift = ld.Revolute(axis=Z), shift or {}
    m.add_body("plate", ld.Inertia.rod(1.0, (0, 1, 0), (2, 1, 0), radius=0.01))
    for k, x in enumerate((0.0, 1.0, 2.0)):
        low, high = (shift.get((f"{joint}{k}", f"rod{k}"), 0.0) for joint in "AB")
        m.add_body(f"rod{k}", ld.Inertia.rod(0.2, (x, 0, 0), (x, 1, 0), radius=0.01))
        on_ground, on_plate = ld.Frame(position=(x, 0, 0)), ld.Frame(position=(x, 1, 0))
        foot = ld.Frame(position=(x, low, 0))
        head = ld.Frame(position=(x, 1 + (excess if k == 1 else 0.0) + high, 0))
        m.add_joint(f"A{k}", pin, m.ground, f"rod{k}", parent_frame=on_ground, child_frame=foot)
        if from_plate:
            m.add_joint(f"B{k}", pin, "plate", f"rod{k}", parent_frame=on_plate, child_frame=head)
        else:
            m.add_joint(f"B{k}", pin, f"rod{k}", "plate", parent_frame=head, child_frame=on_plate)
    return m.compile()


def four_bar(tilt):
    """A four-bar whose crank pin B is tilted against the other three pins."""
    A, B, C, D = (0, 0, 0), (0, 1, 0), (2, 2, 0), (2, 0, 0)
    m = ld.Mechanism("four-bar", gravity=(0, -9.81, 0))
    for name, one, other in (("crank", A, B), ("coupler", B, C), ("rocker", D, C)):
        m.add_body(name, ld.Inertia.rod(1.0, one, other, radius=0.01))
    tilted = (np.sin(tilt), 0.0, np.cos(tilt))
    m.add_joint("A", ld.Revolute(axis=Z), m.ground, "crank", at=A)
    m.add_joint("B", ld.Revolute(axis=tilted), "crank", "coupler", at=B)
    m.add_joint("C", ld.Revolute(axis=Z), "coupler", "rocker", at=C)
    m.add_joint("D", ld.Revolute(axis=Z), m.ground, "rocker", at=D)
    return m.compile()


# ------------------------------------------------------------------------------------------------- what is said


def test_a_rod_that_is_too_long_is_named_with_its_excess():
    with pytest.raises(
        ld.errors.AssemblyError, match=r"redundant constraints contradict each other by up to 1e-06 m"
    ) as e:
        ld.assemble(three_rods(1e-6))
    # to be parallel: l1 = (l0 + l2) / 2, so rod1 alone is to be shortened by what it is too long
    assert "'rod1' along y by" in str(e.value)
    assert "1e-06 m." in str(e.value)
    assert "tolerance=(" in str(e.value)


def test_smallest_change_of_dimensions_is_that_of_the_hand_calculation():
    # minimise the sum of squares of six places with l1 + d1 = 1 + (d0 + d2)/2: 1/3 of the excess at each end of rod1,
    # 1/6 at each end of the others
    system = three_rods(1e-6)
    found = contradiction(system, ld.assemble(system, tolerance=1e-5))
    together, alone = changes_that_close(system, found)
    amounts = {(c.joint, c.body, c.axis): c.amount for c in together}
    sign = {"A": 1.0, "B": -1.0}
    expected = {
        (f"{j}{k}", f"rod{k}", "y"): sign[j] * (1e-6 / 3 if k == 1 else -1e-6 / 6) for j in "AB" for k in range(3)
    }
    assert amounts.keys() == expected.keys()
    for key, value in expected.items():  # first order: the error is the excess, relative to a length of one
        assert amounts[key] == pytest.approx(value, rel=1e-4)
    assert [(c.joint, abs(c.amount)) for c in alone[0]] in ([("A1", pytest.approx(1e-6, rel=1e-4))],
                                                           [("B1", pytest.approx(1e-6, rel=1e-4))])  # fmt: skip


def test_changed_by_what_is_said_it_closes_and_moves():
    system = three_rods(1e-5)
    together, _ = changes_that_close(system, contradiction(system, ld.assemble(system, tolerance=1e-4)))
    cured = three_rods(1e-5, {(c.joint, c.body): c.amount for c in together})
    state = ld.assemble(cured, q={"A0": 0.4})  # second order of 1e-5: 1e-10, which counts as closed
    assert state.tolerated is None
    assert ld.mobility(cured, state).dof == 1


def test_a_loop_that_is_too_short_is_not_called_rounded():
    # ground 2 m, crank 1 m, coupler and rocker 0.4999 m: it misses by 2e-4 when stretched
    m = ld.Mechanism("short")
    for name, one, other in (("crank", (0, 0, 0), (1, 0, 0)), ("coupler", (1, 0, 0), (1.4999, 0, 0)),
                             ("rocker", (2, 0, 0), (1.5001, 0, 0))):  # fmt: skip
        m.add_body(name, ld.Inertia.rod(1.0, one, other, radius=0.01))
    pin = ld.Revolute(axis=Z)
    m.add_joint("A", pin, m.ground, "crank", at=(0, 0, 0))
    m.add_joint("B", pin, "crank", "coupler", at=(1, 0, 0))
    m.add_joint("D", pin, m.ground, "rocker", at=(2, 0, 0))
    m.add_joint("C", pin, "coupler", "rocker", parent_frame=ld.Frame(position=(1.4999, 0, 0)),
                child_frame=ld.Frame(position=(1.5001, 0, 0)))  # fmt: skip
    for tolerance in (None, 1e-2):
        with pytest.raises(ld.errors.AssemblyError, match="stays open by"):
            ld.assemble(m.compile(), tries=3, tolerance=tolerance)


@pytest.mark.parametrize("tilt", [1e-3, np.pi / 2])
def test_a_tilted_pin_is_named_where_it_keeps_a_crank_from_turning(tilt):
    with pytest.raises(ld.errors.AssemblyError, match=rf"axis of 'B' is {tilt:.3g} rad off parallel"):
        ld.assemble(four_bar(tilt), v={"A": 1.0})


def test_a_tolerance_that_is_none_is_refused():
    for tolerance in (-1.0, np.nan, "much", (1.0, 2.0, 3.0)):
        with pytest.raises(ld.LoopdynError, match="tolerance is"):
            ld.assemble(three_rods(0.0), tolerance=tolerance)


# ----------------------------------------------------------------------------------------------------- mobility


@pytest.mark.parametrize("excess", [0.0, 1e-12, 3e-11, 6e-11, 1e-10])
@pytest.mark.parametrize("angle", [0.0, 0.5])
def test_a_rod_too_long_by_less_than_what_counts_as_closed_leaves_one_degree_of_freedom(excess, angle):
    system = three_rods(excess)
    found = ld.mobility(system, ld.assemble(system, q={"A0": angle}))
    assert (found.dof, found.redundant, found.verdict) == (1, 7, "overconstrained")


def test_a_mechanism_without_freedom_is_called_a_structure():
    found = ld.mobility(four_bar(1e-3), ld.assemble(four_bar(1e-3)))
    assert found.dof == 0
    assert found.rigid
    assert "structure (rigid)" in str(found)
    assert "the motion is not affected" not in str(found)
    assert set(found.held) == {"C.mx", "C.my", "C.fz"}  # out of the plane of the others
    assert "could move" in str(found)


@pytest.mark.parametrize("tilt", [1e-9, 1e-8, 1e-7])
def test_a_pin_tilted_by_more_than_rounding_makes_a_structure_that_small_contradictions_hold(tilt):
    # taken exactly no crank turns between pins that are not parallel: out of the plane the loop opens by up to the tilt
    # times the angle of the crank, 0.2 rad, and the lengths of its links, 2 m
    system = four_bar(tilt)
    found = ld.mobility(system, ld.assemble(system))
    assert (found.dof, found.redundant, found.verdict) == (0, 2, "overconstrained")  # as for a tilt of 1e-3
    assert found.rigid
    assert set(found.held) == {"C.mx", "C.my", "C.fz"}
    assert 0.02 * tilt < max(found.held.values()) < 0.4 * tilt
    assert found.nearly == 1
    assert "simulations count as dependent" in str(found)
    state = ld.assemble(system, v={"A": 1.0}, tolerance=1e-5)
    assert state.tolerated is not None
    assert ld.mobility(system, state).dof == 1


def test_a_crank_between_pins_tilted_by_1e_8_is_told_why_it_cannot_turn():
    with pytest.raises(ld.errors.AssemblyError, match="axis of 'B' is 1e-08 rad off parallel"):
        ld.assemble(four_bar(1e-8), v={"A": 1.0})


def test_a_driven_mechanism_is_no_structure():
    m = ld.library.four_bar()
    m.add_driver("input", "A", "0.1 + t")
    system = m.compile()
    found = ld.mobility(system, ld.assemble(system, q={}))
    assert found.dof == 0
    assert not found.rigid
    assert "drivers determine the motion" in str(found)


def test_mobility_within_a_tolerance_is_that_of_the_exact_mechanism():
    exact, rounded = three_rods(0.0), three_rods(1e-6)
    one = ld.mobility(exact, ld.assemble(exact, q={"A0": 0.5}))
    other = ld.mobility(rounded, ld.assemble(rounded, q={"A0": 0.5}, tolerance=1e-5))
    assert (one.dof, one.redundant, one.rank, one.verdict) == (other.dof, other.redundant, other.rank, other.verdict)
    assert one.dependent == other.dependent
    assert max(other.tolerated.values()) == pytest.approx(1e-6, rel=0.5)
    assert "left open within the tolerance" in str(other)


# ------------------------------------------------------------------------------------------- with a tolerance


def test_all_but_the_tolerated_rows_are_met_exactly():
    system = three_rods(1e-6)
    state = ld.assemble(system, q={"A0": 0.3}, v={"A0": 2.0}, tolerance=(0.0, 2e-6))
    phi = dict(zip(system.constraint_rows, np.abs(terms(system, state).phi), strict=True))
    # the row that is kept of the two is met, so rod1 is out by its excess along the other axis, within 1 / cos(0.3)
    left = {row: x for row, x in phi.items() if x > 1e-12}
    assert set(left) <= set(state.tolerated.rows)
    assert 0.9e-6 < max(left.values()) < 1.1e-6
    assert "stay open" in state.note


def test_a_tolerance_below_the_contradiction_is_refused_with_both_numbers():
    with pytest.raises(ld.errors.AssemblyError, match=r"contradict.*1e-06 m.*tolerance allows 1e-07 rad and 1e-07 m"):
        ld.assemble(three_rods(1e-6), tolerance=1e-7)


def test_an_exact_mechanism_tolerates_nothing():
    system = three_rods(0.0)
    assert ld.assemble(system, tolerance=1e-3).tolerated is None


@pytest.mark.parametrize("formulation", ["oracle", "relative", "graph", "partition", "rcr", "absolute"])
def test_accelerations_within_a_tolerance_are_those_of_the_exact_mechanism(formulation):
    exact, rounded = three_rods(0.0), three_rods(1e-6)
    a, b = (
        ld.accelerations(s, ld.assemble(s, q={"A0": 0.3}, v={"A0": 2.0}, tolerance=1e-5), formulation)
        for s in (exact, rounded)
    )
    # a change of dimensions by 1e-6 changes accelerations of some 10 rad/s2 by some 1e-5
    assert np.abs(a - b).max() < 1e-4


def test_closure_which_leaves_no_row_open_refuses_a_tolerance():
    system = three_rods(1e-6)
    state = ld.assemble(system, q={"A0": 0.3}, tolerance=1e-5)
    with pytest.raises(ld.LoopdynError, match="closed by formulas leave nothing open"):
        ld.accelerations(system, state, "closure")


def test_reactions_within_a_tolerance_are_those_of_the_exact_mechanism():
    found = []
    for system in (three_rods(0.0), three_rods(1e-6)):
        state = ld.assemble(system, q={"A0": 0.3}, v={"A0": 2.0}, tolerance=1e-5)
        found.append(ld.reactions(system, state, ld.accelerations(system, state, "oracle")))
    one, other = found
    assert np.abs(one.wrench - other.wrench).max() < 1e-4  # N or N m, as above
    assert (one.unique == other.unique).all()
    assert other.residual < 1e-4


# ------------------------------------------------------------------------------------------------------- runs


STEPS = {"formulation": "relative", "integrator": ld.integrators.RK4(step=0.01), "progress": False}


@pytest.fixture(scope="module")
def swinging():
    """A run of the plate on rounded rods, let go with 5 rad/s: the rods get level, where B1.fx holds none."""
    system = three_rods(1e-6, from_plate=True)
    state = ld.assemble(system, q={"A0": 0.4}, v={"A0": 5.0}, tolerance=1e-5)
    return ld.simulate(system, state, (0.0, 0.3), t_eval=np.linspace(0.0, 0.3, 7), **STEPS)


def test_a_run_leaves_rows_open_and_conserves_energy(swinging):
    run = swinging
    assert run.status == "finished"
    assert run.energy_error < 1e-7  # that of fourth order at steps of 0.01 s: the rows that are kept are holonomic
    assert run.largest_residual < 1e-12
    assert 0.9e-6 < max(run.left_open.values()) < 1e-5
    assert "left open" in run.settings["tolerated"]
    assert "left open within the tolerance" in run.decided


def test_other_rows_are_left_open_from_where_those_that_are_kept_get_weak(swinging):
    run = swinging
    switches = [e for e in run.events if e.kind == "rows left open"]
    assert switches  # the rods turn by more than 90 degrees
    # the jump to rows of which the excess is 1e-6 changes energies of some 10 J by 1e-6 of them at most
    assert max(abs(e.energy_loss) for e in switches) < 1e-4


def test_a_run_within_a_tolerance_is_that_of_the_exact_mechanism(swinging):
    run = swinging
    exact = three_rods(0.0, from_plate=True)
    state = ld.assemble(exact, q={"A0": 0.4}, v={"A0": 5.0})
    other = ld.simulate(exact, state, (0.0, 0.3), t_eval=run.path.t, **STEPS)
    # the excess of 1e-6 of a length, over 2 rad of motion, by a factor of some ten
    assert np.abs(run.path.q - other.path.q).max() < 2e-5


def test_a_run_file_remembers_what_was_left_open(swinging, tmp_path):
    run = swinging
    run.save(tmp_path / "run.nc")
    read = ld.load_run(tmp_path / "run.nc")
    assert read.system.tolerated == run.system.tolerated
    assert [p.tolerated for p in read.phases] == [p.tolerated for p in run.phases]
    assert read.left_open == pytest.approx(run.left_open)
    assert run.at(0.25).tolerated is not None


def test_a_run_ends_in_words_where_rows_leave_the_tolerance():
    # closed where it is drawn, the loop opens out of its plane with the angle of the tilted pin
    system = four_bar(1e-4)
    state = ld.assemble(system, v={"A": 4.0}, tolerance=2e-5)
    run = ld.simulate(system, state, (0.0, 0.3), t_eval=np.linspace(0.0, 0.3, 7), **STEPS)
    assert run.status == "failed"
    assert "more than the tolerance" in run.message
    assert len(run.path) > 1


def test_a_checkpoint_of_another_tolerance_is_refused(tmp_path):
    system = three_rods(1e-6)
    for tolerance, fits in ((1e-5, True), (2e-5, False)):
        state = ld.assemble(system, tolerance=tolerance)
        if fits:
            ld.simulate(system, state, (0.0, 0.05), **STEPS, checkpoint=tmp_path / "kept")
        else:
            with pytest.raises(ld.LoopdynError):
                ld.simulate(system, state, (0.0, 0.05), **STEPS, checkpoint=tmp_path / "kept")


@pytest.mark.parametrize("end", [1.2, 2.5, -2.0])
def test_a_drive_leaves_other_rows_open_where_those_that_are_kept_get_weak(end):
    # the rods stay parallel: B0 turns as A0 in a parallelogram, whatever the excess of the middle one but for its size
    system = three_rods(1e-6, from_plate=True)
    state = ld.assemble(system, q={"A0": 0.4}, tolerance=1e-5)
    found = ld.drive(system, "A0", (0.4, end, 41), near=state)
    assert found.status == "complete"
    A, B = (np.abs(found.data["q"].sel(coordinate=label).values) for label in ("A0", "B0"))
    assert np.abs(A - B).max() < 1e-4
    assert max(found.left_open.values()) < 1e-5
    rows = [t.rows for t in found.tolerated]
    switches = [e for e in found.events if e.kind == "left open"]
    assert len(switches) >= sum(a != b for a, b in itertools.pairwise(rows))
    assert bool(switches) == (abs(end) > np.pi / 2)  # rows of B1 along the rods hold nothing where the rods are level


def test_the_command_line_closes_within_tolerances_in_units_of_the_file(tmp_path):
    from typer.testing import CliRunner

    from loopdyn.app.cli import app

    file = tmp_path / "rods.yaml"
    three_rods(1e-6).mechanism.save(file)
    refused = CliRunner().invoke(app, ["inspect", str(file)])
    assert refused.exit_code == 1
    assert "contradict each other" in refused.output
    closed = CliRunner().invoke(app, ["inspect", str(file), "--length-tolerance", "2e-6"])
    assert closed.exit_code == 0
    assert "left open within the tolerance" in closed.output


def test_right_angles_of_five_digits_in_urdf_are_closed_within_1e_5():
    # 1.5708 is pi/2 + 3.67e-6: the axis of A is tilted on the ground, and the axes of crank against each other
    inertial = '<inertial><mass value="1"/><inertia ixx=".03" iyy=".03" izz=".03" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="{name}">{inertial}</link>' for name in ("crank", "coupler", "rocker"))

    def joint(name, parent, child, at, rpy, axis):
        ends = f'<parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>'
        return f'<joint name="{name}" type="continuous"><origin xyz="{at}" rpy="{rpy} 0 0"/>{ends}</joint>'

    text = (
        f'<robot name="r"><link name="world"/>{links}'
        + joint("A", "world", "crank", "0 0 0", "1.5708", "0 1 0")
        + joint("B", "crank", "coupler", "0 0 -0.5", "-1.5708", "0 0 1")
        + joint("D", "world", "rocker", "1.1 0 0", "0", "0 0 1")
        + '<loop name="C" type="revolute"><predecessor link="coupler"><origin xyz="1.2 0.4 0"/></predecessor>'
        + '<successor link="rocker"><origin xyz="0.1 0.9 0"/></successor><axis xyz="0 0 1"/></loop></robot>'
    )
    system = ld.read_urdf(text).mechanism.compile()
    with pytest.raises(ld.errors.AssemblyError, match=r"contradict each other.*'A' on 'ground' about x by"):
        ld.assemble(system)
    state = ld.assemble(system, q={"A": 0.2}, tolerance=1e-5)
    found = ld.mobility(system, state)
    assert (found.dof, found.redundant) == (1, 3)
    assert max(found.tolerated.values()) < 3.7e-6 * 1.5  # the tilt over the longest way through the loop, 1.3 m
