"""Writing URDF and its sidecar.

Revolute, prismatic and welded joints of the tree are URDF's own. Every other tree joint stands in the URDF as a
floating one, which the sidecar replaces by the real one; joints with armature are replaced as well. Loops, constraints,
drivers, forces, gravity and start are in the sidecar alone. ``read_urdf(file, loops=sidecar)`` gives the same mechanism
again.
"""

from __future__ import annotations

import os
from pathlib import Path as FilePath
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.files import write
from loopdyn.interchange.compiled import Compiled, Link, not_held, relative, unique, unwritable
from loopdyn.interchange.draft import IDENTITY, Pose, compose, frame, inverse
from loopdyn.interchange.report import Report, listed, refuse_loss
from loopdyn.interchange.urdf_reading import NO_LIMIT
from loopdyn.io.writing import document, plain
from loopdyn.model.mechanism import GROUND, Mechanism
from loopdyn.system.builder import build
from loopdyn.system.system import JointData

Array = NDArray[np.float64]

NATIVE = {"revolute": "continuous", "prismatic": "prismatic", "weld": "fixed"}
SECTIONS = (
    "units",
    "parameters",
    "gravity",
    "points",
    "constraints",
    "drivers",
    "contacts",
    "impact",
    "forces",
    "base",
    "measures",
    "tolerances",
    "start",
)
DRAWN_APART = 1e-9  # of the size of the mechanism: poses that differ by less are the same


def write_urdf(
    mechanism: Mechanism,
    path: str | os.PathLike[str],
    *,
    sidecar: str | os.PathLike[str] | None = None,
    leave_out: bool = False,
) -> Report:
    """Write a mechanism as URDF with a sidecar file for what URDF cannot say.

    Parameters
    ----------
    mechanism : Mechanism
    path : str or Path
        Name of the file, ending in ``.urdf``.
    sidecar : str or Path, optional
        Name of the sidecar; by default that of the file with ``.loops.yaml``.
    leave_out : bool
        Leave out what neither file can hold, and list it in the report, instead of refusing it.

    Returns
    -------
    Report

    Raises
    ------
    ModelError
        With every element that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import loopdyn as ld
    >>> file = FilePath(tempfile.mkdtemp()) / "four_bar.urdf"
    >>> _ = write_urdf(ld.library.four_bar(), file)
    >>> sorted(p.name for p in file.parent.iterdir())
    ['four_bar.loops.yaml', 'four_bar.urdf']
    """
    file = FilePath(path)
    if file.suffix.lower() != ".urdf":
        message = f"files ending in '{file.suffix}' are not URDF"
        raise ModelError([Problem("URDF", message, "Use a name that ends in .urdf.", str(file))])
    beside = file.with_suffix(".loops.yaml") if sidecar is None else FilePath(sidecar)
    report = Report(f"{file} and {beside}: loopdyn to URDF")
    robot, said = _Writer(mechanism, report, leave_out).write(beside.parent)
    write(file, robot)
    write(beside, document(said))
    return report


