"""Real closed-loop models beside MuJoCo: the accelerations of the same state, and a run.

A gripper of our own, the biped Cassie as an installable package ships it, mechanisms of the library.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopdyn as ld

mujoco = pytest.importorskip("mujoco")

from tests.external.mujoco_loops import exact_accelerations  # noqa: E402
from tests.packages import cassie_file  # noqa: E402

GRIPPER = Path(__file__).parents[2] / "examples" / "gripper.xml"
# Rounding, times the condition of the saddle point systems (measured: 1e-12 and below), relative to the largest entry.
TOLERANCE = 1e-9


def some_state(found, seed: int, spread: float = 0.2) -> tuple[ld.System, ld.State]:
    """A closed state near the drawn one, moving."""
    system = found.compile()
    rng = np.random.default_rng(seed)
    start = ld.assemble(system, limits=False)
    J = ld.terms(system, start).J
    free = np.eye(system.nv) - np.linalg.pinv(J) @ J if len(J) else np.eye(system.nv)
    guess = ld.tree.increment(system, start.q, spread * free @ rng.uniform(-1, 1, system.nv))
    labels = [s for s in system.coordinates if s in system.speeds]
    q = {s: guess[system.coordinates.index(s)] for s in labels}
    state = ld.assemble(system, q=q, fix=[], limits=False)
    J = ld.terms(system, state).J
    wanted = rng.uniform(-1, 1, system.nv)
    return system, system.state(state.q, wanted - np.linalg.pinv(J) @ (J @ wanted) if len(J) else wanted)


def check(found, model: mujoco.MjModel, seed: int) -> None:
    system, state = some_state(found, seed)
    qpos, qvel = found.to_mujoco(system, state)
    expected, gap, slip = exact_accelerations(model, qpos, qvel)
    assert gap < 1e-9, "MuJoCo must find the loops closed, too"
    assert slip < 1e-9
    a = found.qacc(system, state, ld.accelerations(system, state))
    assert np.abs(a - expected).max() < TOLERANCE * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("seed", range(3))
def test_a_gripper(seed):
    """Two four-bars (a connect each), coupled by a joint equality; springs, dampers, armature."""
    found = ld.read_mjcf(GRIPPER)
    system = found.compile()
    assert ld.mobility(system, system.state()).dof == 1
    check(found, mujoco.MjModel.from_xml_path(str(GRIPPER)), seed)


@pytest.mark.parametrize("name", ["andrews", "rssr", "stewart_3rrs", "stewart_6ups", "tower", "random_mechanism"])
def test_mechanisms_of_the_library_written_as_mjcf(name, tmp_path):
    """MuJoCo computes with the exported file what loopdyn computes with the imported one."""
    file = tmp_path / "m.xml"
    m = ld.library.turned(ld.library.ALL[name]())
    ld.write_mjcf(m, file)
    check(ld.read_mjcf(file), mujoco.MjModel.from_xml_path(str(file)), 1)


@pytest.mark.parametrize("seed", range(3))
def test_cassie_from_sdf_through_mjcf(seed, tmp_path):
    """The biped with its four loops and springs: the SDF becomes MJCF, which MuJoCo computes by itself."""
    cassie = ld.read_sdf(cassie_file(), gravity=(0.5, -1.0, -9.81)).mechanism
    cassie.joints.update({n: j.model_copy(update={"limits": None}) for n, j in cassie.joints.items()})
    file = tmp_path / "cassie.xml"
    report = ld.write_mjcf(cassie, file)
    assert not report.left_out
    check(ld.read_mjcf(file), mujoco.MjModel.from_xml_path(str(file)), seed)


def test_cassie_falls_with_its_loops_closed_and_its_energy_kept():
    """A run: springs and gravity are conservative, dampers are taken out; momentum grows by the weight."""
    cassie = ld.read_sdf(cassie_file()).mechanism
    cassie.joints.update({n: j.model_copy(update={"limits": None}) for n, j in cassie.joints.items()})
    for name, force in list(cassie.forces.items()):
        cassie.forces[name] = force.model_copy(update={"damping": 0.0})
    system = cassie.compile()
    state = ld.assemble(system, v={"pelvis base.wx": 0.5, "left-pitch-op": 1.0})
    run = ld.simulate(system, state, (0.0, 0.2))
    assert run.status == "finished"
    assert run.largest_residual < 1e-9
    assert run.energy_error < 1e-6
    mass = sum(float(b.mass) for b in cassie.bodies.values())
    before, after = (ld.tree.energy(system, ld.State(0.0, run.path.q[k], run.path.v[k])).momentum for k in (0, -1))
    assert after - before == pytest.approx([0.0, 0.0, -mass * 9.8 * 0.2], abs=1e-6)


def test_a_run_of_the_gripper_beside_mujoco_with_stiff_equalities():
    """MuJoCo's soft equalities with a time constant of 2 steps of 0.1 ms: the same motion up to their softness."""
    found = ld.read_mjcf(GRIPPER)
    model = mujoco.MjModel.from_xml_path(str(GRIPPER))
    model.opt.timestep = 1e-4
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    model.eq_solref[:] = [2e-4, 1.0]
    data = mujoco.MjData(model)
    for _ in range(2000):
        mujoco.mj_step(model, data)
    system = found.compile()
    run = ld.simulate(system, ld.assemble(system, limits=False), (0.0, 0.2))
    qpos, _ = found.to_mujoco(system, ld.State(0.2, run.path.q[-1], run.path.v[-1]))
    assert abs(qpos[0]) > 5e-3  # it has moved
    assert qpos == pytest.approx(data.qpos, abs=2e-3 * abs(qpos[0]))  # first order in step and softness
