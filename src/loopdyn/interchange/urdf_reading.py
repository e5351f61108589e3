"""Reading URDF: a tree of links, closed by the `loop` elements of URDF+ or by a sidecar file.

The sidecar is a loopdyn model file without bodies: its joints close loops (or replace a joint of the URDF that has the
same name), and it may hold whatever else URDF cannot say: constraints, forces, gravity, start. Points in it are world
coordinates with all URDF joints at zero, or at the coordinates under `reference`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.draft import Draft, Origin, Pose, compose, made, pose, pose_quaternion, pose_rpy
from loopdyn.interchange.markup import Element, MarkupSource, is_text, not_asked_for
from loopdyn.interchange.report import Imported, Report
from loopdyn.io.reading import Document, read_document
from loopdyn.model.mechanism import GROUND, Mechanism
from loopdyn.quantities.units import Units
from loopdyn.quantities.wording import nearest, short
from loopdyn.spatial.rotations import about_axis

Array = NDArray[np.float64]

TYPES = {
    "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "weld", "floating": "free",
    "planar": "planar",
}  # fmt: skip
LOOP_TYPES = {**{k: v for k, v in TYPES.items() if k != "floating"}, "spherical": "spherical"}
NOT_READ = {
    "visual": "visual shapes", "collision": "collision shapes", "transmission": "transmissions",
    "gazebo": "gazebo tags", "safety_controller": "safety controllers", "calibration": "calibrations",
    "sensor": "sensors", "material": "materials",
}  # fmt: skip
VERSIONS = ("1.0", "1.1", "1.2")
SIDECAR = ("loopdyn", "name", "units", "parameters", "gravity", "reference", "points", "joints", "constraints",
           "drivers", "contacts", "impact", "forces", "base", "measures", "tolerances", "start")  # fmt: skip
ROOT = "world"  # a root link of this name is the ground
GRAVITY = (0.0, 0.0, -9.81)
NO_LIMIT = 1e9  # limits of this size mean none, on joints for which URDF demands some
UNLIMITED = 1e16  # the number in place of an infinite limit, if the other limit is finite


def read_urdf(
    source: str | os.PathLike[str],
    *,
    loops: str | os.PathLike[str] | None = None,
    floating: bool = False,
    gravity: Sequence[float] | None = None,
    mend: bool = False,
) -> Imported:
    """Read a robot from a URDF file, with its loops.

    Parameters
    ----------
    source : str or Path
        Name of the file, or its text.
    loops : str or Path, optional
        Sidecar file with what URDF cannot say: a model file without bodies (see ``docs/import.md``).
    floating : bool
        Whether the root link is free to move; otherwise it is fixed to the ground. A root link ``world`` is the ground.
    gravity : (3,), optional
        In m/s^2; by default that of the sidecar, or (0, 0, -9.81), since URDF says nothing.
    mend : bool
        Replace inertias that no body can have by the nearest possible ones; otherwise compiling refuses them.

    Returns
    -------
    Imported
        ``mechanism``, ``report`` and ``loops``.

    Examples
    --------
    >>> text = '''<robot name="r"><link name="world"/><link name="arm"><inertial><mass value="2"/>
    ... <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    ... <joint name="A" type="continuous"><parent link="world"/><child link="arm"/></joint></robot>'''
    >>> read_urdf(text).mechanism.joints["A"].type
    'revolute'
    """
    file = None if is_text(source) else FilePath(os.fspath(source))
    opened = MarkupSource(file, str(source) if file is None else None, "robot", ".urdf")
    sidecar = None if loops is None else read_document(FilePath(loops), os.fspath(loops))
    return _Reader(opened, sidecar, mend).read(floating, gravity)


class _Reader:
    def __init__(self, source: MarkupSource, sidecar: Document | None, mend: bool):
        self.s = source
        self.report = Report(f"{source.shown}: URDF to loopdyn")
        self.draft = Draft(source.root.get("name"), source.shown, self.report, mend)
        self.sidecar = sidecar
        self.said: dict[str, Any] = {} if sidecar is None else _check_sidecar(sidecar)
        self.units = Units(**self.said.get("units", {}))
        self.loops: list[str] = []

    def read(self, floating: bool, gravity: Sequence[float] | None) -> Imported:
        s = self.s
        self.links = self._named("link")
        self.joints = self._named("joint")
        self.carried_by: dict[str, tuple[str, str]] = {}  # link: joint and parent link
        for name, e in self.joints.items():
            self._check_ends(name, e)
        s.check()
        root = self._root()
        s.check()
        self.names = {root: GROUND} if root == ROOT else {}
        self._place(root, floating)
        self._joints()
        s.check()
        self._loop_elements()
        self._rest()
        s.check()
        self.draft.data["gravity"] = list(GRAVITY if gravity is None else gravity)
        if gravity is None and "gravity" not in self.said:
            self.report.changed.append("gravity is not in URDF: (0, 0, -9.81) m/s^2")
        mechanism = self._with_sidecar(gravity is not None)
        report = self.report
        sections = ("bodies", "joints", "constraints", "forces")
        report.carried[:0] = [f"{len(getattr(mechanism, s))} {s}" for s in sections if getattr(mechanism, s)]
        if self.loops:
            report.carried.append(f"loops closed by: {', '.join(self.loops)}")
        return Imported(mechanism, report, tuple(self.loops))

    # ------------------------------------------------------------------------------------------------ the tree

    def _named(self, tag: str) -> dict[str, Element]:
        found: dict[str, Element] = {}
        for e in self.s.root.all(tag):
            name = e.get("name")
            if not name or name in found:
                message = f"there are two of the name '{name}'" if name else "has no name"
                self.s.problem(f"<{tag}>", message, "Give every element its own name.", e)
            else:
                found[name] = e
        return found

    def _check_ends(self, name: str, e: Element) -> None:
        what, ends = f"joint '{name}'", []
        if e.get("type") not in TYPES:
            hint = nearest(e.get("type"), TYPES)
            self.s.problem(what, f"joints of type '{e.get('type')}' are not known in URDF", hint, e)
        for key in ("parent", "child"):
            end = e.first(key)
            link = "" if end is None else end.get("link")
            if link not in self.links:
                self.s.problem(what, f"there is no link '{link}' for its {key}", nearest(link, self.links), end or e)
            ends.append(link)
        if ends[1] in self.carried_by:
            message = f"link '{ends[1]}' is the child of '{self.carried_by[ends[1]][0]}' already: URDF is a tree"
            self.s.problem(what, message, "Close loops with <loop> or in a sidecar file (loops=).", e)
        self.carried_by[ends[1]] = (name, ends[0])

    def _root(self) -> str:
        roots = [name for name in self.links if name not in self.carried_by]
        if len(roots) != 1:
            message = f"the links have {len(roots)} roots ({', '.join(roots)})" if roots else "the links form a ring"
            message = message if self.links else "there are no links"
            self.s.problem("<robot>", message, "Every link but one must be the child of one joint.", self.s.root)
            return ""
        seen = {roots[0]}
        for link in self.links:  # a ring apart from the tree has no root
            way = [link]
            while way[-1] not in seen and way[-1] in self.carried_by:
                way.append(self.carried_by[way[-1]][1])
                if len(way) > len(self.links):
                    self.s.problem(
                        f"link '{link}'", "it is its own ancestor", "Joints must form a tree.", self.links[link]
                    )
                    return roots[0]
            seen |= set(way)
        return roots[0]

    def _origin(self, e: Element | None, what: str) -> Pose:
        o = None if e is None else e.first("origin")
        if o is None:
            return pose()
        xyz = self.s.numbers(o.get("xyz", "0 0 0"), 3, what, o)
        if "quat_xyzw" not in o.attributes:
            return pose_rpy(xyz, self.s.numbers(o.get("rpy", "0 0 0"), 3, what, o))
        x, y, z, w = self.s.numbers(o.get("quat_xyzw"), 4, what, o)
        if "rpy" in o.attributes or not any((x, y, z, w)):
            message = "its <origin> has both rpy and quat_xyzw" if "rpy" in o.attributes else "quat_xyzw is zero"
            self.s.problem(what, message, "Give one rotation.", o)
            return pose(xyz)
        return pose_quaternion(xyz, (w, x, y, z))

    def _place(self, root: str, floating: bool) -> None:
        """Bodies at the reference coordinates, from the root outwards."""
        reference = self.said.get("reference", {})
        for name, q in reference.items():
            if name not in self.joints or not isinstance(q, int | float):
                what = f"'{name}' is not a joint of the URDF with a number"
                assert self.sidecar is not None
                node = self.sidecar.root.follow(("reference", name))
                raise ModelError([Problem("reference", what, nearest(name, self.joints), node.file, node.line)])
        children: dict[str, list[str]] = {}
        for link, (_, parent) in self.carried_by.items():
            children.setdefault(parent, []).append(link)
        massless = []
        poses: dict[str, Pose] = {root: pose()}
        todo = [root]
        while todo:
            link = todo.pop(0)
            todo += children.get(link, [])
            if link != root:
                joint, parent = self.carried_by[link]
                poses[link] = compose(poses[parent], self._moved(self.joints[joint], reference.get(joint, 0.0)))
            if self.names.get(link) == GROUND:
                continue
            self.names[link] = self.draft.name("bodies", link)
            if not self._body(link, poses[link]):
                massless.append(link)
        if massless:
            self.report.changed.append(f"links without <inertial> have no mass: {', '.join(massless)}")
        if root != ROOT:
            kind = "free" if floating else "weld"
            held = "is free to move" if floating else "is fixed to the ground (floating=True frees it)"
            self.report.changed.append(f"the root link '{root}' {held}")
            name = self.draft.name("joints", f"{self.names[root]} base")
            self.draft.joint(name, kind, (GROUND, self.names[root]), pose(), pose())

    def _moved(self, e: Element, q: float) -> Pose:
        """Pose of the child in the parent at a coordinate, which is in the units of the sidecar."""
        at = self._origin(e, f"joint '{e.get('name')}'")
        kind = TYPES.get(e.get("type"), "")
        if kind == "revolute":
            return compose(at, pose(rotation=about_axis(self._axis(e), q * self.units.factor("angle"))))
        if kind == "prismatic":
            axis = self._axis(e)
            return compose(at, pose(q * self.units.factor("length") * axis / np.linalg.norm(axis)))
        return at

    def _axis(self, e: Element) -> Array:
        axis, what = e.first("axis"), f"{e.tag} '{e.get('name')}'"
        given = np.array([1.0, 0.0, 0.0]) if axis is None else self.s.numbers(axis.get("xyz", "1 0 0"), 3, what, axis)
        if not np.any(given):
            self.s.problem(what, "its axis has length zero", "Give a direction.", axis or e)
            return np.array([1.0, 0.0, 0.0])
        return given

    def _body(self, link: str, at: Pose) -> bool:
        """Mass properties of a link; False if it has none."""
        s, e, what = self.s, self.links[link], f"link '{link}'"
        inertial = e.first("inertial")
        if inertial is None:
            self.draft.body(self.names[link], at, 0.0, np.zeros(3), np.zeros((3, 3)), e.line)
            return False
        mass, inertia = inertial.first("mass"), inertial.first("inertia")
        if mass is None or inertia is None:
            s.problem(what, "its <inertial> needs <mass> and <inertia>", "Add the missing values.", inertial)
            return True
        keys = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        xx, yy, zz, xy, xz, yz = (s.number(inertia.get(k, "0"), what, inertia) for k in keys)
        com = self._origin(inertial, what)
        matrix = com[1] @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ com[1].T
        self.draft.body(self.names[link], at, s.number(mass.get("value"), what, mass), com[0], matrix, e.line)
        return True

    # ---------------------------------------------------------------------------------------------- the joints

    def _joints(self) -> None:
        self.joint_names = {name: self.draft.name("joints", name) for name in self.joints}
        limited, efforts = [], []
        for link, (name, parent) in self.carried_by.items():
            e, here = self.joints[name], self.joint_names[name]
            kind, what = TYPES[e.get("type")], f"joint '{name}'"
            own: dict[str, Any] = {}
            if kind in ("revolute", "prismatic"):
                own["axis"] = self._axis(e)
            if kind == "planar":
                own["normal"] = self._axis(e)
            limit = e.first("limit")
            if limit is not None and e.get("type") in ("revolute", "prismatic"):
                low, high = (self._bound(limit, k, what) for k in ("lower", "upper"))
                if low >= high:
                    self.report.notes.append(f"limits of '{name}' ({low:g} to {high:g}) leave no room: not kept")
                elif low > -NO_LIMIT or high < NO_LIMIT:
                    own["limits"] = [max(low, -UNLIMITED), min(high, UNLIMITED)]
                    limited.append(name)
            given = () if limit is None else [k for k in ("effort", "velocity") if limit.get(k)]
            if limit is not None and any(self._bound(limit, k, what) < NO_LIMIT for k in given):
                efforts.append(name)
            ends = (self.names[parent], self.names[link])
            self.draft.joint(here, kind, ends, self._origin(e, what), pose(), e.line, **own)
            self._loads(e, here, kind, what)
        for name, e in self.joints.items():
            self._mimic(name, e)
        if limited:
            self.report.changed.append("limits of joints are kept by assembling, not as forces")
        self.report.leave_out("limits of effort and speed", efforts)

    def _bound(self, limit: Element, key: str, what: str) -> float:
        """A limit, which may be infinite."""
        return float(self.s.numbers(limit.get(key, "0"), 1, what, limit, finite=False)[0])

    def _loads(self, e: Element, here: str, kind: str, what: str) -> None:
        dynamics = e.first("dynamics") if kind in ("revolute", "prismatic") else None
        if dynamics is None:
            return
        damping, friction = (self.s.number(dynamics.get(k, "0"), what, dynamics) for k in ("damping", "friction"))
        self.draft.spring(here, 0.0, damping, 0.0)
        self.draft.friction(here, friction)

    def _mimic(self, name: str, e: Element) -> None:
        mimic = e.first("mimic")
        if mimic is None:
            return
        what, leader = f"joint '{name}'", mimic.get("joint")
        if leader not in self.joints:
            self.s.problem(
                what, f"mimics the joint '{leader}', which is not there", nearest(leader, self.joints), mimic
            )
            return
        ratio, offset = (self.s.number(mimic.get(k, d), what, mimic) for k, d in (("multiplier", "1"), ("offset", "0")))
        terms = {self.joint_names[name]: 1.0, self.joint_names[leader]: -ratio}
        self.draft.add("constraints", f"{name} mimic", type="coupler", terms=terms, offset=offset)

    def _loop_elements(self) -> None:
        """URDF+: <loop> between frames on two links; <coupling> with a ratio of two chains of joints."""
        for e in self.s.root.all("loop"):
            name = e.get("name") or "loop"
            what = f"loop '{name}'"
            kind = e.get("type")
            if kind not in LOOP_TYPES:
                self.s.problem(what, f"loops of type '{kind}' are not known", nearest(kind, LOOP_TYPES), e)
                continue
            links = [self._side(e, key, what) for key in ("predecessor", "successor")]
            if any(link not in self.links for link in links):
                continue
            F, M = (self._origin(e.first(key), what) for key in ("predecessor", "successor"))
            own: dict[str, Any] = {}
            if kind in ("revolute", "continuous", "prismatic"):
                own["axis"] = self._axis(e)
            if kind == "planar":
                own["normal"] = self._axis(e)
            here = self.draft.name("joints", name)
            self.draft.joint(here, LOOP_TYPES[kind], (self.names[links[0]], self.names[links[1]]), F, M, e.line, **own)
            self.loops.append(here)
        for e in self.s.root.all("coupling"):
            self._coupling(e)

    def _coupling(self, e: Element) -> None:
        """URDF+: sum of q to the successor = ratio * sum of q to the predecessor, both from their common ancestor."""
        name = e.get("name") or "coupling"
        what, ratio = f"coupling '{name}'", e.first("ratio")
        sides = [self._side(e, key, what) for key in ("predecessor", "successor")]
        if ratio is None:
            self.s.problem(what, "has no <ratio>", 'Add <ratio value="..."/>.', e)
        if ratio is None or any(link not in self.links for link in sides):
            return
        chains = [self._chain(link) for link in sides]
        shared = set(chains[0]) & set(chains[1])
        terms: dict[str, float] = {}
        factors = (-self.s.number(ratio.get("value"), what, ratio), 1.0)
        for link, chain, factor in reversed(list(zip(sides, chains, factors, strict=True))):
            coupled = [joint for joint in chain if joint not in shared and self._moves(joint)]
            terms |= {self.joint_names[joint]: factor for joint in reversed(coupled)}
            self._check_coupled(coupled, link, what, e)
        self.draft.add("constraints", name, type="coupler", terms=terms)

    def _side(self, e: Element, key: str, what: str) -> str:
        """Link that a side of a loop or coupling names; records a problem if there is none."""
        side = e.first(key)
        link = "" if side is None else side.get("link")
        if side is None:
            self.s.problem(what, f"has no <{key}>", f'Add <{key} link="..."/>.', e)
        elif link not in self.links:
            self.s.problem(what, f"there is no link '{link}' for its {key}", nearest(link, self.links), side)
        return link

    def _chain(self, link: str) -> list[str]:
        """Joints from a link to the root."""
        joints = []
        while link in self.carried_by:
            joint, link = self.carried_by[link]
            joints.append(joint)
        return joints

    def _moves(self, joint: str) -> bool:
        return TYPES[self.joints[joint].get("type")] != "weld"

    def _check_coupled(self, coupled: Sequence[str], link: str, what: str, e: Element) -> None:
        """Coordinates are added up, so there must be some, all angles or all lengths."""
        kinds = {joint: self.joints[joint].get("type") for joint in coupled}
        odd = [joint for joint, kind in kinds.items() if TYPES[kind] not in ("revolute", "prismatic")]
        if not coupled:
            message = f"no joint that moves lies between the common ancestor of its links and '{link}'"
            self.s.problem(what, message, "Name links on different branches of the tree.", e)
        elif odd:
            message = f"'{odd[0]}' of type {kinds[odd[0]]} has no single coordinate"
            self.s.problem(what, message, "Couple hinges and slides.", e)
        elif len({TYPES[kind] for kind in kinds.values()}) > 1:
            hint = "Couple the joints in the sidecar, with a coupler and its factors."
            self.s.problem(what, f"adds up metres and radians over {', '.join(map(repr, coupled))}", hint, e)

    def _rest(self) -> None:
        """Report everything that was not asked for."""
        version = self.s.root.get("version", "1.0")
        if version not in VERSIONS:
            self.report.notes.append(f"version '{short(version)}' of URDF is not known here: read like 1.2")
        self.report.left_out += not_asked_for(self.s.root, NOT_READ)

    # ------------------------------------------------------------------------------------------------ the sidecar

    def _with_sidecar(self, gravity_given: bool) -> Mechanism:
        """Mechanism of both files, in the units of the sidecar."""
        if self.sidecar is None:
            return self.draft.mechanism()
        said = dict(self.said)
        said.pop("reference", None)
        data = _in_units(self.draft.data, self.units)
        if gravity_given:
            said.pop("gravity", None)
        replaced = [name for name in said.get("joints", {}) if name in data["joints"]]
        self.loops += [name for name in said.get("joints", {}) if name not in data["joints"]]
        for section in ("joints", "constraints", "forces", "parameters"):
            data[section] = {**data.get(section, {}), **said.pop(section, {})}
        data |= said
        if replaced:
            self.report.carried.append(f"joints of the sidecar in place of the URDF's: {', '.join(replaced)}")
        origin = _Both(self.draft.file, self.draft.lines, self.sidecar)
        self.draft.mechanism()  # what the URDF says by itself must be right, too
        return made(data, origin)


def _check_sidecar(document: Document) -> dict[str, Any]:
    """Content of a sidecar; unknown keys are problems."""
    problems = list(document.problems)
    said = document.root.plain()
    shown = document.root.file
    if not isinstance(said, dict):
        raise ModelError([Problem("sidecar", "is not a mapping", "Begin with 'joints:'.", shown)])
    for key in said:
        if key not in SIDECAR:
            line = document.root.entries[key].line
            hint = f"A sidecar holds: {', '.join(SIDECAR)}." if key == "bodies" else nearest(key, SIDECAR)
            problems.append(Problem("sidecar", f"unknown key '{key}'", hint, shown, line))
        elif key not in ("loopdyn", "name", "gravity", "impact") and not isinstance(said[key], dict):
            line = document.root.entries[key].line
            problems.append(Problem("sidecar", f"'{key}' is not a mapping", "Write names and values.", shown, line))
    if problems:
        raise ModelError(problems)
    return said


class _Both(Origin):
    """Lines of the sidecar where it says something, otherwise of the URDF."""

    def __init__(self, file: str, lines: Mapping[tuple[str | int, ...], int], sidecar: Document):
        super().__init__(file, lines)
        object.__setattr__(self, "sidecar", sidecar)

    def locate(self, problems: Sequence[Problem]) -> list[Problem]:
        """Add file and line to problems."""
        root = self.sidecar.root  # type: ignore[attr-defined]
        found = []
        for p in dict.fromkeys(problems):
            in_sidecar = root.entries.get(p.path[0]) if p.path else None
            if p.file is None and in_sidecar is not None and (len(p.path) < 2 or p.path[1] in in_sidecar.entries):
                node = root.follow(p.path)
                p = replace(p, file=node.file, line=node.line)
            found.append(p)
        return super().locate(found)


def _in_units(data: Mapping[str, Any], units: Units) -> dict[str, Any]:
    """Convert the sections from URDF, which is in SI units, to other units."""
    length, angle, mass = (units.factor(d) for d in ("length", "angle", "mass"))
    inertia, found = units.factor("inertia"), dict(data)

    def scaled(values: Any, by: float) -> Any:
        return (np.asarray(values, float) / by).tolist()

    def placed(f: Mapping[str, Any]) -> dict[str, Any]:
        return {**f, "position": scaled(f["position"], length)}

    found["bodies"] = {
        name: {
            **b,
            "mass": b["mass"] / mass,
            "pose": placed(b["pose"]),
            **({"com": scaled(b["com"], length), "inertia": scaled(b["inertia"], inertia)} if "com" in b else {}),
        }
        for name, b in data["bodies"].items()
    }
    found["joints"] = {}
    for name, j in data["joints"].items():
        by = angle if j["type"] == "revolute" else length
        limits = {"limits": scaled(j["limits"], by)} if "limits" in j else {}
        frames = {k: placed(j[k]) for k in ("parent_frame", "child_frame")}
        found["joints"][name] = {**j, **frames, **limits}
    found["forces"] = {name: _force_in_units(f, data["joints"], units) for name, f in data["forces"].items()}
    found["constraints"] = {}
    for name, c in data["constraints"].items():  # couplers: factors are per unit of each coordinate
        kinds = {label: data["joints"][label]["type"] for label in c["terms"]}
        row = length if "prismatic" in kinds.values() else angle
        factor = {label: angle if kind == "revolute" else length for label, kind in kinds.items()}
        terms = {label: v * factor[label] / row for label, v in c["terms"].items()}
        found["constraints"][name] = {**c, "terms": terms, "offset": c.get("offset", 0.0) / row}
    found["gravity"] = scaled(data["gravity"], units.factor("acceleration"))
    return found


def _force_in_units(force: Mapping[str, Any], joints: Mapping[str, Any], units: Units) -> dict[str, Any]:
    """Convert a damper or friction on a joint to other units."""
    turn = "angular_" if joints[force["joint"]]["type"] == "revolute" else ""
    load = "torque" if turn else "force"
    by = {"damping": turn + "damping", "stiffness": turn + "stiffness", "coulomb": load}
    return {k: v / units.factor(by[k]) if k in by else v for k, v in force.items()}
