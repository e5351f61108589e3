"""A run as one page for the browser: the mechanism in 3-D, its motion, loads and plots; no network, no server.

The page is `page.html` with `page.css`, `page.js`, the data of the run, and three.js, which draws: its standalone
bundle comes with the package k3d and is copied into each page (docs/decisions/0004). Numbers are stored as base64 of
float32 arrays.
"""

from __future__ import annotations

import base64
import html
import importlib.metadata
import importlib.util
import json
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.files import write
from loopdyn.output.drawing import (
    Drawing,
    RunLike,
    Shape,
    determined,
    poses_of,
    speed_units,
    world_frames,
)
from loopdyn.quantities.wording import nearest
from loopdyn.results.run import coordinate_units
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import body_motion

Array = NDArray[np.float64]
Theme = Literal["auto", "light", "dark"]
Trace = str | tuple[str, ArrayLike]

# How many poses are looked at to find the room the motion takes.
POSES_FOR_ROOM = 60


def animate(run: RunLike, path: str | Path, **options: Any) -> Path:
    """Write a run as a page, a film or a picture, by the ending of the file's name.

    Parameters
    ----------
    run : Run
    path : str or Path
        ``.html``: a page, see :func:`write_page`; ``.gif``, ``.mp4`` or ``.png``: see
        :func:`loopdyn.output.plot.write_film`.
    **options
        Those of the function that writes it.
    """
    write: Callable[..., Path] = write_page
    kind = Path(path).suffix.lower()
    if kind in (".gif", ".mp4", ".png"):
        from loopdyn.output.plot import write_film

        write = write_film
    known = list(signature(write).parameters)[2:]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise LoopdynError(f"animate: there is no option '{unknown[0]}' for '{kind}'. {nearest(unknown[0], known)}")
    return write(run, path, **options)


def write_page(
    run: RunLike,
    path: str | Path,
    *,
    frames: int | None = 1000,
    traces: Iterable[Trace] = (),
    forces: bool | Sequence[str] = True,
    plots: Sequence[str] | None = None,
    theme: Theme = "auto",
    title: str | None = None,
) -> Path:
    """Write one self-contained page that shows a run.

    Parameters
    ----------
    run : Run
    path : str or Path
        File to write, ending in ``.html``.
    frames : int or None
        Largest number of moments that are stored, evenly spread over time; None stores all.
    traces : list of joint names or (body, point)
        Points whose path is drawn: where a joint is, or a point of a body in world coordinates at the reference pose.
        More can be chosen in the page.
    forces : bool or list of joint names
        Joints whose reactions are stored, to be shown as arrows and plots.
    plots : list of str, optional
        What is plotted at first, by the names of the variables in ``run.data``: ``"q"``, ``"v"``, ``"a"``,
        ``"energy"``, ``"residual"``, ``"wrench:C"`` for joint C. Others can be chosen in the page.
    theme : {"auto", "light", "dark"}
        Colours; ``"auto"`` follows the browser.
    title : str, optional
        Heading of the page; by default the name of the mechanism.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(StillPose(system, system.state()), folder + "/pendulum.html").name
    'pendulum.html'
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise LoopdynError(
            f"page '{path}': its name does not end in .html, .gif, .mp4 or .png. "
            f"Name it {path.with_suffix('.html').name}."
        )
    if theme not in ("auto", "light", "dark"):
        raise LoopdynError(f"theme '{theme}' is unknown. Use auto, light or dark.")
    scene = describe(run, frames=frames, traces=traces, forces=forces, plots=plots)
    write(path, page_text(scene | {"theme": theme}, title or run.system.name))
    return path


def page_text(scene: dict[str, Any], title: str, library_url: str = "") -> str:
    """Text of the page that shows a scene.

    Parameters
    ----------
    scene : dict
        What :func:`describe` gives; with ``theme``, which is ``"auto"`` unless it is given.
    title : str
    library_url : str
        Where the page finds :func:`drawing_library`; by default it is a part of the page.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> scene = describe(StillPose(system, system.state()))
    >>> page_text(scene, "A & B", "/library.js").count("<title>A &amp; B</title>")
    1
    """
    here = files(__package__)
    library, licence = drawing_library()
    inside = "<script>" + library.replace("</script", "<\\/script") + "</script>"
    parts = {
        "title": html.escape(title),
        "licence": html.escape(licence),
        "style": (here / "page.css").read_text("utf-8"),
        "data": json.dumps({"theme": "auto"} | scene, separators=(",", ":"), allow_nan=False).replace("</", "<\\/"),
        "library": f'<script src="{html.escape(library_url)}"></script>' if library_url else inside,
        "page": (here / "page.js").read_text("utf-8"),
    }
    page = (here / "page.html").read_text("utf-8")
    pieces = page.split("{{")
    return pieces[0] + "".join(parts[key] + rest for key, rest in (p.split("}}", 1) for p in pieces[1:]))


class StillPose:
    """A mechanism at one pose, as what pages need of a run.

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
            {"q": (("time", "coordinate"), state.q[None])},
            {"time": [state.t], "coordinate": list(system.coordinates)},
        )

    def poses(self) -> tuple[Array, Array]:
        """Positions (1, body, 3) and rotations (1, body, 3, 3)."""
        motion = body_motion(self.system, self._state)
        return motion.position[None], motion.rotation[None]

    def placement(self) -> dict[str, list[float]]:
        """What ``page.place`` of a page takes to show the pose: the numbers of its arrays."""
        x, R = self.poses()
        found = {"position": x, "rotation": _quaternions(R), "q": self._state.q}
        return {name: _list(np.ravel(values)) for name, values in found.items()}


