"""Stops in files of other tools: ranges of MuJoCo's joints, stops written as ranges, contacts in a sidecar of URDF."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import loopdyn as ld
from loopdyn.contacts import Stop

FLAP = """<mujoco><option gravity="0 0 -9.81" timestep="0.0005"/><worldbody><body name="b">
  <joint name="j" axis="0 -1 0" range="-30 10" limited="true" solreflimit="0.002 1"/>
  <geom type="capsule" fromto="0 0 0 1 0 0" size=".05" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""


def test_a_range_is_a_rigid_stop_whose_torque_at_rest_is_that_of_mujoco():
    found = ld.read_mjcf(FLAP)
    assert list(found.mechanism.contacts) == ["j range"]
    assert "soft in MuJoCo (solreflimit, solimplimit, margin); here they are rigid stops" in str(found.report)
    system = found.compile()
    run = ld.simulate(system, system.state(), (0, 2), progress=False)
    assert run.status == "finished"
    assert run["j"].values[-1] == pytest.approx(np.radians(-30.0), abs=1e-10)
    model = mujoco.MjModel.from_xml_string(FLAP)
    data = mujoco.MjData(model)
    for _ in range(4000):
        mujoco.mj_step(model, data)
    # MuJoCo rests a little beyond the range, where the lever of the weight is another
    assert run["j range.force"].values[-1] == pytest.approx(data.qfrc_constraint[0], rel=1e-3)
    hit = next(e for e in run.events if e.kind == "impact")
    mujoco.mj_resetData(model, data)
    while data.qpos[0] > np.radians(-30.0):
        mujoco.mj_step(model, data)
    assert hit.t == pytest.approx(data.time, abs=2 * 0.0005)  # two of MuJoCo's steps


@pytest.mark.parametrize("flag", ["limit", "constraint"])
def test_a_range_that_is_switched_off_is_no_stop(flag):
    text = FLAP.replace("<worldbody>", f'<option><flag {flag}="disable"/></option><worldbody>')
    assert not ld.read_mjcf(text).mechanism.contacts


def test_a_start_beyond_a_range_is_moved_to_it():
    system = ld.read_mjcf(FLAP.replace('range="-30 10"', 'range="5 10"')).compile()
    state = ld.assemble(system)
    assert state["j"] == pytest.approx(np.radians(5.0), abs=1e-9)


def flap(*stops: Stop) -> ld.Mechanism:
    m = ld.Mechanism("flap", gravity=(0, -9.81, 0), units={"angle": "deg"})
    m.add_body("rod", ld.Inertia.rod(mass=2.0, start=(0, 0, 0), end=(0.5, 0, 0), radius=0.01))
    m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    for k, stop in enumerate(stops):
        m.add_contact(f"stop{k}", stop)
    return m


def test_a_stop_is_written_as_a_range(tmp_path):
    report = ld.write_mjcf(flap(Stop(joint="A", lower=-30, upper=20)), tmp_path / "flap.xml")
    assert "soft stops in MuJoCo" in str(report)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "flap.xml"))
    np.testing.assert_allclose(model.jnt_range[0], np.radians([-30, 20]), rtol=1e-12)
    assert model.jnt_limited[0]
    again = ld.read_mjcf(tmp_path / "flap.xml").mechanism
    assert len(again.contacts) == 1


@pytest.mark.parametrize(
    "stop",
    [Stop(joint="A", lower=-30), Stop(joint="A", lower=-30, upper=1, stiffness=5.0)],
)
def test_what_is_no_range_is_refused_or_left_out(stop, tmp_path):
    with pytest.raises(ld.errors.ModelError, match=r"contact 'stop0'.*cannot be said in MJCF"):
        ld.write_mjcf(flap(stop), tmp_path / "flap.xml")
    report = ld.write_mjcf(flap(stop), tmp_path / "flap.xml", leave_out=True)
    assert "contact 'stop0'" in str(report)


def test_contacts_are_kept_in_the_sidecar_of_urdf(tmp_path):
    m = flap(Stop(joint="A", lower=-30, restitution=0.5))
    m.impact = "sequential"
    ld.write_urdf(m, tmp_path / "flap.urdf")
    again = ld.read_urdf(tmp_path / "flap.urdf", loops=tmp_path / "flap.loops.yaml").mechanism
    assert again.impact == "sequential"
    assert again.contacts == m.contacts
    runs = [ld.simulate(x.compile(), None, (0, 1), progress=False) for x in (m, again)]
    np.testing.assert_allclose(*([e.t for e in run.events] for run in runs), rtol=1e-9)
