"""Pictures of a mechanism at a pose: in its plane if it is planar, in 3-D otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from loopdyn.joints.base import AxisJoint
from loopdyn.output.drawing import GROUND_COLOUR, Drawing, Shape
from loopdyn.output.plot.axes import INK, TITLE, Array, axis_name
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import body_motion

Poses = tuple[Array, Array]  # positions (body, 3) and rotations (body, 3, 3)
Projection = Callable[[Array], Array]

QUARTER = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # a quarter turn about z
HALVES = np.array([-0.5, 0.5])
# Symbols of joints: marker of matplotlib and its size in points; the last one for other joints.
MARKERS = {
    "revolute": ("o", 9.0),
    "prismatic": ("s", 11.0),
    "helical": ("D", 9.0),
    "cylindrical": ("h", 11.0),
    "universal": ("P", 11.0),
    "planar": ("d", 10.0),
    "translational": ("X", 10.0),
    "spherical": ("o", 12.0),
    "weld": ("s", 6.0),
}
OTHER_MARKER = ("*", 12.0)


def plot_system(system: System, state: State | None = None, ax: Any = None, *, names: bool = True) -> Any:
    """Draw a mechanism at a state: in its plane if it is planar, in 3-D otherwise.

    Parameters
    ----------
    system : System
    state : State, optional
        By default the reference pose.
    ax : matplotlib Axes, optional
        Where to draw, 3-D axes for a spatial mechanism; a new figure by default.
    names : bool
        Write the names of joints and bodies.

    Returns
    -------
    matplotlib Axes
    """
    motion = body_motion(system, system.state() if state is None else state)
    drawing = Drawing(system)
    if ax is None:
        ax = new_axes(drawing)
    draw(ax, drawing, (motion.position, motion.rotation), names)
    time = "" if state is None else f" at t = {state.t:g} s"
    ax.set_title(f"{system.name}{time}", **TITLE)
    return ax


def new_axes(drawing: Drawing) -> Any:
    """Axes of a new figure, planar or spatial like the mechanism."""
    import matplotlib.pyplot as plt

    if drawing.normal is not None:
        return plt.subplots(figsize=(7.5, 6.0), layout="constrained")[1]
    figure = plt.figure(figsize=(7.5, 6.8), layout="constrained")
    return figure.add_subplot(projection="3d", computed_zorder=True)


def axes_of_picture(drawing: Drawing) -> Array:
    """Axes of the picture as rows: right, up and normal of a planar one; right, depth and up of a spatial one."""
    normal, up = drawing.normal, drawing.up
    if normal is None:
        right = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
        right = right - (right @ up) * up
        right /= np.linalg.norm(right)
        return np.array([right, np.cross(up, right), up])
    high = up if abs(normal @ up) < 0.5 else np.eye(3)[1] if abs(normal[1]) < 0.9 else np.eye(3)[2]
    high = high - (high @ normal) * normal
    high /= np.linalg.norm(high)
    return np.array([np.cross(high, normal), high, normal])


def draw(ax: Any, drawing: Drawing, poses: Poses, names: bool) -> None:
    """Draw all bodies, joints and springs into `ax`, with equal scales on its axes, in the declared unit of length."""
    flat = drawing.normal is not None
    basis = axes_of_picture(drawing)
    positions, rotations = poses
    unit = drawing.system.units.factor("length")
    size = drawing.size / unit

    def seen(row: int, points: Array) -> Array:
        """Points of a body's frame in the axes of the picture, one row each, in the declared unit."""
        all_three = (positions[row] + np.atleast_2d(points) @ rotations[row].T) @ basis.T / unit
        result: Array = all_three[:, :2] if flat else all_three
        return result

    room = []
    for body in drawing.bodies:
        for shape in body.shapes:
            _draw_shape(ax, shape, partial(seen, body.row), body.colour, drawing, flat)
            room.append(seen(body.row, shape.outline()))
    for span in drawing.spans:
        a, b = (seen(row, p)[0] for row, p in zip(span.bodies, span.points, strict=True))
        line = _coil(a, b, 0.03 * size) if span.kind == "coil" else np.array([a, b])
        ax.plot(*line.T, color="#c2803a", lw=1.3, zorder=3)
        room.append(np.array([a, b]))
        for row, end in zip(span.bodies, (a, b), strict=True):
            if row < drawing.system.n_bases and flat:
                _draw_support(ax, end, 0.045 * size)
    for joint in drawing.joints:
        at = seen(joint.child, joint.M[0])[0]
        _draw_joint(ax, drawing, joint, at, seen, flat, size)
        room.append(at[None])
    if names:
        _write_names(ax, drawing, seen, flat, size)
    _frame(ax, np.concatenate(room), flat, basis, drawing.system.units.length)


