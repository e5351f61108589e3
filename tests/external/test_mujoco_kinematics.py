"""Jacobians and velocities with loops closed against MuJoCo's Jacobians of equality constraints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space

import loopdyn as ld

mujoco = pytest.importorskip("mujoco", reason="MuJoCo has no wheels for this platform")

from tests.external.mujoco_loops import equality  # noqa: E402  after the check that MuJoCo is there

LINK = '<inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>'


def model(ends, closing):
    """Chains of links in the x-y plane, each from its base to the next points; the two ends are connected."""
    text, names = "", iter("ABCDE")
    for chain, points in enumerate(ends):
        for k, (base, point) in enumerate(zip([(0, 0), *points], points, strict=False)):
            x, y = np.subtract(point, base)
            text += f'<body name="link{chain}{k}" pos="{x} {y} 0">{LINK}<joint name="{next(names)}" axis="0 0 1"/>'
        text += "</body>" * len(points)
    connect = f'<connect body1="{closing[0]}" body2="{closing[1]}" anchor="{closing[2]} {closing[3]} 0"/>'
    return f'<mujoco><option gravity="0 0 0"/><worldbody>{text}</worldbody><equality>{connect}</equality></mujoco>'


# positions of the pins of each chain; body1, body2 and the pin that closes the loop in axes of body1
FOUR = model([[(0, 0), (0, 0.5)], [(1.1, 0)]], ("link01", "link10", 1.2, 0.4))
FIVE = model([[(0, 0), (-0.3, 0.6)], [(0.8, 0), (1.1, 0.7)]], ("link01", "link11", 0.7, 0.6))


@pytest.mark.parametrize(("text", "inputs", "body"), [(FOUR, "A", "link01"), (FOUR, "A", "link10"),
                                                      (FIVE, "AC", "link01"), (FIVE, "AB", "link11")])  # fmt: skip
@pytest.mark.parametrize("turned", [0.0, 0.4, -0.3])
def test_closed_jacobians_and_velocities_are_those_of_mujocos_equality_rows(text, inputs, body, turned, tmp_path):
    file = tmp_path / "loop.xml"
    file.write_text(text)
    with pytest.warns(ld.LoopdynWarning, match="equalities are soft in MuJoCo"):
        system = ld.load(file).compile()
    state = ld.assemble(system, {"A": turned}, dict.fromkeys(inputs, 0.7))
    joints = mujoco.MjModel.from_xml_string(text)
    data, names = mujoco.MjData(joints), [joints.joint(k).name for k in range(joints.njnt)]
    data.qpos[:] = [state[name] for name in names]
    mujoco.mj_forward(joints, data)
    rows = equality(joints, data, 0)[0]
    assert np.abs(data.efc_pos[:3]).max() < 1e-9  # closed at loopdyn's pose; assembled to 1e-12
    np.testing.assert_allclose(np.abs(data.efc_J.reshape(-1, joints.nv)[:3]), np.abs(rows), atol=1e-12)
    N = null_space(rows, rcond=1e-9)
    assert N.shape[1] == len(inputs)
    N = N @ np.linalg.inv(N[[names.index(label) for label in inputs]])
    linear, angular = np.zeros((3, joints.nv)), np.zeros((3, joints.nv))
    where = joints.body(body).id
    mujoco.mj_jac(joints, data, linear, angular, data.xpos[where], where)
    expected = np.vstack([angular, linear]) @ N
    found = ld.kinematics(system, state)
    # closed to 1e-12; loops with conditions below 100 at these poses
    np.testing.assert_allclose(found.jacobian(body, wrt=list(inputs)).values, expected, atol=1e-9)
    v = expected @ np.full(len(inputs), 0.7)
    motion = found.body(body)
    np.testing.assert_allclose(np.hstack([motion["angular_velocity"], motion["velocity"]]), v, atol=1e-9)
    np.testing.assert_allclose([state[f"{name}.speed"] for name in names], N @ np.full(len(inputs), 0.7), atol=1e-9)