def drawing_library() -> tuple[str, str]:
    """Source of the bundle with three.js, and its licence."""
    found = importlib.util.find_spec("k3d")  # not imported: it would load the notebook widgets it is made for
    bundle = None if found is None or found.origin is None else Path(found.origin).parent / "static" / "standalone.js"
    if bundle is None or not bundle.is_file():
        raise LoopdynError(
            "the page needs three.js from the package k3d, which is not installed or has no static/standalone.js. "
            "Install it: pip install 'k3d>=3'."
        )
    texts = [f"three.js and K3D {importlib.metadata.version('k3d')}, k3d/static/standalone.js"]
    for file in importlib.metadata.files("k3d") or ():
        if "LICENSE" in file.name and ("licenses" in file.parts or file.name.startswith("standalone")):
            texts.append(file.read_text("utf-8"))
    return bundle.read_text("utf-8"), "\n\n".join(texts)


# ------------------------------------------------------------------------------------- the data of a page


def describe(
    run: RunLike,
    *,
    frames: int | None = 1000,
    traces: Iterable[Trace] = (),
    forces: bool | Sequence[str] = True,
    plots: Sequence[str] | None = None,
    room: float = 0.0,
) -> dict[str, Any]:
    """What a page knows of a run, ready for JSON; arguments as in :func:`write_page`.

    The view has `room` around the motion, as a share of its size, for poses that :class:`StillPose` puts there later.
    """
    system, data = run.system, run.data
    drawing = Drawing(system)
    time = np.asarray(data["time"], float)
    if len(time) == 0:
        raise LoopdynError(f"the run of '{system.name}' holds no moment of time. Simulate it first.")
    kept = _chosen_moments(time, frames)
    joints = _chosen_joints(system, data, forces)
    data = data.isel(time=kept)
    arrays, quantities = _quantities(system, data, joints)
    x, R = (array[kept] for array in poses_of(run))
    arrays |= {"time": _packed(time[kept], "float64"), "position": _packed(x), "rotation": _packed(_quaternions(R))}
    return {
        "name": system.name,
        "samples": len(time),
        "view": _view(drawing, (x, R), room),
        "bar": drawing.bar,
        "size": drawing.size,
        "bodies": [
            {
                "name": b.name,
                "mass": b.mass,
                "com": _list(b.com),
                "colour": b.colour,
                "shapes": [_shape(s) for s in b.shapes],
            }
            for b in drawing.bodies
        ],
        "bases": system.n_bases,
        "joints": [_joint(drawing, j, (x, R), joints) for j in drawing.joints],
        "spans": [
            {"name": s.name, "kind": s.kind, "bodies": list(s.bodies), "points": [_list(p) for p in s.points]}
            for s in drawing.spans
        ],
        "traces": [_trace(drawing, t) for t in traces],
        "coordinates": _labelled(system.coordinates, coordinate_units(system)),
        "speeds": _labelled(system.speeds, speed_units(system)),
        "arrays": arrays,
        "quantities": quantities,
        "plots": _chosen_plots(quantities, plots),
    }