def _draw_shape(ax: Any, shape: Shape, seen: Projection, colour: str, drawing: Drawing, flat: bool) -> None:
    if shape.kind == "rod":
        ends = shape.position + np.outer([-0.5, 0.5], shape.axes[:, 2]) * shape.size[1]
        width = float(np.clip(3.2 * shape.size[0] / drawing.bar, 3.2, 9.0))
        ax.plot(*seen(ends).T, color=colour, lw=width, solid_capstyle="round", zorder=2)
        return
    for outline in _outlines(shape):
        points = seen(outline)
        if flat:
            ax.fill(*points.T, facecolor=colour, edgecolor=colour, alpha=0.45, lw=1.2, zorder=1.5)
        else:
            from mpl_toolkits.mplot3d.art3d import Poly3DCollection

            ax.add_collection3d(Poly3DCollection([points], facecolor=colour, edgecolor=colour, alpha=0.3, lw=0.8))


def _outlines(shape: Shape) -> Iterator[Array]:
    """Closed lines (n, 3) that show a shape, in the body's frame."""
    round_ = np.linspace(0.0, 2 * np.pi, 33)
    ring = np.column_stack([np.cos(round_), np.sin(round_), np.zeros(33)])
    if shape.kind == "mesh":
        assert shape.points is not None
        yield from (shape.position + triangle @ shape.axes.T for triangle in shape.points)
        return
    if shape.kind == "plate":
        assert shape.points is not None
        local = [np.column_stack([shape.points, np.zeros(len(shape.points))])]
    elif shape.kind == "cylinder":
        radius, length = shape.size
        local = [radius * ring + [0.0, 0.0, z] for z in (-length / 2, length / 2)]
        x, z = radius, length / 2  # seen from the side, a rectangle
        local += [np.array([[-x, 0, -z], [x, 0, -z], [x, 0, z], [-x, 0, z]]) @ turn for turn in (np.eye(3), QUARTER)]
    elif shape.kind == "sphere":
        local = [shape.size[0] * ring[:, order] for order in ([0, 1, 2], [0, 2, 1], [2, 0, 1])]
    else:  # box
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2
        local = []
        for k in range(3):
            for side in (-0.5, 0.5):
                local.append(np.insert(corners, k, side, axis=1) * np.array(shape.size))
    for line in local:
        yield shape.position + line @ shape.axes.T


def _draw_joint(ax: Any, drawing: Drawing, joint: JointData, at: Array, seen: Any, flat: bool, size: float) -> None:
    marker, points = MARKERS.get(joint.spec.type, OTHER_MARKER)
    grounded = min(joint.parent, joint.child) < drawing.system.n_bases
    fill = GROUND_COLOUR if grounded else "white"
    inner = INK if joint.spec.type == "spherical" else fill
    ax.plot(*at[:, None], marker, ms=points, mfc=inner, mec=INK, mew=1.4, zorder=5)
    if isinstance(joint.spec, AxisJoint):
        axis, reach = joint.F[1][:, 2], (0.12 if joint.spec.type == "revolute" else 0.3) * drawing.size
        line = seen(joint.parent, joint.F[0] + np.outer([-reach, reach], axis))
        if not (flat and joint.spec.type == "revolute"):
            ax.plot(*line.T, color="0.45", lw=1.0, ls=(0, (6, 2, 1, 2)), zorder=1)
    if grounded and flat and joint.spec.type != "prismatic":
        _draw_support(ax, at, 0.045 * size)


