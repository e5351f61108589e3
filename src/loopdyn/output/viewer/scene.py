"""Scene of a page: bodies, joints, views, poses and quantities of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.output.drawing import Drawing, RunLike, Shape, world_frames
from loopdyn.output.viewer.in_plane import planar_motion
from loopdyn.output.viewer.numbers import Array, floats, packed, quaternions
from loopdyn.output.viewer.quantities import chosen_plots, quantities_of, transmission_groups
from loopdyn.quantities.wording import unknown
from loopdyn.results.units import coordinate_units, dimensions, shown, speed_units
from loopdyn.system.system import JointData, Pose, State, System, point_on
from loopdyn.tree.functions import body_motion

Trace = str | tuple[str, ArrayLike]

SHOWN = ("length", "mass", "force", "torque")  # dimensions of what a page shows with the quantities of the run
# Number of poses that are sampled to find the extent of the motion.
POSES_FOR_ROOM = 60


def describe(
    run: RunLike,
    *,
    frames: int | None = 1000,
    traces: Iterable[Trace] = (),
    forces: bool | Sequence[str] = True,
    plots: Sequence[str] | None = None,
    room: float = 0.0,
) -> dict[str, Any]:
    """Scene of a run as JSON data; arguments as in :func:`~loopdyn.output.viewer.page.write_page`.

    The view has a margin `room` around the motion, relative to its size, for later poses of :class:`StillPose`.
    """
    system, data = run.system, run.data
    drawing = Drawing(system)
    time = np.asarray(data["time"], float)
    if len(time) == 0:
        raise LoopdynError(f"the run of '{system.name}' has no output. Simulate it first.")
    kept = _chosen_moments(time, frames)
    joints = _chosen_joints(data, forces)
    data = data.isel(time=kept)
    arrays, quantities = quantities_of(system, data, joints)
    x, R = (array[kept] for array in run.poses())
    arrays |= {"time": packed(time[kept], "float64"), "position": packed(x), "rotation": packed(quaternions(R))}
    linear, angular = run.velocities()
    planar = planar_motion(drawing, (linear[kept], angular[kept])) if len(time) > 1 else {}
    if planar:
        arrays |= planar.pop("arrays")
        quantities += transmission_groups(system, (x, R), arrays)
    return {
        "name": system.name,
        "in_plane": planar or None,
        "samples": len(time),
        "view": _view(drawing, (x, R), room),
        "units": {x: {"unit": system.units.symbol(x), "si": system.units.factor(x)} for x in SHOWN},
        "bar": drawing.bar,
        "size": drawing.size,
        "bodies": [
            {
                "name": b.name,
                "mass": b.mass,
                "com": floats(b.com),
                "reference": _pose(system.reference_poses[b.row]),
                "colour": b.colour,
                "shapes": [_shape(s) for s in b.shapes],
            }
            for b in drawing.bodies
        ],
        "bases": system.n_bases,
        "joints": [_joint(drawing, j, (x, R), joints) for j in drawing.joints],
        "spans": [
            {"name": s.name, "kind": s.kind, "bodies": list(s.bodies), "points": [floats(p) for p in s.points]}
            for s in drawing.spans
        ],
        "traces": [_trace(drawing, t) for t in traces],
        "coordinates": _labelled(system.coordinates, coordinate_units(system)),
        "speeds": _labelled(system.speeds, speed_units(system)),
        "arrays": arrays,
        "quantities": quantities,
        "plots": chosen_plots(quantities, plots),
    }


class StillPose:
    """Mechanism at one pose, with the attributes of a run that pages need.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> StillPose(system, system.state()).data["q"].shape
    (1, 1)
    """

    def __init__(self, system: System, state: State):
        import xarray as xr

        self.system, self._state = system, state
        self.data = xr.Dataset(
            {"q": (("time", "coordinate"), shown(system, state.q[None], dimensions(system, "coordinate")))},
            {"time": [state.t], "coordinate": list(system.coordinates)},
        )

    def poses(self) -> tuple[Array, Array]:
        """Positions (1, body, 3) and rotations (1, body, 3, 3)."""
        motion = body_motion(self.system, self._state)
        return motion.position[None], motion.rotation[None]

    def velocities(self) -> tuple[Array, Array]:
        """Velocities and angular velocities (1, body, 3) of the state."""
        motion = body_motion(self.system, self._state)
        return motion.velocity[None], motion.angular_velocity[None]

    def placement(self) -> dict[str, list[float]]:
        """Arrays of the pose in the form that ``page.place`` of a page needs."""
        x, R = self.poses()
        found = {"position": x, "rotation": quaternions(R), "q": self.data["q"].values}
        return {name: floats(np.ravel(values)) for name, values in found.items()}


def _chosen_moments(time: Array, frames: int | None) -> NDArray[np.intp]:
    if frames is not None and frames < 1:
        raise LoopdynError(f"frames is {frames}. Give a number of at least 1, or None for all.")
    if frames is None or len(time) <= frames:
        return np.arange(len(time))
    even = np.linspace(time[0], time[-1], frames)
    return np.unique(np.abs(np.searchsorted(time, even)).clip(0, len(time) - 1))


def _chosen_joints(data: Any, forces: bool | Sequence[str]) -> list[str]:
    if "wrench" not in data or forces is False:
        return []
    known = [str(name) for name in data["joint"].values]
    if forces is True:
        return known
    wrong = [name for name in forces if name not in known]
    if wrong:
        raise unknown("forces", "joint", wrong, known)
    return list(forces)


def _trace(drawing: Drawing, trace: Trace) -> dict[str, Any]:
    s = drawing.system
    if isinstance(trace, str):
        if trace not in s.joints:
            raise unknown("traces", "joint", [trace], s.joints)
        j = s.joints[trace]
        return {"name": trace, "body": j.child, "point": floats(j.M[0])}
    body, point = trace
    if body not in s.bodies:
        raise unknown("traces", "body", [body], s.bodies)
    row = s.bodies.index(body)
    where = np.asarray(point, float)
    if where.shape != (3,) or not np.isfinite(where).all():
        raise ModelError(
            [
                Problem(
                    "traces", f"the point of body '{body}' is not x, y, z", f"Give three numbers in {s.units.length}."
                )
            ]
        )
    name = f"{body} ({', '.join(f'{v:g}' for v in where)})"
    return {"name": name, "body": row, "point": floats(point_on(s, body, where))}


def _view(drawing: Drawing, poses: tuple[Array, Array], room: float) -> dict[str, Any]:
    """Viewing directions, and the bounding box of the motion in them, with a margin."""
    up, normal = drawing.up, drawing.normal
    if normal is not None and abs(normal @ up) < 0.5:
        front = normal - (normal @ up) * up
        front /= np.linalg.norm(front)
        right = np.cross(up, front)
    else:
        right = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
        right = right - (right @ up) * up
        right /= np.linalg.norm(right)
        front = np.cross(right, up)
    basis = np.array([right, up, front])
    x, R = poses
    some = np.unique(np.linspace(0, len(x) - 1, POSES_FOR_ROOM).astype(int))
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for body in drawing.bodies:
        points = [*drawing.joint_points(body.row), *(p for s in body.shapes for p in s.outline())]
        if points:
            seen = (x[some, body.row, None] + np.array(points) @ R[some, body.row].transpose(0, 2, 1)) @ basis.T
            low, high = np.minimum(low, seen.min((0, 1))), np.maximum(high, seen.max((0, 1)))
    around = room * float(np.max(high - low)) * (high - low > 2 * drawing.bar)  # a plane mechanism stays in its plane
    low, high = low - around, high + around
    planar = "none" if normal is None else ("front" if abs(normal @ up) < 0.5 else "top")
    return {
        "right": floats(right),
        "up": floats(up),
        "front": floats(front),
        "low": floats(low),
        "high": floats(high),
        "plane": planar,
    }


def _joint(drawing: Drawing, j: JointData, poses: tuple[Array, Array], joints: list[str]) -> dict[str, Any]:
    xF, F = world_frames(poses, j, "F")
    xM, _ = world_frames(poses, j, "M")
    along = np.einsum("ti,ti->t", F[:, :, 2], xM - xF)  # displacement of M along the axis of the joint
    second = [j.par[0], j.par[1], 0.0]
    return {
        "name": j.name,
        "type": j.spec.type,
        "parent": j.parent,
        "child": j.child,
        "F": _pose(j.F),
        "M": _pose(j.M),
        "second": second,  # axis fixed in the child, of a universal joint, in M
        "travel": [float(along.min()), float(along.max())],
        "radius": _symbol_radius(drawing, j),
        "q": list(range(j.q0, j.q0 + len(j.spec.coordinates))) if j.in_tree else [],
        "v": list(range(j.v0, j.v0 + len(j.spec.speeds))) if j.in_tree else [],
        "wrench": joints.index(j.name) if j.name in joints else -1,
    }


def _pose(pose: Pose) -> dict[str, list[float]]:
    return {"position": floats(pose[0]), "rotation": floats(quaternions(pose[1]))}


def _symbol_radius(drawing: Drawing, j: JointData) -> float:
    """Radius at which a symbol is visible around the rods it joins."""
    radii = [drawing.bar]
    for row, (p, _) in ((j.parent, j.F), (j.child, j.M)):
        radii += [s.size[0] for s in drawing.bodies[row].shapes if s.kind == "rod" and s.reaches(p, 2 * drawing.bar)]
    return min(max(radii), 3 * drawing.bar)


def _shape(s: Shape) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": s.kind,
        "position": floats(s.position),
        "rotation": floats(quaternions(s.axes)),
        "size": list(s.size),
    }
    if s.points is not None:
        found["points"] = packed(s.points)
    return found


def _labelled(labels: Sequence[str], units: Sequence[str]) -> list[dict[str, str]]:
    return [{"name": name, "unit": unit} for name, unit in zip(labels, units, strict=True)]