def _chosen_moments(time: Array, frames: int | None) -> NDArray[np.intp]:
    if frames is not None and frames < 1:
        raise LoopdynError(f"frames is {frames}. Give a number of at least 1, or None for all.")
    if frames is None or len(time) <= frames:
        return np.arange(len(time))
    even = np.linspace(time[0], time[-1], frames)
    return np.unique(np.abs(np.searchsorted(time, even)).clip(0, len(time) - 1))


def _chosen_joints(system: System, data: Any, forces: bool | Sequence[str]) -> list[str]:
    if "wrench" not in data or forces is False:
        return []
    known = [str(name) for name in data["joint"].values]
    if forces is True:
        return known
    wrong = [name for name in forces if name not in known]
    if wrong:
        raise ModelError(Problem("forces", f"there is no joint '{n}'", nearest(n, known)) for n in wrong)
    return list(forces)


def _trace(drawing: Drawing, trace: Trace) -> dict[str, Any]:
    s = drawing.system
    if isinstance(trace, str):
        if trace not in s.joints:
            raise ModelError([Problem("traces", f"there is no joint '{trace}'", nearest(trace, s.joints))])
        j = s.joints[trace]
        return {"name": trace, "body": j.child, "point": _list(j.M[0])}
    body, point = trace
    if body not in s.bodies:
        raise ModelError([Problem("traces", f"there is no body '{body}'", nearest(body, s.bodies))])
    row = s.bodies.index(body)
    p, R = s.reference_poses[row]
    where = np.asarray(point, float)
    if where.shape != (3,) or not np.isfinite(where).all():
        raise ModelError([Problem("traces", f"the point of body '{body}' is not x, y, z", "Give three numbers in m.")])
    name = f"{body} ({', '.join(f'{v:g}' for v in where)})"
    return {"name": name, "body": row, "point": _list(R.T @ (where - p))}


def _view(drawing: Drawing, poses: tuple[Array, Array], room: float) -> dict[str, Any]:
    """Directions to look from, and the box in them that the motion stays in, with room around it."""
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
        "right": _list(right),
        "up": _list(up),
        "front": _list(front),
        "low": _list(low),
        "high": _list(high),
        "plane": planar,
    }


def _joint(drawing: Drawing, j: JointData, poses: tuple[Array, Array], joints: list[str]) -> dict[str, Any]:
    xF, F = world_frames(poses, j, "F")
    xM, _ = world_frames(poses, j, "M")
    along = np.einsum("ti,ti->t", F[:, :, 2], xM - xF)  # way of M along the axis of the joint
    second = [j.par[0], j.par[1], 0.0]
    return {
        "name": j.name,
        "type": j.spec.type,
        "parent": j.parent,
        "child": j.child,
        "F": {"position": _list(j.F[0]), "rotation": _list(_quaternions(j.F[1]))},
        "M": {"position": _list(j.M[0]), "rotation": _list(_quaternions(j.M[1]))},
        "second": second,  # axis fixed in the child, of a universal joint, in M
        "travel": [float(along.min()), float(along.max())],
        "radius": _symbol_radius(drawing, j),
        "q": list(range(j.q0, j.q0 + len(j.spec.coordinates))) if j.in_tree else [],
        "v": list(range(j.v0, j.v0 + len(j.spec.speeds))) if j.in_tree else [],
        "wrench": joints.index(j.name) if j.name in joints else -1,
    }


def _symbol_radius(drawing: Drawing, j: JointData) -> float:
    """Radius of a symbol that is seen around the rods it joins."""
    radii = [drawing.bar]
    for row, (p, _) in ((j.parent, j.F), (j.child, j.M)):
        radii += [s.size[0] for s in drawing.bodies[row].shapes if s.kind == "rod" and s.reaches(p, 2 * drawing.bar)]
    return min(max(radii), 3 * drawing.bar)


def _shape(s: Shape) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": s.kind,
        "position": _list(s.position),
        "rotation": _list(_quaternions(s.axes)),
        "size": list(s.size),
    }
    if s.points is not None:
        found["points"] = _packed(s.points)
    return found


# ---------------------------------------------------------------------------------------------- quantities