def _draw_support(ax: Any, at: Array, side: float) -> None:
    """Draw the ground symbol below a point of a planar picture."""
    foot = at + side * np.array([[0.0, 0.0], [-0.8, -1.5], [0.8, -1.5]])
    ax.fill(*foot.T, facecolor="0.85", edgecolor=INK, lw=1.0, zorder=1.8)
    for k in range(5):
        start = at + side * np.array([-1.0 + 0.45 * k, -1.5])
        ax.plot(*np.array([start, start + side * np.array([-0.35, -0.5])]).T, color=INK, lw=0.8, zorder=1.7)


def _coil(a: Array, b: Array, radius: float) -> Array:
    """Zigzag between two points, for a spring."""
    way = b - a
    length = float(np.linalg.norm(way))
    if length == 0.0:
        return np.array([a, b])
    across = np.zeros(len(a))
    across[np.argmin(np.abs(way))] = 1.0
    across -= (across @ way) * way / length**2
    across *= radius / np.linalg.norm(across)
    s = np.array([0.0, 0.15, *np.linspace(0.18, 0.82, 12), 0.85, 1.0])
    sides = np.array([0.0, 0.0, *(1.0 if k % 2 else -1.0 for k in range(12)), 0.0, 0.0])
    result: Array = a + np.outer(s, way) + np.outer(sides, across)
    return result


def _write_names(ax: Any, drawing: Drawing, seen: Any, flat: bool, size: float) -> None:
    by_place: dict[tuple[float, ...], list[str]] = {}
    for joint in drawing.joints:
        place = tuple(np.round(seen(joint.child, joint.M[0])[0] / size, 3) * size)
        by_place.setdefault(place, []).append(joint.name)
    style = {"fontsize": 9, "color": INK, "zorder": 7, "annotation_clip": False}
    box = {"boxstyle": "round,pad=0.12", "fc": "white", "ec": "none", "alpha": 0.7}
    for place, joints in by_place.items():
        _note(ax, ", ".join(joints), np.array(place), (7, 7), flat, {**style, "fontweight": "bold", "bbox": box})
    for body in drawing.bodies[drawing.system.n_bases :]:
        where = seen(body.row, body.com)[0]
        _note(ax, body.name, where, (6, -12), flat, {**style, "color": body.colour, "fontstyle": "italic", "bbox": box})


def _note(ax: Any, text: str, at: Array, offset: tuple[int, int], flat: bool, style: dict[str, Any]) -> None:
    """Write text next to a point, also in 3-D, where `annotate` takes only two coordinates."""
    if flat:
        ax.annotate(text, at, offset, textcoords="offset points", **style)
    else:
        style = {k: v for k, v in style.items() if k != "annotation_clip"}
        ax.text(*at, f" {text}", **style, va="bottom" if offset[1] > 0 else "top")


def _frame(ax: Any, points: Array, flat: bool, basis: Array, unit: str) -> None:
    """Set equal scales with a margin."""
    low, high = points.min(axis=0), points.max(axis=0)
    names = [f"{axis_name(row)} in {unit}" for row in basis]
    if flat:
        room = 0.09 * float(np.max(high - low))
        ax.set_xlim(low[0] - room, high[0] + room)
        ax.set_ylim(low[1] - room, high[1] + room)
        ax.set_aspect("equal", adjustable="box")
        ax.set(xlabel=names[0], ylabel=names[1])
        ax.grid(color="0.92")
        ax.set_axisbelow(True)
        return
    set_room(ax, low, high)
    ax.set(xlabel=names[0], ylabel=names[1], zlabel=names[2])
    ax.view_init(elev=18, azim=-62)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.pane.set_facecolor("0.985")
        axis._axinfo["grid"]["color"] = "0.9"
    ax.tick_params(labelsize=8)


def set_room(ax: Any, low: Array, high: Array) -> None:
    """Set limits of 3-D axes with one scale for all three and the mechanism on the floor of the box."""
    longest = float(np.max(high - low))
    size = 1.08 * np.maximum(high - low, 0.35 * longest)  # a flat box would be hard to read in depth
    middle = (low + high) / 2
    ax.set(xlim=middle[0] + size[0] * HALVES, ylim=middle[1] + size[1] * HALVES)
    ax.set_zlim(low[2] - 0.02 * longest, low[2] - 0.02 * longest + size[2])
    ax.set_box_aspect(size, zoom=1.05)
