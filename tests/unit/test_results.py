"""Runs handed on: files, tables, summaries, comparisons."""

import csv

import numpy as np
import pytest

import loopdyn as ld

G = 9.81


@pytest.fixture(scope="module")
def run() -> ld.results.Run:
    system = ld.library.four_bar().compile()
    return ld.simulate(system, ld.assemble(system), (0, 0.4), t_eval=np.linspace(0, 0.4, 41), progress=False)


def bouncing() -> ld.results.Run:
    m = ld.Mechanism("slide", gravity=(0, 0, -G))
    m.add_body("mass", ld.Inertia.sphere(mass=2.0, radius=0.1, at=(0, 0, 0)))
    m.add_joint("s", ld.Prismatic(axis=(0, 0, 1)), m.ground, "mass", at=(0, 0, 0), limits=(-1, 5))
    m.add_force("friction", ld.forces.JointFriction(joint="s", viscous=0.1))
    system = m.compile()
    return ld.simulate(system, system.state(), (0, 1.5), events=[ld.events.Limits(restitution=0.8)], progress=False)


def test_a_saved_run_is_the_same_when_it_is_loaded(tmp_path):
    run = bouncing()
    run.save(tmp_path / "run.nc")
    again = ld.load_run(tmp_path / "run.nc")
    for name in ("t", "q", "v", "a", "work", "steps"):
        np.testing.assert_array_equal(getattr(again.path, name), getattr(run.path, name))
    assert again.status == run.status
    assert again.settings == dict(run.settings)
    assert again.statistics == run.statistics
    assert [(e.t, e.name, e.energy_loss) for e in again.events] == [(e.t, e.name, e.energy_loss) for e in run.events]
    assert again.energy_error == run.energy_error
    assert again.data.identical(run.data)


def test_a_saved_run_of_a_closed_mechanism_keeps_its_cuts(tmp_path):
    system = ld.library.four_bar().compile(cuts=["B"])
    run = ld.simulate(system, ld.assemble(system), (0, 0.1), t_eval=[0.0, 0.1], progress=False)
    run.save(tmp_path / "run.nc")
    again = ld.load_run(tmp_path / "run.nc")
    assert again.system.topology.cuts == ("B",)
    np.testing.assert_array_equal(again.data["wrench"], run.data["wrench"])


def test_files_that_are_no_runs_are_refused_in_words(tmp_path, run):
    (tmp_path / "x.nc").write_text("no run")
    with pytest.raises(ld.LoopdynError, match="is not a run that loopdyn saved"):
        ld.load_run(tmp_path / "x.nc")
    with pytest.raises(ld.LoopdynError, match="cannot be read: No such file"):
        ld.load_run(tmp_path / "nowhere.nc")
    with pytest.raises(ld.LoopdynError, match=r"must end in \.nc"):
        run.save(tmp_path / "x.txt")


