"""Draft of a mechanism, which readers of other formats fill.

Everything is in SI units and radians. Bodies have the pose of the source's link frame at its zero or start position;
joints are given by frames on both bodies, so that their coordinates are those of the source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.report import Report
from loopdyn.io.reading import element_name
from loopdyn.model.inertia import impossible
from loopdyn.model.mechanism import GROUND, Mechanism
from loopdyn.quantities.units import Units
from loopdyn.quantities.wording import findings
from loopdyn.spatial.rotations import about_axis, from_matrix, to_matrix

Array = NDArray[np.float64]
Pose = tuple[Array, Array]  # position (3), rotation matrix (3, 3)

LARGE = 50.0  # m: few mechanisms reach as far as this, but many in mm would

IDENTITY: Pose = (np.zeros(3), np.eye(3))


def pose(position: ArrayLike = (0.0, 0.0, 0.0), rotation: ArrayLike | None = None) -> Pose:
    """Pose from a position and a rotation matrix."""
    return np.asarray(position, float), np.eye(3) if rotation is None else np.asarray(rotation, float)


def pose_quaternion(position: ArrayLike, quaternion: ArrayLike) -> Pose:
    """Pose from a position and a quaternion (w, x, y, z)."""
    return np.array(position, float), to_matrix(quaternion)


def pose_rpy(position: ArrayLike, rpy: ArrayLike) -> Pose:
    """Pose from a position and roll, pitch, yaw about fixed axes."""
    roll, pitch, yaw = np.asarray(rpy, float)
    rotation = about_axis((0, 0, 1), yaw) @ about_axis((0, 1, 0), pitch) @ about_axis((1, 0, 0), roll)
    return np.asarray(position, float), rotation


def compose(a: Pose, b: Pose) -> Pose:
    """X_AC of X_AB and X_BC."""
    return a[0] + a[1] @ b[0], a[1] @ b[1]


def inverse(a: Pose) -> Pose:
    """X_BA of X_AB."""
    return -a[1].T @ a[0], a[1].T


def frame(a: Pose) -> dict[str, Any]:
    """Pose as a frame of a model file."""
    said: dict[str, Any] = {"position": a[0].tolist()}
    if not np.array_equal(a[1], np.eye(3)):
        said["rotation"] = {"quaternion": from_matrix(a[1]).tolist()}
    return said


@dataclass(frozen=True, eq=False)
class Origin:
    """Positions of the elements in their source, for messages."""

    file: str
    lines: Mapping[tuple[str | int, ...], int]  # by section and name

    def __deepcopy__(self, memo: Any) -> Origin:
        return self

    def locate(self, problems: Sequence[Problem]) -> list[Problem]:
        """Add file and line to problems."""
        found = dict.fromkeys(problems)
        return [p if p.file else replace(p, file=self.file, line=self.lines.get(p.path[:2])) for p in found]


class Draft:
    """Sections of a model as plain data, with names that are legal and differ."""

    def __init__(self, name: str, file: str, report: Report, mend: bool = False):
        self.file = file
        self.mend = mend  # whether impossible inertias are replaced
        self.report = report
        self.data: dict[str, Any] = {"loopdyn": 1, "name": name or "mechanism"}
        for section in ("parameters", "bodies", "joints", "constraints", "contacts", "forces"):
            self.data[section] = {}
        self.poses: dict[str, Pose] = {GROUND: IDENTITY}
        self.lines: dict[tuple[str | int, ...], int] = {}
        self.rough: list[str] = []  # coordinates with dry friction

    def name(self, section: str, wanted: str) -> str:
        """Valid, unused name for an element, noted in the report if it differs from that in the source."""
        taken = self.data[section]
        rows = ("joints", "constraints", "contacts")  # which are labelled by these names
        if section in rows:
            taken = {name: said for of in rows for name, said in self.data[of].items()}
        legal = re.sub(r"[.:\x00-\x1f]", "_", wanted).strip() or section[:-1]
        if section == "parameters":
            legal = re.sub(r"\W", "_", wanted)
        found, n = legal, 1
        while found in taken or (section == "bodies" and found == GROUND):
            n += 1
            found = f"{legal}_{n}"
        if found != wanted and section != "parameters":
            self.report.changed.append(f"{section}: '{wanted}' is called '{found}'")
        return found

    def body(self, name: str, at: Pose, mass: float, com: ArrayLike, inertia: ArrayLike, line: int = 0) -> None:
        """A body with mass properties in its own frame, inertia about the centre of mass; `at` is its world pose."""
        self.poses[name] = at
        said: dict[str, Any] = {"mass": float(mass), "axes": "body", "pose": frame(at)}
        matrix = np.asarray(inertia, float)
        matrix = self._possible(name, float(mass), 0.5 * (matrix + matrix.T))
        if mass or np.any(matrix):
            said |= {"com": np.asarray(com, float).tolist(), "inertia": matrix.tolist()}
        self.data["bodies"][name] = said
        self.lines["bodies", name] = line

    def _possible(self, name: str, mass: float, inertia: Array) -> Array:
        """Nearest possible inertia, if it is to be corrected; otherwise a note that it is impossible."""
        problem = impossible(mass, inertia, Units())
        if problem is None or mass < 0.0:
            return inertia
        if not self.mend:
            self.report.notes.append(f"body '{name}': {problem[0]}; mend=True (--mend) uses the nearest possible one")
            return inertia
        mended = nearest_possible(inertia)
        self.report.changed.append(
            f"body '{name}': {problem[0]}; mended by {np.abs(mended - inertia).max():.2g} kg m^2"
        )
        return mended

    def joint(self, name: str, kind: str, ends: tuple[str, str], F: Pose, M: Pose, line: int = 0, **own: Any) -> None:
        """A joint between frames F on the parent and M on the child, with its own keys (axis, limits, ...)."""
        given = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in own.items() if v is not None}
        said = {"type": kind, "parent": ends[0], "child": ends[1], "parent_frame": frame(F), "child_frame": frame(M)}
        self.data["joints"][name] = said | given
        self.lines["joints", name] = line

    def add(self, section: str, wanted: str, **said: Any) -> str:
        """A force, constraint or parameter section entry; its name."""
        name = self.name(section, wanted)
        self.data[section][name] = said
        return name

    def world_point(self, body: str, p: ArrayLike) -> list[float]:
        """A point of a body in world coordinates at the reference pose."""
        x, R = self.poses[body]
        result: list[float] = (x + R @ np.asarray(p, float)).tolist()
        return result

    def spring(self, joint: str, stiffness: float, damping: float, rest: float) -> None:
        """Spring and damper on a joint coordinate, where there is any."""
        if stiffness or damping:
            given = {"stiffness": float(stiffness), "damping": float(damping), "rest": float(rest)}
            self.add("forces", f"{joint.replace('.', '_')} spring", type="joint_spring", joint=joint, **given)

    def stop(self, joint: str) -> None:
        """Rigid stop at both limits of a joint coordinate."""
        self.add("contacts", f"{joint.replace('.', '_')} range", type="stop", joint=joint, restitution=0.0)

    def friction(self, joint: str, coulomb: float) -> None:
        """Dry friction on a joint coordinate, where there is any."""
        if coulomb:
            name = f"{joint.replace('.', '_')} friction"
            self.add("forces", name, type="joint_friction", joint=joint, coulomb=coulomb)
            self.rough.append(joint)

    def mechanism(self) -> Mechanism:
        """Mechanism; invalid values are reported with their lines."""
        smooth = f"dry friction is smooth about zero speed (joint_friction): {', '.join(self.rough)}"
        if self.rough and smooth not in self.report.changed:
            self.report.changed.append(smooth)
        far = max((float(np.abs(x).max()) for x, _ in self.poses.values()), default=0.0)
        if far > LARGE:
            self.report.notes.append(f"it reaches {far:.0f} m from the origin: check that its lengths are in m, not mm")
        return made(self.data, Origin(self.file, self.lines))


def made(data: Mapping[str, Any], origin: Origin) -> Mechanism:
    """Mechanism from plain data.

    Raises
    ------
    ModelError
        With every value that cannot be right, and its line.
    """
    said = {k: v for k, v in data.items() if v != {}}
    try:
        mechanism = Mechanism.model_validate(said)
    except ValidationError as error:
        found = findings(error, Mechanism, said)
        problems = [Problem(element_name(f.subject), f.message, f.hint, path=f.path) for f in found]
        raise ModelError(origin.locate(problems)) from None
    mechanism._source = origin
    return mechanism


def nearest_possible(inertia: Array) -> Array:
    """Possible inertia whose matrix of second moments (the integral of x x^T dm) is nearest to the given one's.

    That matrix is trace/2 - inertia, and a body can have it if no principal value is negative.

    Examples
    --------
    >>> nearest_possible(np.diag([1.0, 1.0, 3.0])).round(12)
    array([[1.5, 0. , 0. ],
           [0. , 1.5, 0. ],
           [0. , 0. , 3. ]])
    """
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    values, axes = np.linalg.eigh(second)
    second = (axes * np.maximum(values, 0.0)) @ axes.T
    result: Array = np.trace(second) * np.eye(3) - second
    return result


def world_frames(pose_parent: Pose, pose_child: Pose, at: Pose) -> tuple[Pose, Pose]:
    """Frames F and M on two bodies for a joint frame given in the world."""
    return compose(inverse(pose_parent), at), compose(inverse(pose_child), at)


def missing(package: str, extra: str, what: str) -> ModelError:
    """The error for an optional package that is not installed."""
    hint = f"Install it: pip install 'loopdyn[{extra}]'."
    return ModelError([Problem(what, f"the package '{package}' is not installed", hint)])