class _Writer:
    def __init__(self, mechanism: Mechanism, report: Report, leave_out: bool):
        self.m = mechanism
        self.report = report
        self.leave_out = leave_out
        self.c = Compiled(mechanism, build(mechanism))
        self.problems = unwritable(mechanism, "URDF")
        self.problems += [not_held("base", b, "given motion of a body", "URDF") for b in mechanism.base if b != GROUND]
        self.taken = {*mechanism.joints}
        self.frames: dict[str, Pose] = {GROUND: IDENTITY}  # link frame in the frame of the body
        self.reference: dict[str, float] = {}
        self.sidecar_joints: dict[str, Any] = {}
        self.placeholders: list[str] = []

    def write(self, folder: FilePath) -> tuple[str, dict[str, Any]]:
        self._check_drawing()
        refuse_loss(self.problems, self.report, self.leave_out)
        root = ET.Element("robot", name=self.m.name)
        ET.SubElement(root, "link", name="world")
        for link in self.c.links:
            self._link(root, link)
        for j in self.c.cuts:
            self._aside(j, j.name)
        said = plain(self.m, folder)
        kept: dict[str, Any] = {"loopdyn": 1}
        kept |= {k: said[k] for k in SECTIONS if k in said}
        kept.setdefault("gravity", [0, 0, 0])
        if "start" in kept:
            kept["start"] = {k: {_label(n): v for n, v in values.items()} for k, values in kept["start"].items()}
        if self.reference:
            kept["reference"] = self.reference
        if self.sidecar_joints:
            kept["joints"] = self.sidecar_joints
        self.report.count("bodies", [link.name for link in self.c.links])
        self.report.count("joints in the URDF", [n for n in self.m.joints if n not in self.sidecar_joints])
        self.report.count("joints in the sidecar", list(self.sidecar_joints))
        self.report.carried.append(
            "gravity, points, forces, constraints, contacts, drivers, measures and start, in the sidecar"
        )
        if self.placeholders:
            how = "joints that URDF does not have are floating there; the sidecar replaces them"
            self.report.changed.append(f"{how}: {listed(self.placeholders)}")
        rotors = [name for name, said in self.sidecar_joints.items() if "armature" in said]
        if rotors:
            self.report.changed.append(f"armature is not in URDF; the sidecar has it: {listed(rotors)}")
        if self.m.parameters:
            self.report.changed.append("dimensions are numbers now: parameters change forces and motions only")
        ET.indent(root)
        return ET.tostring(root, encoding="unicode") + "\n", kept

    def _check_drawing(self) -> None:
        """Check that the joints allow the drawn pose, at which world points of forces and constraints are given."""
        named = [*self.m.forces, *self.m.constraints]
        for k, name in enumerate(self.c.system.bodies):
            (x, R), (y, Q) = self.c.system.reference_poses[k], self.c.poses[name]
            apart = max(float(np.abs(x - y).max()) / self.c.system.size, float(np.abs(R - Q).max()))
            if named and apart > DRAWN_APART:
                message = "its pose is not one that its joints allow, so points of forces and constraints are unclear"
                self.problems.append(Problem(f"body '{name}'", message, "Correct its pose or its joint."))

    def _link(self, root: ET.Element, link: Link) -> None:
        """Write a link and its joint."""
        j = link.joint
        native = j.spec.type in NATIVE
        inboard, outboard = (j.M, j.F) if link.backwards else (j.F, j.M)
        own = outboard if native else IDENTITY
        self.frames[link.name] = own
        e = ET.SubElement(root, "link", name=_link_name(link.name))
        if link.mass or np.any(link.inertia):
            self._inertial(e, link, own)
        if native:
            at = compose(inverse(self.frames[link.parent]), inboard)
        else:
            at = compose(inverse(self.frames[link.parent]), relative(self.c.poses[link.parent], link.pose))
        name = _label(j.name) if j.name in self.m.joints else unique(_label(j.name), self.taken)
        kind = NATIVE.get(j.spec.type, "floating")
        limits = self.c.system.limits.get(j.name) if native else None
        if kind == "continuous" and limits is not None:
            kind = "revolute"
        joint = ET.SubElement(root, "joint", name=name, type=kind)
        ET.SubElement(joint, "origin", xyz=_text(at[0]), rpy=_text(_rpy(at[1])))
        ET.SubElement(joint, "parent", link=_link_name(link.parent))
        ET.SubElement(joint, "child", link=_link_name(link.name))
        if kind in ("continuous", "revolute", "prismatic"):
            ET.SubElement(joint, "axis", xyz="0 0 -1" if link.backwards else "0 0 1")
            low, high = limits if limits is not None else (-NO_LIMIT, NO_LIMIT)  # URDF wants some on a slide
            if kind != "continuous":
                loads = {"effort": repr(NO_LIMIT), "velocity": repr(NO_LIMIT)}
                ET.SubElement(joint, "limit", {"lower": repr(low), "upper": repr(high), **loads})
            if j.q_reference[0]:
                dimension = j.spec.dimensions[0]
                self.reference[name] = float(j.q_reference[0]) / self.m.units.factor(dimension)
        if kind == "floating":
            self.placeholders.append(name)
        if kind == "floating" or j.spec.armature is not None:
            self._aside(j, name)

    def _inertial(self, e: ET.Element, link: Link, own: Pose) -> None:
        p, R = own
        com, I = R.T @ (link.com - p), R.T @ link.inertia @ R
        inertial = ET.SubElement(e, "inertial")
        ET.SubElement(inertial, "origin", xyz=_text(com), rpy="0 0 0")
        ET.SubElement(inertial, "mass", value=repr(link.mass))
        entries = (("ixx", 0, 0), ("iyy", 1, 1), ("izz", 2, 2), ("ixy", 0, 1), ("ixz", 0, 2), ("iyz", 1, 2))
        ET.SubElement(inertial, "inertia", {k: repr(float(I[a, b])) for k, a, b in entries})

    def _aside(self, j: JointData, name: str) -> None:
        """Write a joint to the sidecar, by frames on both links."""
        ends = self.c.ends(j)
        unit = self.m.units.factor("length")
        said: dict[str, Any] = {"type": j.spec.type}
        for key, body, own in (("parent", ends[0], j.F), ("child", ends[1], j.M)):
            said[key] = body
            p, R = compose(inverse(self.frames[body]), own)
            said[f"{key}_frame"] = frame((p / unit, R))
        said |= {key: direction.tolist() for key, direction in j.spec.axes_in_frame(j.par).items()}
        for (key, dimension), value in zip(j.spec.constants.items(), j.par, strict=False):
            said[key] = value / self.m.units.factor(dimension)
        if j.spec.limits is not None:
            limits = j.spec.limits
            said["limits"] = {k: list(v) for k, v in limits.items()} if isinstance(limits, dict) else list(limits)
        if j.spec.armature is not None:
            said["armature"] = j.spec.armature
        if j.spec.at_limit is not None:
            said["at_limit"] = j.spec.at_limit if isinstance(j.spec.at_limit, str) else j.spec.at_limit.model_dump()
        self.sidecar_joints[name] = said


def _label(name: str) -> str:
    """Labels of a floating body that has no joint: its joint gets a name of its own."""
    return name.replace("free:", "free ", 1) if name.startswith("free:") else name


def _link_name(body: str) -> str:
    return "world" if body == GROUND else body


def _rpy(R: Array) -> Array:
    """Roll, pitch, yaw; exact as a whole also where roll and yaw are about the same axis."""
    yaw = float(np.arctan2(R[1, 0], R[0, 0]))
    c, s = np.cos(yaw), np.sin(yaw)
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    pitch = np.arctan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    return np.array([roll, pitch, yaw])


def _text(values: Array) -> str:
    return " ".join(repr(float(x) + 0.0) for x in values)