def test_a_table_has_a_row_per_time_and_keeps_all_digits(tmp_path, run):
    run.to_csv(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 41
    expected = {"q A": run.path.q[:, 0], "C.fx": run.data["wrench"].sel(joint="C", component="fx").values}
    for column, values in expected.items():
        assert [float(row[column]) for row in rows] == values.tolist()


def test_the_summary_names_the_largest_reactions_and_their_times(run):
    table = run.summary()
    values = run.data["wrench"].sel(joint="A", component="fx").values
    assert table.loc["A.fx", "max"] == values.max()
    assert table.loc["A.fx", "t_max"] == run.path.t[np.argmax(values)]
    assert table.loc["A.fx", "rms"] == pytest.approx(np.sqrt(np.trapezoid(values**2, run.path.t) / np.ptp(run.path.t)))
    assert "A.mz" not in table.index  # a pin carries no moment about its axis


def test_shaking_is_what_the_pins_on_the_ground_carry(run):
    """Force on the ground: minus the forces on crank and rocker at A and D, whose frames do not turn."""
    wrench = run.data["wrench"]
    system = run.system
    total = np.zeros((len(run.path), 3))
    for joint in ("A", "D"):
        axes = system.reference_poses[0][1] @ system.joints[joint].F[1]
        total -= wrench.sel(joint=joint, component=["fx", "fy", "fz"]).values @ axes.T
    np.testing.assert_allclose(run.shaking[:, :3], total, atol=1e-9 * np.abs(total).max())


def test_shaking_moment_of_a_pendulum():
    """A weight that hangs at rest at x = -1 on a motor that holds it: force -m g, moment x times force."""
    m = ld.library.pendulum()
    m.add_motor("hold", "A", torque="-9.81")
    system = m.compile()
    run = ld.simulate(system, system.state(), (0, 0.1), t_eval=[0.0], progress=False)
    np.testing.assert_allclose(run.path.a, 0.0, atol=1e-12)
    np.testing.assert_allclose(run.shaking[0], [0, -G, 0, 0, 0, G], atol=1e-12)


def test_a_run_compared_with_another_formulation(run):
    other = ld.simulate(run.system, ld.assemble(run.system), (0, 0.4), t_eval=run.path.t, formulation="oracle",
                        progress=False)  # fmt: skip
    table = run.compare(other)
    assert {"q A", "v A", "A.fx", "energy_kinetic"} <= set(table.index)
    assert table["largest"].max() < 1e-8  # both take the same steps: only rounding differs


def test_runs_with_other_outputs_are_compared_where_both_are(run):
    other = ld.simulate(run.system, ld.assemble(run.system), (0, 0.3), t_eval=np.linspace(0, 0.3, 50), progress=False)
    table = run.compare(other)
    assert table.loc["q A", "largest"] < 1e-6


def test_variants_beside_each_other():
    runs = []
    for length in (1.0, 1.2):
        system = ld.library.pendulum().with_(length=length).compile()
        runs.append(ld.simulate(system, ld.assemble(system), (0, 1), t_eval=np.linspace(0, 1, 11), progress=False))
    together = ld.results.compare_runs(runs, ["short", "long"])
    assert together["q"].sizes == {"run": 2, "time": 11, "coordinate": 1}
    # the longer one is slower
    assert together["q"].sel(run="long").values[5, 0] < together["q"].sel(run="short").values[5, 0]
    with pytest.raises(ld.LoopdynError, match="different names"):
        ld.results.compare_runs(runs, ["same", "same"])


def test_a_run_is_drawn_and_shown(tmp_path, run):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    assert len(run.plot.reactions("C").axes) == 2
    plt.close("all")
    page = run.animate(tmp_path / "run.html", frames=5)
    assert "coupler" in page.read_text(encoding="utf-8")


def test_loads_have_the_unit_of_what_they_act_on():
    """A motor on a hinge, one on a slide, a spring between points, a torsion spring, a driver of an angle."""
    m = ld.library.slider_crank()
    slide = next(name for name, j in m.joints.items() if j.type == "prismatic")
    m.add_motor("turning", "A", torque=0.1)
    m.add_motor("pushing", slide, force=1.0)
    m.add_force(None, ld.forces.JointSpring(joint="B", stiffness=0.1, name="torsion"))
    first, *_, last = m.bodies
    ends = {"body1": first, "body2": last, "point1": (0, 0, 0.1), "point2": (1, 0, 0.1)}
    m.add_force(None, ld.forces.SpringDamper(**ends, stiffness=1.0, length=1.0, name="spring"))
    m.add_driver("drive", "A", "t")
    system = m.compile()
    run = ld.simulate(system, ld.assemble(system, v={"A": 1.0}), (0, 0.1), progress=False)
    units = dict(zip(run.data["force"].values, run.data["force_units"].values, strict=True))
    assert units == {"turning": "N*m", "pushing": "N", "torsion": "N*m", "spring": "N"}
    assert run.data["constraint_units"].values.tolist() == ["N*m"]
    summary = run.summary()
    assert summary.loc["pushing load", "unit"] == "N"
    assert summary.loc["turning load", "unit"] == "N*m"
    assert summary.loc["drive", "unit"] == "N*m"
