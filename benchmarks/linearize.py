"""Linear equations of a closed loop by several tools: a hanging parallelogram; time of a platform.

Cranks of 1 m and 1 kg, coupler of 2 m and 2 kg: omega^2 = 3 g/(8/3) = 11.03625. Each tool is used as its documentation
says for mechanisms with loops; tools that are not installed are left out. All of them are on PyPI:

    pip install pin mujoco exudyn drake
    python benchmarks/linearize.py
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable

import numpy as np

import loopdyn as ld

G, EXPECTED = 9.81, 3 * 9.81 / (8 / 3)
REPEATS = 20

MJCF = """
<mujoco>
  <option gravity="0 -9.81 0" timestep="1e-4"/>
  <worldbody>
    <body><joint name="A" axis="0 0 1"/>
      <inertial pos="0 -0.5 0" mass="1" diaginertia="0.08333333333333333 1e-6 0.08333333333333333"/>
      <body pos="0 -1 0"><joint name="B" axis="0 0 1"/>
        <inertial pos="1 0 0" mass="2" diaginertia="1e-6 0.6666666666666666 0.6666666666666666"/>
        <site name="one" pos="2 0 0"/></body></body>
    <body pos="2 0 0"><joint name="D" axis="0 0 1"/>
      <inertial pos="0 -0.5 0" mass="1" diaginertia="0.08333333333333333 1e-6 0.08333333333333333"/>
      <site name="two" pos="0 -1 0"/></body>
  </worldbody>
  <equality><connect site1="one" site2="two"/></equality>
</mujoco>
"""


def parallelogram() -> ld.Mechanism:
    m = ld.Mechanism("parallelogram", gravity=(0, -G, 0))
    m.add_body("crank", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(0, -1, 0)))
    m.add_body("coupler", ld.Inertia.rod(mass=2.0, start=(0, -1, 0), end=(2, -1, 0)))
    m.add_body("rocker", ld.Inertia.rod(mass=1.0, start=(2, 0, 0), end=(2, -1, 0)))
    pairs = {"A": ("ground", "crank", (0, 0, 0)), "B": ("crank", "coupler", (0, -1, 0)),
             "C": ("coupler", "rocker", (2, -1, 0)), "D": ("ground", "rocker", (2, 0, 0))}  # fmt: skip
    for name, (parent, child, at) in pairs.items():
        m.add_joint(name, ld.Revolute(axis=(0, 0, 1)), parent, child, at=at)
    return m


def by_loopdyn() -> str:
    poles = ld.linearize(parallelogram().compile()).poles()
    return f"omega^2 = {-(poles**2).real[0]:.12g}"


def by_pinocchio() -> str:
    """Derivatives of accelerations with a point closure, projected on the only motion."""
    import pinocchio as pin

    model = pin.Model()
    model.gravity.linear = np.array([0.0, -G, 0.0])

    def rod(parent: int, at: tuple[float, ...], com: tuple[float, ...], mass: float, length: float) -> int:
        joint = model.addJoint(parent, pin.JointModelRZ(), pin.SE3(np.eye(3), np.array(at)), f"j{model.njoints}")
        about = mass * length**2 / 12
        model.appendBodyToJoint(joint, pin.Inertia(mass, np.array(com), np.diag([about] * 3)), pin.SE3.Identity())
        return joint

    crank = rod(0, (0, 0, 0), (0, -0.5, 0), 1.0, 1.0)
    coupler = rod(crank, (0, -1, 0), (1, 0, 0), 2.0, 2.0)
    rocker = rod(0, (2, 0, 0), (0, -0.5, 0), 1.0, 1.0)
    ends = [pin.SE3(np.eye(3), np.array(p)) for p in ((2.0, 0, 0), (0, -1.0, 0))]
    loop = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, coupler, ends[0], rocker, ends[1], pin.LOCAL)
    data = model.createData()
    constraints, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    constraints.append(loop)
    datas.append(loop.createData())
    settings = pin.ProximalSettings(1e-12, 1e-10, 20)
    zero = np.zeros(3)
    pin.initConstraintDynamics(model, data, constraints, datas)
    pin.constraintDynamics(model, data, zero, zero, zero, constraints, datas, settings)
    pin.computeConstraintDynamicsDerivatives(model, data, constraints, datas, settings)
    motion = np.array([1.0, -1.0, 1.0])
    return f"omega^2 = {-(data.ddq_dq @ motion)[0]:.12g}"


def by_mujoco() -> str:
    """Discrete transition matrix by differences, as continuous poles; the softness of the closure adds others."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    n = 2 * model.nv
    A = np.zeros((n, n))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, A, None, None, None)
    poles = np.log(np.linalg.eigvals(A).astype(complex)) / model.opt.timestep
    poles = poles[np.argsort(abs(poles))]
    return f"omega^2 = {abs(poles[0]) ** 2:.9g}; poles {', '.join(f'{p:.4g}' for p in poles)}"