def _quantities(system: System, data: Any, joints: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Arrays by name, and what can be plotted: groups of columns of one unit."""
    arrays: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    per_speed = speed_units(system)
    for name, what, labels, units in (
        ("q", "Coordinates", system.coordinates, coordinate_units(system)),
        ("v", "Speeds", system.speeds, per_speed),
        ("a", "Accelerations", system.speeds, [u.replace("/s", "/s²") for u in per_speed]),
    ):
        if name in data:
            arrays[name] = _packed(data[name].values)
            for unit in dict.fromkeys(units):
                columns = [k for k, u in enumerate(units) if u == unit]
                shown = "quaternions" if unit == "1" else unit
                groups.append(_group(name, what, shown, name, columns, [labels[k] for k in columns]))
    if "wrench" in data:
        groups += _reactions(data, joints, arrays)
    groups += _over_time(data, arrays)
    return arrays, groups


def _reactions(data: Any, joints: list[str], arrays: dict[str, Any]) -> list[dict[str, Any]]:
    if not joints:
        return []
    arrays["wrench"] = _packed(data["wrench"].sel(joint=joints).values)
    unique = determined(data).sel(joint=joints).values
    names = [str(c) for c in data["component"].values]
    groups = []
    for n, joint in enumerate(joints):
        for what, unit, first in (("Reaction force", "N", 3), ("Reaction moment", "N m", 0)):
            columns = [6 * n + k for k in range(first, first + 3)]
            group = _group(f"wrench:{joint}", f"{what} in {joint}", unit, "wrench", columns, names[first : first + 3])
            group["open"] = [not bool(unique[n, k]) for k in range(first, first + 3)]
            groups.append(group)
    return groups


# Variables that are drawn together: prefix, title, unit, logarithmic.
FAMILIES = (("energy", "Energy", "J", False), ("residual", "Residuals of the constraints", "SI", True))
APART = "energy_balance"  # an error, many orders below the energies


def _over_time(data: Any, arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """Groups of all other variables that depend on time and at most one more dimension."""
    others = {
        str(name): v
        for name, v in data.data_vars.items()
        if v.dims[:1] == ("time",) and len(v.dims) <= 2 and v.size and v.dtype.kind in "fiub" and name not in arrays
    }
    groups = []
    for prefix, title, unit, logarithmic in FAMILIES:
        members = [n for n in others if n.startswith(prefix + "_") and n != APART]
        if not members:
            continue
        columns = [others.pop(n).values.reshape(data.sizes["time"], -1) for n in members]
        values = np.column_stack([c[:, 0] if c.shape[1] == 1 else np.abs(c).max(axis=1) for c in columns])
        if prefix == "energy":
            members, values = [*members, "total"], np.column_stack([values, values.sum(axis=1)])
        arrays[prefix] = _packed(values)
        names = [n.removeprefix(prefix + "_") for n in members]
        groups.append(_group(prefix, title, unit, prefix, list(range(len(names))), names) | {"log": logarithmic})
    for name, v in others.items():
        arrays[name] = _packed(v.values)
        names = [name] if v.ndim == 1 else [str(label) for label in v[v.dims[1]].values]
        title = name.replace("_", " ").capitalize()
        groups.append(_group(name, title, v.attrs.get("units", ""), name, list(range(len(names))), names))
    return groups


def _group(key: str, title: str, unit: str, array: str, columns: list[int], names: Sequence[str]) -> dict[str, Any]:
    return {"key": key, "title": title, "unit": unit, "array": array, "columns": columns, "names": list(names)}


def _chosen_plots(groups: list[dict[str, Any]], plots: Sequence[str] | None) -> list[int]:
    """Numbers of the groups that are shown at first."""
    known = list(dict.fromkeys(g["key"] for g in groups))
    chosen = [k for k in ("q", "energy") if k in known] if plots is None else list(plots)
    wrong = [name for name in chosen if name not in known]
    if wrong:
        raise ModelError(Problem("plots", f"there is no quantity '{n}' in the run", nearest(n, known)) for n in wrong)
    return [k for name in chosen for k, g in enumerate(groups) if g["key"] == name]


# ------------------------------------------------------------------------------------------------ numbers


def _packed(values: ArrayLike, kind: Literal["float32", "float64"] = "float32") -> dict[str, Any]:
    """Array as base64, little-endian."""
    array = np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<"))
    return {"type": kind, "shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode("ascii")}


def _quaternions(R: Array) -> Array:
    """Quaternions (..., 4), w first, of rotation matrices (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    xyzw = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat()
    wxyz: Array = np.roll(xyzw, 1, axis=1).reshape(*R.shape[:-2], 4)
    return wxyz


def _list(values: Array) -> list[float]:
    return [float(v) for v in values]


def _labelled(labels: Sequence[str], units: Sequence[str]) -> list[dict[str, str]]:
    return [{"name": name, "unit": unit} for name, unit in zip(labels, units, strict=True)]