def by_exudyn() -> str:
    """Eigenvalues with constraints, plane bodies."""
    import exudyn as exu
    from exudyn.utilities import (
        Force,
        MarkerBodyPosition,
        NodeRigidBody2D,
        ObjectGround,
        ObjectJointRevolute2D,
        ObjectRigidBody2D,
    )

    mbs = exu.SystemContainer().AddSystem()
    ground = mbs.AddObject(ObjectGround())

    def body(x: float, y: float, mass: float, length: float) -> int:
        node = mbs.AddNode(NodeRigidBody2D(referenceCoordinates=[x, y, 0.0]))
        made = mbs.AddObject(ObjectRigidBody2D(mass=mass, inertia=mass * length**2 / 12, nodeNumber=node))
        centre = mbs.AddMarker(MarkerBodyPosition(bodyNumber=made))
        mbs.AddLoad(Force(markerNumber=centre, loadVector=[0.0, -mass * G, 0.0]))
        return int(made)

    crank, coupler, rocker = body(0, -0.5, 1, 1), body(1, -1, 2, 2), body(2, -0.5, 1, 1)
    pins = (
        (ground, (0, 0), crank, (0, 0.5)),
        (crank, (0, -0.5), coupler, (-1, 0)),
        (coupler, (1, 0), rocker, (0, -0.5)),
        (ground, (2, 0), rocker, (0, 0.5)),
    )

    def marker(of: int, at: tuple[float, float]) -> int:
        return int(mbs.AddMarker(MarkerBodyPosition(bodyNumber=of, localPosition=[*at, 0.0])))

    for one, p, other, q in pins:
        markers = [marker(one, p), marker(other, q)]
        mbs.AddObject(ObjectJointRevolute2D(markerNumbers=markers))
    mbs.Assemble()
    before = mbs.ComputeODE2Eigenvalues()[0]
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = 1, 1e-3
    settings.timeIntegration.verboseMode, settings.solution.file.write = 0, False
    mbs.SolveDynamic(settings, updateInitialValues=True)  # constraint forces are then those of the weight
    after = mbs.ComputeODE2Eigenvalues()[0]
    said = [", ".join(f"{x:.9g}" for x in np.atleast_1d(values)) for values in (before, after)]
    return f"omega^2 = {said[0]}; after a step, with constraint forces known, {said[1]}"


def by_drake() -> str:
    """`Linearize` with the loop closed by a ball; in steps of 1 ms the state need not be an equilibrium."""
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
    from pydrake.multibody.tree import FixedOffsetFrame, RevoluteJoint, SpatialInertia, UnitInertia
    from pydrake.systems.framework import InputPortSelection, OutputPortSelection
    from pydrake.systems.primitives import FirstOrderTaylorApproximation, Linearize

    def made(step: float) -> str:
        plant = MultibodyPlant(time_step=step)
        if step:
            plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
            plant.SetUseSampledOutputPorts(False)  # otherwise the state is not of numbers alone
        plant.mutable_gravity_field().set_gravity_vector([0.0, -G, 0.0])

        def rod(name: str, parent: object, at: tuple[float, ...], com: tuple[float, ...], mass: float) -> object:
            about = np.linalg.norm(com) ** 2 / 3  # square of half a length over 3, per mass, about the centre
            own = UnitInertia(about, about, about).ShiftFromCenterOfMass([-x for x in com])
            body = plant.AddRigidBody(name, SpatialInertia(mass, com, own))
            frame = plant.AddFrame(
                FixedOffsetFrame(f"pin of {name}", parent.body_frame(), RigidTransform(np.array(at)))
            )
            plant.AddJoint(RevoluteJoint(f"to {name}", frame, body.body_frame(), [0.0, 0.0, 1.0]))
            return body

        crank = rod("crank", plant.world_body(), (0, 0, 0), (0, -0.5, 0), 1.0)
        coupler = rod("coupler", crank, (0, -1, 0), (1, 0, 0), 2.0)
        rocker = rod("rocker", plant.world_body(), (2, 0, 0), (0, -0.5, 0), 1.0)
        plant.AddBallConstraint(coupler, np.array([2.0, 0, 0]), rocker, np.array([0, -1.0, 0]))
        plant.Finalize()
        ports = InputPortSelection.kNoInput, OutputPortSelection.kNoOutput
        by = FirstOrderTaylorApproximation if step else Linearize  # a soft closure is not quite at rest at this pose
        A = by(plant, plant.CreateDefaultContext(), *ports).A()
        poles = np.log(np.linalg.eigvals(A).astype(complex)) / step if step else np.linalg.eigvals(A)
        poles = poles[np.argsort(abs(poles))]
        return f"omega^2 = {abs(poles[0]) ** 2:.9g}; poles {', '.join(f'{p:.4g}' for p in poles)}"

    said = []
    for name, step in (("continuous", 0.0), ("steps of 1 ms", 1e-3)):
        try:
            said.append(f"{name}: {made(step)}")
        except (RuntimeError, ValueError) as error:
            said.append(f"{name}: refused, {str(error).splitlines()[0]}")
    return "; ".join(said)


def platform_time() -> str:
    """Shortest of several calls for the 6-UPS platform at one state, prepared."""
    system = ld.library.stewart_6ups().compile()
    state = ld.assemble(system)
    ld.linearize(system, state)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        ld.linearize(system, state)
        times.append(time.perf_counter() - start)
    return f"{1e3 * min(times):.2f} ms, median {1e3 * float(np.median(times)):.2f} ms"


def attempt(name: str, by: Callable[[], str]) -> None:
    """Print what a tool answers; it works in a temporary folder, since some write files where they are."""
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            print(f"{name:<10} {by()}")
    except ImportError:
        print(f"{name:<10} not installed")


def main() -> None:
    print(f"hanging parallelogram, expected omega^2 = {EXPECTED:.12g}")
    for name, by in (
        ("loopdyn", by_loopdyn),
        ("exudyn", by_exudyn),
        ("pinocchio", by_pinocchio),
        ("mujoco", by_mujoco),
        ("drake", by_drake),
    ):
        attempt(name, by)
    print(f"linearize of the 6-UPS platform, 12 states: {platform_time()}")


if __name__ == "__main__":
    main()
