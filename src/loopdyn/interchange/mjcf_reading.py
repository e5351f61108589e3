"""Reading MJCF, MuJoCo's format.

The `mujoco` package compiles the file, so that defaults, frames and inertia rules are its own; the compiled model
becomes a mechanism. A joint keeps its name and its coordinate (`ref` included). Several joints on one body become a
chain of massless bodies, which is exactly what MuJoCo computes. Equalities become joints and relations that hold
exactly, where MuJoCo's are soft.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.draft import Draft, Pose, compose, inverse, missing, pose, pose_quaternion
from loopdyn.interchange.markup import MAX_DEPTH, Element, Source, is_text
from loopdyn.interchange.mjcf_schema import report_unused, whole
from loopdyn.interchange.report import Imported, Report
from loopdyn.io.reading import MAX_BYTES
from loopdyn.model.mechanism import GROUND
from loopdyn.quantities.units import LARGEST
from loopdyn.quantities.wording import nearest, short
from loopdyn.spatial.rotations import about_axis, perpendicular_frame, to_matrix
from loopdyn.system.system import State, System, build

Array = NDArray[np.float64]

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
CONNECT, WELD, JOINT, TENDON = range(4)  # mjtEq
# Two connects are one hinge if their anchors are this far apart, relative to the model, and equally far on both bodies.
ANCHORS_APART = 1e-6
Coefficients = tuple[float, ...]  # of powers, the linear one first
MAX_COPIES = 10_000  # of a body, by <replicate> and <composite>
NEARER = (
    0.1  # share of the residual of loops at qpos0, or of what it is outside limits, below which a keyframe is nearer
)
NEARLY_CLOSED = 1e-2  # rad or m: residual of equalities, which are soft, at a pose that was saved as closed


@dataclass(frozen=True)
class JointMap:
    """Where a joint of MuJoCo has its coordinates, and its name here."""

    name: str
    kind: int
    q: int  # first index in qpos
    v: int  # first index in qvel


@dataclass(frozen=True)
class ImportedMJCF(Imported):
    """A model read from MJCF, with the correspondence of coordinates.

    Attributes
    ----------
    joints : tuple of JointMap
        In MuJoCo's order.
    """

    joints: tuple[JointMap, ...] = ()

    def compile(self) -> System:
        """The system with MuJoCo's own tree: equalities are the cuts."""
        return self.mechanism.compile(cuts=list(self.loops))

    def from_mujoco(self, system: System, qpos: ArrayLike, qvel: ArrayLike | None = None, t: float = 0.0) -> State:
        """State of :meth:`compile`'s system at MuJoCo's `qpos` and `qvel`.

        Hinge and slide coordinates are the same. Quaternions are w, x, y, z in both. MuJoCo's speeds of a free body are
        its velocity in world axes, then its angular velocity in its own axes; here the angular velocity is first and
        both are in its own axes.
        """
        x, y = np.asarray(qpos, float), None if qvel is None else np.asarray(qvel, float)
        q: dict[str, float] = {}
        v: dict[str, float] = {}
        for j in self.joints:
            labels_q, labels_v = system.joints[j.name].spec.labels(j.name)
            q |= dict(zip(labels_q, x[j.q : j.q + len(labels_q)], strict=True))
            if y is not None:
                given = y[j.v : j.v + len(labels_v)]
                if j.kind == FREE:
                    given = np.concatenate([given[3:], to_matrix(x[j.q + 3 : j.q + 7]).T @ given[:3]])
                v |= dict(zip(labels_v, given, strict=True))
        return system.state(q, v, t)

    def to_mujoco(self, system: System, state: State) -> tuple[Array, Array]:
        """`qpos` and `qvel` of MuJoCo at a state of :meth:`compile`'s system."""
        x, y = [], []
        for j in self.joints:
            q, v = self._values(system, j, state.q, state.v)
            x.append(q)
            y.append(np.concatenate([to_matrix(q[3:]) @ v[3:], v[:3]]) if j.kind == FREE else v)
        return np.concatenate([*x, []]), np.concatenate([*y, []])

    def qacc(self, system: System, state: State, a: ArrayLike) -> Array:
        """`qacc` of MuJoCo for accelerations `a` of :meth:`compile`'s system."""
        z = []
        for j in self.joints:
            q, v = self._values(system, j, state.q, state.v)
            _, b = self._values(system, j, state.q, np.asarray(a, float))
            # velocity of a free body is in its own axes here: these turn
            z.append(
                np.concatenate([to_matrix(q[3:]) @ (b[3:] + np.cross(v[:3], v[3:])), b[:3]]) if j.kind == FREE else b
            )
        return np.concatenate([*z, []])

    @staticmethod
    def _values(system: System, j: JointMap, q: Array, v: Array) -> tuple[Array, Array]:
        data = system.joints[j.name]
        if not data.in_tree:
            message = f"joint '{j.name}' is cut, so MuJoCo's coordinate is not among those of the system"
            raise ModelError([Problem("state", message, "Use the system of '.compile()', which cuts the equalities.")])
        return q[data.q0 : data.q0 + len(data.spec.coordinates)], v[data.v0 : data.v0 + len(data.spec.speeds)]


def read_mjcf(
    source: str | os.PathLike[str], *, keyframe: str | int | None = None, folder: str | os.PathLike[str] | None = None
) -> ImportedMJCF:
    """Read a model of MuJoCo (MJCF), loops included. Needs the extra ``loopdyn[mjcf]``.

    Parameters
    ----------
    source : str or Path
        Name of the file, or its text.
    keyframe : str or int, optional
        Keyframe to start from, by name or number: its pose is the reference pose. By default ``"qpos0"``, at rest; the
        first keyframe if the model has loops that ``qpos0`` leaves open, or closes outside the limits of joints, and
        the keyframe does not.
    folder : str or Path, optional
        Folder that included files and meshes must be in (or below it); by default that of the file. A model given as
        text reads no file without it.

    Returns
    -------
    ImportedMJCF
        ``mechanism``, ``report``, and the correspondence with ``qpos`` and ``qvel``.

    Raises
    ------
    ModelError
        If the file cannot be read or MuJoCo refuses it.

    Examples
    --------
    >>> text = '''<mujoco><worldbody><body name="arm"><joint name="A" axis="0 1 0"/>
    ... <geom type="capsule" size=".02" fromto="0 0 0 .5 0 0"/></body></worldbody></mujoco>'''
    >>> found = read_mjcf(text)
    >>> found.mechanism.joints["A"].type
    'revolute'
    """
    try:
        import mujoco
    except ImportError:
        raise missing("mujoco", "mjcf", "MJCF") from None
    file = None if is_text(source) else FilePath(os.fspath(source))
    inside = FilePath(folder) if folder is not None else None if file is None else file.parent
    opened = Source(file, str(source) if file is None else None, "mujoco", ".xml")
    report = Report(f"{opened.shown}: MJCF to loopdyn")
    files = _Files(opened, file, inside, report)
    text = files.standalone()
    opened.check()
    try:
        model = mujoco.MjModel.from_xml_string(text, files.assets)
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise ModelError([_refused(str(error), opened.shown)]) from None
    _check_numbers(model, opened.shown)
    return _Reader(mujoco, model, opened.shown, report).read(keyframe)


def _check_numbers(model: Any, shown: str) -> None:
    """Refuse numbers that no machine has: MuJoCo reads 1e308 and makes NaN or zero of it."""
    problems = []
    for name in (n for n in dir(model) if n.startswith(READ_ARRAYS)):
        values = getattr(model, name)
        if not isinstance(values, np.ndarray) or values.dtype != np.float64:
            continue
        bad = ~(np.abs(values) <= LARGEST)
        if name == "jnt_axis":
            bad |= np.abs(np.linalg.norm(np.where(bad, 0.0, values), axis=1, keepdims=True) - 1.0) > UNIT_LENGTH
        rows = np.flatnonzero(bad.reshape(len(values), -1).any(axis=1)) if values.size else ()
        for k in rows[:3]:
            message = f"entry {k} of '{name}' is {values[k]}, which no machine has"
            problems.append(Problem("MJCF", message, "Check exponents in the file.", shown))
    if problems:
        raise ModelError(problems)


def _refused(said: str, shown: str) -> Problem:
    """What MuJoCo says, in one line, with its line number where it has one."""
    line = re.search(r"line (\d+)", said)
    message = " ".join(re.sub(r"^XML Error:|^Error:", "", said).split())
    return Problem("MJCF", f"MuJoCo refuses the model: {message}", "Correct it.", shown, int(line[1]) if line else None)


# ------------------------------------------------------------------------------------- files of a model


READ_ARRAYS = ("body_", "jnt_", "dof_", "eq_data", "actuator_", "tendon_", "site_", "key_q", "qpos", "geom_pos")
UNIT_LENGTH = 1e-6  # by which MuJoCo's unit vectors may differ from length one


@dataclass(frozen=True)
class _NotRead:
    """Why a file is not read, as what follows its name, and what to do."""

    why: str
    hint: str


class _Files:
    """Makes one text of a model, so that MuJoCo opens no file: includes, meshes put in, what is not read left out."""

    def __init__(self, source: Source, file: FilePath | None, folder: FilePath | None, report: Report):
        self.source = source
        self.base = file.parent if file is not None else folder
        self.folder = None if folder is None else folder.resolve()
        self.report = report
        self.assets: dict[str, bytes] = {}
        self.missing: dict[str, tuple[str, _NotRead]] = {}  # files of meshes that are not read, by name of the mesh
        self.included: set[FilePath] = set()

    def standalone(self) -> str:
        root = self.source.root
        self._include(root)
        self._refuse_blanks(root)
        report_unused(root, self.report)
        self._meshes(root)
        self._clean(root)
        lines: list[str] = []
        _write(root, lines)
        return "\n".join(lines)

    def _path(self, name: str) -> FilePath | _NotRead:
        """A file inside the folder, or why it is not read."""
        if self.base is None or self.folder is None:
            return _NotRead("is not read, since the model was given as text", "Give 'folder', or read a file.")
        try:
            path = (self.base / name).resolve()
            path.is_file()
        except (OSError, RuntimeError, ValueError):  # too long, links in a circle, a NUL character
            return _NotRead("has a name that no file can have", "Correct it.")
        if not path.is_relative_to(self.folder):
            return _NotRead("is outside the folder of the model", "Give a 'folder' that holds all files of the model.")
        return path

    def _include(self, element: Element, depth: int = 0) -> None:
        """Put the contents of included files in place; elements and files inside one another count alike."""
        children: list[Element] = []
        if depth > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} elements and files inside one another"
            self.source.problem("include", message, "Split the model.", element)
            return
        for child in element.children:
            if child.tag != "include":
                self._include(child, depth + 1)
                children.append(child)
                continue
            name = child.get("file")
            path = self._path(name)
            if isinstance(path, _NotRead):
                self.source.problem("include", f"the file '{short(name)}' {path.why}", path.hint, child)
                continue
            if path in self.included:
                self.source.problem("include", f"'{name}' is included twice", "Include every file once.", child)
                continue
            self.included.add(path)
            other = Source(path, None, "mujocoinclude", ".xml", "mujoco").root  # the latter in older models
            self._include(other, depth + 1)
            for inner in (e for c in other.children for e in c.walk()):
                inner.line = child.line
            children += other.children
        element.children = children

    def _refuse_blanks(self, root: Element) -> None:
        """Refuse empty attributes of equalities: MuJoCo leaves a lock behind, and the next model never returns."""
        for e in (e for equality in root.all("equality") for e in equality.children):
            for name in (n for n, value in e.attributes.items() if not value.strip() and n not in ("name", "class")):
                self.source.problem(f"<{e.tag}>", f"its attribute '{name}' is empty", "Give a value or remove it.", e)

    def _meshes(self, root: Element) -> None:
        compiler = [c for c in root.all("compiler")]
        folders = [c.get("meshdir") or c.get("assetdir") for c in compiler]
        folder = next((f for f in reversed(folders) if f), "")
        strip = any(c.get("strippath") == "true" for c in compiler)
        for c in compiler:
            for key in ("meshdir", "assetdir", "texturedir", "strippath"):
                c.attributes.pop(key, None)
        for mesh in (e for asset in root.all("asset") for e in asset.all("mesh")):
            name = mesh.get("file")
            if not name:
                continue
            mesh.attributes.setdefault("name", FilePath(name).stem)
            path = self._path(os.path.join(folder, FilePath(name).name if strip else name))
            if isinstance(path, FilePath) and not path.is_file():
                path = _NotRead("is missing", "Add the file.")
            elif isinstance(path, FilePath) and path.stat().st_size > MAX_BYTES:
                path = _NotRead(f"is larger than {MAX_BYTES / 1e6:.0f} MB", "Simplify it.")
            if isinstance(path, _NotRead):
                self.missing[mesh.get("name")] = name, path
                continue
            mesh.attributes["file"] = f"mesh{len(self.assets)}{path.suffix}"
            self.assets[mesh.attributes["file"]] = path.read_bytes()
        reasons: dict[str, list[str]] = {}
        for name, reason in self.missing.values():
            reasons.setdefault(reason.why, []).append(short(name))
        for why, names in reasons.items():
            self.report.leave_out(f"meshes, whose file {why}", names)
        self._forget_meshes(root, root, "true" in [c.get("inertiafromgeom") for c in compiler])

    def _forget_meshes(self, element: Element, body: Element, always_from_shapes: bool) -> None:
        """Take out shapes whose mesh is missing; where inertia would follow from them, that is a problem."""
        kept = []
        for child in element.children:
            if child.tag == "geom" and child.get("mesh") in self.missing:
                if body.tag == "body" and (always_from_shapes or body.first("inertial") is None):
                    what = f"body '{body.get('name')}'"
                    name, reason = self.missing[child.get("mesh")]
                    message = f"its inertia follows from the mesh '{short(name)}', whose file {reason.why}"
                    self.source.problem(what, message, f"{reason.hint} Or give the body an <inertial>.", child)
                continue
            if child.tag == "mesh" and child.get("name") in self.missing:
                continue
            self._forget_meshes(child, child if child.tag == "body" else body, always_from_shapes)
            kept.append(child)
        element.children = kept

    def _clean(self, element: Element, copies: int = 1) -> None:
        """Take out what is left out as a whole; refuse other files, and copies that could not be computed."""
        kept = []
        for child in element.children:
            words = [n for n in child.get("count").split() if n.isascii() and n.isdigit()]  # MuJoCo refuses others
            count = [int(n) if len(n) < 10 else MAX_COPIES + 1 for n in words]
            many = copies * math.prod(count)
            if many > MAX_COPIES:
                self.source.problem(f"<{child.tag}>", f"it makes {many} copies", f"Make {MAX_COPIES} at most.", child)
                continue
            if whole(element.tag, child.tag) or (child.tag == "geom" and child.get("hfield")):
                continue
            if child.get("file") and child.tag not in ("mesh", "key"):
                hint = "Put its contents into the file."
                self.source.problem(f"<{child.tag}>", f"the file '{child.get('file')}' is not read", hint, child)
                continue
            child.attributes.pop("material", None)
            self._clean(child, many)
            kept.append(child)
        element.children = kept


def _write(element: Element, lines: list[str]) -> None:
    """XML text in which every element begins on its old line, where that is possible: MuJoCo's errors name lines."""
    lines.extend("" for _ in range(element.line - len(lines)))
    attributes = "".join(f" {k}={quoteattr(v)}" for k, v in element.attributes.items())
    lines[-1] += f"<{element.tag}{attributes}>"
    for child in element.children:
        _write(child, lines)
    lines[-1] += f"</{element.tag}>"


# ------------------------------------------------------------------------------------ the compiled model


class _Reader:
    """Turns a compiled model into a draft, one kind of element after the other."""

    def __init__(self, mujoco: Any, model: Any, shown: str, report: Report):
        self.mj = mujoco
        self.m = model
        self.report = report
        names = bytes(model.names)
        self.draft = Draft(names[: names.index(b"\0")].decode("utf-8", "replace"), shown, report)
        self.bodies: list[str] = [GROUND]
        self.joints: list[JointMap] = []
        self.loops: list[str] = []
        self.motors: dict[str, list[tuple[str, str]]] = {}  # laws of actuators on each joint, with their names
        self.off = int(model.opt.disableflags)

    def disabled(self, what: str) -> bool:
        flag = getattr(self.mj.mjtDisableBit, "mjDSBL_" + what, None)
        if flag is None:  # springs and dampers were one flag in older versions
            flag = getattr(self.mj.mjtDisableBit, "mjDSBL_PASSIVE", None)
        return flag is not None and bool(self.off & int(flag))

    def label(self, kind: str, k: int) -> str:
        name = self.mj.mj_id2name(self.m, getattr(self.mj.mjtObj, "mjOBJ_" + kind), k)
        return name or ""

    def read(self, keyframe: str | int | None) -> ImportedMJCF:
        m, draft = self.m, self.draft
        gravity = np.zeros(3) if self.disabled("GRAVITY") else np.array(m.opt.gravity)
        draft.data["gravity"] = gravity.tolist()
        key = self._keyframe(keyframe)
        self._set_poses(m.qpos0 if key is None else m.key_qpos[key])
        for b in range(1, m.nbody):
            self._body(b, gravity)
        self._flags()
        self._armature()
        for j in self.joints:
            self._joint_loads(j)
        compensated = [j.name for k, j in enumerate(self.joints) if m.jnt_actgravcomp[k]]
        if compensated and np.any(m.body_gravcomp):
            self.report.changed.append(
                "gravity compensation acts on the bodies, not as a part of the actuators (actuatorgravcomp), and "
                f"actuatorfrcrange does not limit it: {', '.join(compensated)}"
            )
        if m.neq and not (self.disabled("EQUALITY") or self.disabled("CONSTRAINT")):
            self._equalities()
        self._tendons()
        if not self.disabled("ACTUATION"):
            self._actuators(key)
        self._rest()
        if key is not None:
            self._start(key)
        report = self.report
        sections = ("bodies", "joints", "constraints", "forces")
        report.carried[:0] = [f"{len(draft.data[s])} {s}" for s in sections if draft.data[s]]
        if self.loops:
            report.carried.append(f"loops closed by: {', '.join(self.loops)}")
            report.changed.append("equalities are soft in MuJoCo (solref, solimp); here they hold exactly")
        return ImportedMJCF(draft.mechanism(), report, tuple(self.loops), tuple(self.joints))

    # ------------------------------------------------------------------------------------ bodies, joints

    def _set_poses(self, qpos: Array) -> None:
        """World poses of all bodies, and of the massless ones of chains, at `qpos`."""
        data = self.mj.MjData(self.m)
        data.qpos[:] = qpos
        self.qpos = data.qpos
        self.mj.mj_kinematics(self.m, data)
        self.poses = [pose(data.xpos[b].copy(), data.xmat[b].reshape(3, 3).copy()) for b in range(self.m.nbody)]

    def _body(self, b: int, gravity: Array) -> None:
        m, draft = self.m, self.draft
        name = draft.name("bodies", self.label("BODY", b) or f"body{b}")
        self.bodies.append(name)
        parent = self.bodies[m.body_parentid[b]]
        place = pose_quaternion(m.body_pos[b], m.body_quat[b])  # in the parent
        first, number = int(m.body_jntadr[b]), int(m.body_jntnum[b])
        for k in range(first, first + number):
            last = k == first + number - 1
            joint = draft.name("joints", self.label("JOINT", k) or (f"{name} {k - first}" if number > 1 else name))
            child = name if last else draft.name("bodies", f"{name} before {joint}")
            F, M = self._joint(k, joint, parent, child, place if k == first else pose())
            if not last:
                draft.body(child, self._carried(k, parent, F, M), 0.0, np.zeros(3), np.zeros((3, 3)))
            parent = child
        if number == 0:
            if m.body_mocapid[b] >= 0:
                self.report.changed.append(f"mocap body '{name}' stands still")
            weld = draft.name("joints", f"{name} fixed")
            draft.joint(weld, "weld", (parent, name), place, pose())
        R = to_matrix(m.body_iquat[b])
        inertia = R @ np.diag(m.body_inertia[b]) @ R.T
        draft.body(name, self.poses[b], float(m.body_mass[b]), m.body_ipos[b].copy(), inertia)
        if m.body_gravcomp[b] and m.body_mass[b]:
            lift = -m.body_gravcomp[b] * m.body_mass[b] * gravity
            at = draft.world_point(name, m.body_ipos[b])
            draft.add("forces", f"{name} gravcomp", type="applied", body=name, force=lift.tolist(), at=at)

    def _carried(self, k: int, parent: str, F: Pose, M: Pose) -> Pose:
        """World pose of a massless body on hinge or slide k (no other joint can be followed by one more)."""
        q, axis = float(self.qpos[self.m.jnt_qposadr[k]]), self.m.jnt_axis[k]
        moved = pose(rotation=about_axis(axis, q)) if int(self.m.jnt_type[k]) == HINGE else pose(q * axis)
        return compose(compose(self.draft.poses[parent], compose(F, moved)), inverse(M))

    def _joint(self, k: int, name: str, parent: str, child: str, place: Pose) -> tuple[Pose, Pose]:
        """Write a joint; its frames on parent and child."""
        m = self.m
        kind, q0 = int(m.jnt_type[k]), float(m.qpos0[m.jnt_qposadr[k]])
        anchor, axis = pose(m.jnt_pos[k].copy()), m.jnt_axis[k].copy()
        limits = None
        limited = m.jnt_limited[k] and not (self.disabled("LIMIT") or self.disabled("CONSTRAINT"))
        if limited and kind in (HINGE, SLIDE):
            limits = m.jnt_range[k].tolist()
        elif limited:
            self.report.left_out.append(f"range of the joint '{name}', which has no single coordinate")
        F, own = compose(place, anchor), {"axis": axis, "limits": limits}
        if kind == HINGE:  # turned back, so that the coordinate is qpos, which is q0 where the file draws the body
            F = compose(F, pose(rotation=about_axis(axis, -q0)))
        elif kind == SLIDE:
            F = compose(F, pose(-q0 * axis))
        elif kind == FREE:
            F, anchor = pose(), pose()
        types = {HINGE: "revolute", SLIDE: "prismatic", BALL: "spherical", FREE: "free"}
        self.draft.joint(name, types[kind], (parent, child), F, anchor, **(own if kind in (HINGE, SLIDE) else {}))
        self.joints.append(JointMap(name, kind, int(m.jnt_qposadr[k]), int(m.jnt_dofadr[k])))
        return F, anchor

    def _flags(self) -> None:
        """Name in the report what flags of the model switch off."""
        m = self.m
        off = {
            "ACTUATION": m.nu and "all actuators (flag actuation)",
            "EQUALITY": m.neq and "all equalities (flag equality)",
            "CONSTRAINT": "all equalities, ranges and dry friction (flag constraint)",
            "LIMIT": np.any(m.jnt_limited) and "ranges of joints (flag limit)",
            "FRICTIONLOSS": np.any(m.dof_frictionloss) and "dry friction (flag frictionloss)",
            "SPRING": np.any(m.jnt_stiffness) and "springs (flag spring)",
            "DAMPER": np.any(m.dof_damping) and "dampers (flag damper)",
        }
        said = [str(what) for flag, what in off.items() if what and self.disabled(flag)]
        self.report.left_out += [f"{what}, which the model switches off" for what in said]

    def _armature(self) -> None:
        """Inertia of rotors that turn with a joint: the joint's own, and what actuators on it or its tendon add."""
        m = self.m
        total = {j.name: float(m.dof_armature[j.v]) for j in self.joints}
        trn = self.mj.mjtTrn
        for k in range(self._actuator_count()):
            own = float(m.actuator_armature[k]) if hasattr(m, "actuator_armature") else 0.0
            if own == 0.0:
                continue
            own *= float(m.actuator_gear[k][0]) ** 2
            kind, target = int(m.actuator_trntype[k]), int(m.actuator_trnid[k][0])
            fixed = self._fixed(target) if kind == int(trn.mjTRN_TENDON) else None
            if kind in (int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)):
                total[self.joints[target].name] += own
            elif fixed is not None and len(fixed) == 1:
                ((joint, c),) = fixed.items()
                total[joint] += own * c**2
            else:
                name = self.label("ACTUATOR", k) or f"actuator {k}"
                self.report.left_out.append(f"actuator '{name}': its armature, which is not on a single joint")
        for t in range(m.ntendon):
            own = float(m.tendon_armature[t]) if hasattr(m, "tendon_armature") else 0.0
            fixed = self._fixed(t)
            if own and fixed is not None and len(fixed) == 1:
                ((joint, c),) = fixed.items()
                total[joint] += own * c**2
            elif own:
                name = self.label("TENDON", t) or f"tendon {t}"
                self.report.left_out.append(f"tendon '{name}': its armature, which is not on a single joint")
        for j in self.joints:
            if total[j.name] and j.kind == FREE:
                self.report.left_out.append(f"armature of the joint '{j.name}', which is free")
                total[j.name] = 0.0
            elif total[j.name]:
                self.draft.data["joints"][j.name]["armature"] = total[j.name]
        self.report.count("joints with armature", [name for name, x in total.items() if x])

    def _joint_loads(self, j: JointMap) -> None:
        m, draft = self.m, self.draft
        k = self.joints.index(j)
        own = _Passive(
            self._spring("jnt", k), self._damping("dof", j.v), (float(m.qpos_spring[j.q]), float(m.qpos_spring[j.q]))
        )
        friction = float(m.dof_frictionloss[j.v])
        if self.disabled("FRICTIONLOSS") or self.disabled("CONSTRAINT"):
            friction = 0.0
        if hasattr(m, "jnt_springyield") and m.jnt_springyield[k]:
            self.report.left_out.append(f"yield of the spring of the joint '{j.name}' (springyield)")
        if m.jnt_actfrclimited[k] and j.kind not in (HINGE, SLIDE):
            self.report.left_out.append(f"actuatorfrcrange of the joint '{j.name}', which has no single coordinate")
        if j.kind in (HINGE, SLIDE):
            if own.linear:
                draft.spring(j.name, own.stiffness[0], own.damping[0], own.rest[0])
            else:
                self._motor(f"{j.name} spring", j, own.law("position", "speed"))
            draft.friction(j.name, friction)
            return
        if not own.linear:
            self.report.left_out.append(f"nonlinear stiffness or damping of the joint '{j.name}'")
        stiffness, damping = own.stiffness[0], own.damping[0]
        ends = draft.data["joints"][j.name]
        labels = ("wx", "wy", "wz") if j.kind == BALL else ("wx", "wy", "wz", "vx", "vy", "vz")
        for suffix in labels if damping else ():
            draft.spring(f"{j.name}.{suffix}", 0.0, damping, 0.0)
        drawn, rest = (x[j.q : j.q + (7 if j.kind == FREE else 4)] for x in (self.qpos, m.qpos_spring))
        if stiffness and not np.array_equal(drawn, rest):
            self.report.left_out.append(f"spring of the joint '{j.name}', whose rest is not the pose of the keyframe")
        elif stiffness:
            at = draft.world_point(ends["child"], m.jnt_pos[k])
            turn, move = [stiffness] * 3, [stiffness] * 3 if j.kind == FREE else [0.0] * 3
            given = {"stiffness": move, "angular_stiffness": turn}
            draft.add(
                "forces", f"{j.name} spring", type="bushing", body1=ends["parent"], body2=ends["child"], at=at, **given
            )
        if friction:
            self.report.left_out.append(f"dry friction of the joint '{j.name}', which has no single coordinate")

    def _spring(self, kind: str, k: int) -> Coefficients:
        """Stiffness of a joint or tendon, and the coefficients of higher powers."""
        return () if self.disabled("SPRING") else self._coefficients(kind, "stiffness", k)

    def _damping(self, kind: str, k: int) -> Coefficients:
        """Damping of a freedom or tendon, with that of the actuators on it, and the coefficients of higher powers."""
        if self.disabled("DAMPER"):
            return ()
        found = self._coefficients(kind, "damping", k)
        trn = self.mj.mjtTrn
        wanted = [int(trn.mjTRN_TENDON)] if kind == "tendon" else [int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)]
        target = k if kind == "tendon" else int(self.m.dof_jntid[k])
        for a in range(self._actuator_count() if hasattr(self.m, "actuator_damping") else 0):
            if int(self.m.actuator_trntype[a]) in wanted and int(self.m.actuator_trnid[a][0]) == target:
                gear = float(self.m.actuator_gear[a][0])
                more = self._coefficients("actuator", "damping", a)
                found = tuple(x + gear**2 * y for x, y in zip(found, more, strict=True))
        return found

    def _coefficients(self, kind: str, what: str, k: int) -> Coefficients:
        m = self.m
        linear = float(np.ravel(getattr(m, f"{kind}_{what}")[k])[0])
        poly = getattr(m, f"{kind}_{what}poly", None)  # since MuJoCo 3.4
        return (linear, *(float(x) for x in (() if poly is None else np.ravel(poly[k]))))

    def _actuator_count(self) -> int:
        return int(getattr(self.m, "nactuator", self.m.nu))

    # ------------------------------------------------------------------------------------------ equalities

    def _equalities(self) -> None:
        m = self.m
        connects: dict[tuple[str, str], list[tuple[str, Pose, Pose]]] = {}
        for k in range(m.neq):
            kind = int(m.eq_type[k])
            name = self.label("EQUALITY", k)
            if not m.eq_active0[k]:
                self.report.left_out.append(f"equality '{name or k}', which is not active")
            elif kind == CONNECT:
                ends, F, M = self._anchors(k)
                if ends[::-1] in connects:
                    ends, F, M = ends[::-1], M, F
                connects.setdefault(ends, []).append((name or f"connect {ends[0]} {ends[1]}", F, M))
            elif kind == WELD:
                ends, F, M = self._anchors(k)
                made = self.draft.name("joints", name or f"weld {ends[0]} {ends[1]}")
                turns = float(m.eq_data[k][10]) == 0.0  # torquescale: the rotation is free
                self.draft.joint(made, "spherical" if turns else "weld", ends, F, M)
                self.loops.append(made)
                if turns:
                    self.report.changed.append(f"the weld '{made}' has torquescale 0: it is a ball")
            elif kind == JOINT:
                self._polynomial(k, name)
            elif kind == TENDON:
                self._tendon_equality(k, name)
            else:
                self.report.left_out.append(f"equality '{name or k}' of a type that is not known here")
        for ends, anchors in connects.items():
            self._connects(ends, anchors)

    def _anchors(self, k: int) -> tuple[tuple[str, str], Pose, Pose]:
        """Bodies of a connect or weld, and its frames on them."""
        m, data = self.m, self.m.eq_data[k]
        ids = (int(m.eq_obj1id[k]), int(m.eq_obj2id[k]))
        if int(m.eq_objtype[k]) == int(self.mj.mjtObj.mjOBJ_SITE):
            bodies = [int(m.site_bodyid[s]) for s in ids]
            F, M = (pose_quaternion(m.site_pos[s], m.site_quat[s]) for s in ids)
            if int(m.eq_type[k]) == CONNECT:
                F, M = pose(F[0]), pose(M[0])
        else:
            bodies = list(ids)
            if int(m.eq_type[k]) == CONNECT:
                F, M = pose(data[0:3].copy()), pose(data[3:6].copy())
            else:  # anchor in body 2, then the pose of body 2 in body 1
                F, M = pose_quaternion(data[3:6], data[6:10]), pose(data[0:3].copy())
        return (self.bodies[bodies[0]], self.bodies[bodies[1]]), F, M

    def _connects(self, ends: tuple[str, str], anchors: list[tuple[str, Pose, Pose]]) -> None:
        """Balls; the first two that lie apart are a hinge."""
        draft = self.draft
        while anchors:
            name, F, M = anchors.pop(0)
            partner = next((a for a in anchors if _apart(F[0], a[1][0], M[0], a[2][0])), None)
            made = draft.name("joints", name)
            self.loops.append(made)
            if partner is None:
                draft.joint(made, "spherical", ends, F, M)
                continue
            anchors.remove(partner)
            # z along the two anchors, and the angle zero in the drawn pose
            R_F = perpendicular_frame(partner[1][0] - F[0]).T
            R_12 = compose(inverse(draft.poses[ends[0]]), draft.poses[ends[1]])[1]
            x_in_M = R_12.T @ R_F[:, 0]
            R_M = perpendicular_frame(partner[2][0] - M[0], x_in_M).T
            draft.joint(made, "revolute", ends, (F[0], R_F), (M[0], R_M), axis=[0.0, 0.0, 1.0])
            self.report.changed.append(f"the connects '{name}' and '{partner[0]}' are one hinge, '{made}'")

    def _polynomial(self, k: int, name: str) -> None:
        """y - y0 = sum a_i (x - x0)^i of two joint coordinates, or y - y0 = a_0 of one."""
        m = self.m
        a = [float(c) for c in m.eq_data[k][:5]]
        y = self.joints[int(m.eq_obj1id[k])]
        y0 = float(m.qpos0[y.q])
        wanted = name or f"equality {y.name}"
        if int(m.eq_obj2id[k]) < 0:
            self.draft.add("constraints", wanted, type="coupler", terms={y.name: 1.0}, offset=y0 + a[0])
            return
        x = self.joints[int(m.eq_obj2id[k])]
        x0 = float(m.qpos0[x.q])
        if not any(a[2:]):
            terms = {y.name: 1.0, x.name: -a[1]}
            self.draft.add("constraints", wanted, type="coupler", terms=terms, offset=y0 + a[0] - a[1] * x0)
            return
        d = f"(x - {x0!r})"
        poly = " + ".join(f"({c!r})*{d}**{i}" for i, c in enumerate(a) if c != 0.0)
        formula = f"y - {y0!r} - ({poly})"
        self.draft.add("constraints", wanted, type="relation", formula=formula, coordinates={"y": y.name, "x": x.name})

    def _tendon_equality(self, k: int, name: str) -> None:
        m = self.m
        a = m.eq_data[k][:5]
        first, second = int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
        one, two = (self._fixed(t) if t >= 0 else {} for t in (first, second))
        if one is None or two is None or np.any(a[2:]):
            self.report.left_out.append(f"equality '{name or k}' of tendons that is not linear in joint coordinates")
            return
        terms = dict(one)
        for joint, c in two.items():
            terms[joint] = terms.get(joint, 0.0) - float(a[1]) * c
        rest = float(m.tendon_length0[first]) + float(a[0])
        rest -= float(a[1]) * float(m.tendon_length0[second]) if second >= 0 else 0.0
        self.draft.add("constraints", name or f"tendons {k}", type="coupler", terms=terms, offset=rest)

    # ---------------------------------------------------------------------------------- tendons, actuators

    def _fixed(self, t: int) -> dict[str, float] | None:
        """Coefficients of a fixed tendon by joint, without those that are zero; None for a spatial one."""
        m = self.m
        wraps = range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])
        if any(int(m.wrap_type[w]) != int(self.mj.mjtWrap.mjWRAP_JOINT) for w in wraps):
            return None
        terms: dict[str, float] = {}
        for w in wraps:
            j = self.joints[int(m.wrap_objid[w])]
            if j.kind not in (HINGE, SLIDE):
                return None
            terms[j.name] = terms.get(j.name, 0.0) + float(m.wrap_prm[w])
        return {joint: c for joint, c in terms.items() if c}

    def _line(self, t: int) -> dict[str, Any] | None:
        """Bodies and points of a spatial tendon that is a straight line between two sites."""
        m = self.m
        wraps = range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])
        sites = [int(m.wrap_objid[w]) for w in wraps]
        is_line = len(sites) == 2 and all(int(m.wrap_type[w]) == int(self.mj.mjtWrap.mjWRAP_SITE) for w in wraps)
        if not is_line or m.site_bodyid[sites[0]] == m.site_bodyid[sites[1]]:
            return None
        bodies = [self.bodies[m.site_bodyid[s]] for s in sites]
        points = [self.draft.world_point(b, m.site_pos[s]) for b, s in zip(bodies, sites, strict=True)]
        return {"body1": bodies[0], "body2": bodies[1], "point1": points[0], "point2": points[1]}

    def _tendons(self) -> None:
        m = self.m
        bent = []
        for t in range(m.ntendon):
            name = self.label("TENDON", t) or f"tendon {t}"
            own = _Passive(
                self._spring("tendon", t), self._damping("tendon", t), tuple(float(x) for x in m.tendon_lengthspring[t])
            )
            line, fixed = self._line(t), self._fixed(t)
            reach = "its range ({:g} to {:g})".format(*(float(x) for x in m.tendon_range[t]))
            parts = {reach: "limited", "its dry friction": "frictionloss", "yield of its spring": "springyield"}
            extra = [w for w, key in parts.items() if getattr(m, f"tendon_{key}", np.zeros(m.ntendon))[t]]
            if own and line is not None:
                self._line_load(name, line, own)
            elif own and fixed is not None and len(fixed) == 1:
                ((joint, b),) = fixed.items()
                j = next(x for x in self.joints if x.name == joint)
                if own.linear:
                    self.draft.spring(joint, own.stiffness[0] * b**2, own.damping[0] * b**2, own.rest[0] / b)
                else:
                    self._motor(name, j, f"{b!r}*({own.law(_times(b, 'position'), _times(b, 'speed'))})")
            elif own and fixed:
                law = own.law("length", "speed")
                self.draft.add("forces", name, type="joint_tendon", terms=fixed, force=law)
            elif own and fixed is None:
                extra.append("its spring and damper")
            if extra:
                self.report.left_out.append(f"tendon '{name}': {', '.join(extra)}")
            elif line is None and fixed is None:
                bent.append(name)
        self.report.leave_out("tendons that are not straight lines between two sites", bent)

    def _line_load(self, name: str, line: dict[str, Any], own: _Passive) -> None:
        """Spring and damper of a tendon that is a straight line."""
        if own.linear:
            given = {"stiffness": own.stiffness[0], "damping": own.damping[0], "length": own.rest[0]}
            self.draft.add("forces", name, type="spring_damper", **line, **given)
        else:
            self.draft.add("forces", name, type="actuator", **line, force=own.law("length", "speed"))

    def _actuators(self, key: int | None) -> None:
        carried, elsewhere = [], []
        reasons: dict[str, list[str]] = {}
        for k in range(self._actuator_count()):
            name = self.label("ACTUATOR", k) or f"actuator {k}"
            before = sum(len(laws) for laws in self.motors.values())
            why = self._actuator(k, name, key)
            if why:
                reasons.setdefault(why, []).append(f"'{name}'")
            else:
                carried.append(name)
                if sum(len(laws) for laws in self.motors.values()) == before:
                    elsewhere.append(name)
        self._joint_motors(elsewhere)
        for why, names in reasons.items():
            self.report.left_out.append(f"actuator{'s' * (len(names) > 1)} {', '.join(names)}: {why}")
        self.report.count("actuators", carried)
        if self.draft.data["parameters"]:
            self.report.changed.append(f"controls are parameters: {', '.join(self.draft.data['parameters'])}")

    def _joint_motors(self, elsewhere: list[str]) -> None:
        """Write the actuators on joints; where their sum on a joint is limited (actuatorfrcrange), as one motor."""
        m = self.m
        limited = []
        for k, j in enumerate(self.joints):
            laws = self.motors.get(j.name, [])
            if m.jnt_actfrclimited[k] and j.kind in (HINGE, SLIDE):
                limited.append(j.name)
                low, high = (float(x) for x in m.jnt_actfrcrange[k])
                total = " + ".join(law for _, law in laws)
                name = laws[0][0] if len(laws) == 1 else f"{j.name} actuators"
                laws = [(name, f"clip({total}, {low!r}, {high!r})")] if laws else []
            for name, law in laws:
                self._motor(name, j, law)
        if limited and elsewhere:
            self.report.left_out.append(
                f"actuatorfrcrange of the joints {', '.join(limited)} for actuators that are not on one of them alone: "
                f"{', '.join(elsewhere)}"
            )

    def _actuator(self, k: int, name: str, key: int | None) -> str:
        """Write one actuator, or note it for its joint; or say why that cannot be done."""
        m, mj = self.m, self.mj
        if int(m.actuator_group[k]) in range(31) and int(m.opt.disableactuator) >> int(m.actuator_group[k]) & 1:
            return "its group is switched off (actuatorgroupdisable)"
        if int(m.actuator_plugin[k]) >= 0:
            return "it is a plugin"
        if int(m.actuator_dyntype[k]) != int(mj.mjtDyn.mjDYN_NONE):
            return "it has a state of its own (dyntype)"
        gain, bias = (self._affine(k, kind) for kind in ("gain", "bias"))
        if gain is None or bias is None:
            return "its force is not an affine function of length and speed"
        column = int(m.actuator_ctrladr[k]) if hasattr(m, "actuator_ctrladr") else k
        control = self.draft.name("parameters", f"ctrl_{name}")
        ctrl = control
        if m.actuator_ctrllimited[k] and not self.disabled("CLAMPCTRL"):
            ctrl = "clip({}, {!r}, {!r})".format(control, *(float(x) for x in m.actuator_ctrlrange[k]))
        limits = [float(x) for x in m.actuator_forcerange[k]] if m.actuator_forcelimited[k] else None
        kind, target = int(m.actuator_trntype[k]), int(m.actuator_trnid[k][0])
        gear = [float(x) for x in m.actuator_gear[k]]
        constant = not any((*gain[1:], *bias[1:]))
        trn = mj.mjtTrn

        def law(length: str, speed: str, scale: float) -> str:
            g, b = (_sum(c, length, speed) for c in (gain, bias))
            force = b if g == "0.0" else f"({g})*{ctrl}" + (f" + {b}" if b != "0.0" else "")
            force = f"clip({force}, {limits[0]!r}, {limits[1]!r})" if limits else f"({force})"
            if kind == int(trn.mjTRN_TENDON) and m.tendon_actfrclimited[target]:
                force = "clip({}, {!r}, {!r})".format(force, *(float(x) for x in m.tendon_actfrcrange[target]))
            return force if scale == 1.0 else f"{scale!r}*{force}"

        if kind == int(trn.mjTRN_TENDON) and m.tendon_actfrclimited[target]:
            on_it = [int(m.actuator_trnid[i][0]) for i in range(self._actuator_count())
                     if int(m.actuator_trntype[i]) == kind]  # fmt: skip
            if on_it.count(target) > 1:
                return "its tendon limits the sum of several actuators (actuatorfrcrange)"
        if kind in (int(trn.mjTRN_JOINT), int(trn.mjTRN_JOINTINPARENT)):
            j = self.joints[target]
            if j.kind not in (HINGE, SLIDE):
                return "it acts on a ball or free joint"
            text = law(_times(gear[0], "position"), _times(gear[0], "speed"), gear[0])
            self.motors.setdefault(j.name, []).append((name, text))
        elif kind == int(trn.mjTRN_TENDON) and (line := self._line(target)) is not None:
            # an actuator pushes the points apart where a tendon's force lengthens it: the same sign
            own = law(_times(gear[0], "length"), _times(gear[0], "speed"), gear[0])
            self.draft.add("forces", name, type="actuator", **line, force=own)
        elif kind == int(trn.mjTRN_TENDON) and (fixed := self._fixed(target)) is not None:
            if not fixed:
                return "all coefficients of its tendon are zero"
            if len(fixed) > 1:
                own = law(_times(gear[0], "length"), _times(gear[0], "speed"), gear[0])
                self.draft.add("forces", name, type="joint_tendon", terms=fixed, force=own)
            else:
                ((joint, c),) = fixed.items()
                s = gear[0] * c
                self.motors.setdefault(joint, []).append((name, law(_times(s, "position"), _times(s, "speed"), s)))
        elif kind == int(trn.mjTRN_SITE) and int(m.actuator_trnid[k][1]) < 0 and constant:
            body = self.bodies[m.site_bodyid[target]]
            R = self.draft.poses[body][1] @ to_matrix(m.site_quat[target])
            force, torque = ([law("0", "0", float(x)) for x in R @ gear[i : i + 3]] for i in (0, 3))
            at = self.draft.world_point(body, m.site_pos[target])
            self.draft.add("forces", name, type="applied", body=body, axes="body", force=force, torque=torque, at=at)
        elif kind == int(trn.mjTRN_TENDON):
            return "its tendon is neither a straight line between two bodies nor a sum of joint coordinates"
        else:
            return "its transmission is not known here"
        if any(gain):
            self.draft.data["parameters"][control] = 0.0 if key is None else float(m.key_ctrl[key][column])
        return ""

    def _affine(self, k: int, kind: str) -> tuple[float, float, float] | None:
        """Constant, factor of length, factor of speed; None if it is of another type."""
        m, mj = self.m, self.mj
        found = int(getattr(m, f"actuator_{kind}type")[k])
        prm = [float(x) for x in getattr(m, f"actuator_{kind}prm")[k][:3]]
        if kind == "bias" and found == int(mj.mjtBias.mjBIAS_NONE):
            return 0.0, 0.0, 0.0
        if kind == "gain" and found == int(mj.mjtGain.mjGAIN_FIXED):
            return prm[0], 0.0, 0.0
        affine = mj.mjtGain.mjGAIN_AFFINE if kind == "gain" else mj.mjtBias.mjBIAS_AFFINE
        return (prm[0], prm[1], prm[2]) if found == int(affine) else None

    def _motor(self, name: str, j: JointMap, law: str) -> None:
        self.draft.add("forces", name, type="motor", joint=j.name, **{"torque" if j.kind == HINGE else "force": law})

    # ------------------------------------------------------------------------------------------- the rest

    def _keyframe(self, wanted: str | int | None) -> int | None:
        m = self.m
        names = [self.label("KEY", k) or str(k) for k in range(m.nkey)]
        if wanted is None and names and self._is_better(m.key_qpos[0], m.qpos0):
            self.report.changed.append(
                f"the reference pose is the keyframe '{names[0]}': qpos0 leaves loops open or is outside the limits of "
                'joints (keyframe="qpos0" reads it all the same)'
            )
            return 0
        if wanted is None or (wanted == "qpos0" and "qpos0" not in names):
            if names:
                self.report.left_out.append(f"keyframes {', '.join(names)}: read one with keyframe=")
            return None
        if isinstance(wanted, int) and 0 <= wanted < m.nkey:
            return wanted
        if str(wanted) not in names:
            hint = nearest(str(wanted), names)
            raise ModelError([Problem("keyframe", f"there is no keyframe '{wanted}'", hint, self.draft.file)])
        return names.index(str(wanted))

    def _is_better(self, one: Array, other: Array) -> bool:
        """Whether a pose is nearer to closed than another, or as near and within limits that the other leaves."""
        if not self.m.neq:
            return False
        (gap, beyond), (other_gap, other_beyond) = (self._misfit(qpos) for qpos in (one, other))
        return gap < NEARER * other_gap or (
            beyond < NEARER * other_beyond and gap < max(2.0 * other_gap, NEARLY_CLOSED)
        )

    def _misfit(self, qpos: Array) -> tuple[float, float]:
        """Largest residual of equalities at a pose, and by how much limits of joints are passed, rad or m."""
        m, data = self.m, self.mj.MjData(self.m)
        data.qpos[:] = qpos
        self.mj.mj_forward(m, data)
        rows = data.efc_type[: data.nefc] == int(self.mj.mjtConstraint.mjCNSTR_EQUALITY)
        scalar = (m.jnt_limited != 0) & (m.jnt_type >= SLIDE)
        at, (low, high) = qpos[m.jnt_qposadr[scalar]], m.jnt_range[scalar].T
        beyond = np.maximum(low - at, at - high).max(initial=0.0)
        return float(np.abs(data.efc_pos[: data.nefc][rows]).max(initial=0.0)), float(beyond)

    def _start(self, key: int) -> None:
        """Speeds of the keyframe by label; its pose is the reference pose."""
        found = ImportedMJCF(self.draft.mechanism(), self.report, tuple(self.loops), tuple(self.joints))
        system = build(found.mechanism, cuts=list(found.loops))
        v = found.from_mujoco(system, self.m.key_qpos[key], self.m.key_qvel[key]).v.tolist()
        self.draft.data["start"] = {"v": {label: x for label, x in zip(system.speeds, v, strict=True) if x != 0.0}}
        self.report.carried.append(f"pose and speeds of the keyframe '{self.label('KEY', key) or key}'")

    def _rest(self) -> None:
        m, report = self.m, self.report
        report.leave_out("shapes, for contact and looks (their masses are in the bodies)", int(m.ngeom))
        limited = [name for name, j in self.draft.data["joints"].items() if "limits" in j]
        if limited:
            report.changed.append(f"ranges of joints are kept by assembling, not as forces: {', '.join(limited)}")
        if m.opt.density or m.opt.viscosity:
            report.left_out.append("forces of the surrounding fluid (density, viscosity, wind)")
        if m.nplugin:
            report.leave_out("plugins", int(m.nplugin))
        if m.nflex:
            report.leave_out("flexible bodies", int(m.nflex))


@dataclass(frozen=True)
class _Passive:
    """Spring and damper of a joint or tendon, as MuJoCo computes them.

    With x the length beyond the nearer end of the rest interval, the force is -(k0 x + k1 x^2 + k2 x^3 ...) and
    -(c0 v + c1 v |v| + c2 v^3 ...).
    """

    stiffness: Coefficients
    damping: Coefficients
    rest: tuple[float, ...]  # low and high end of the lengths at which the spring is slack

    def __post_init__(self) -> None:
        object.__setattr__(self, "stiffness", self.stiffness or (0.0,))
        object.__setattr__(self, "damping", self.damping or (0.0,))

    def __bool__(self) -> bool:
        return any(self.stiffness) or any(self.damping)

    @property
    def linear(self) -> bool:
        """Whether a linear spring with one rest length and a linear damper say it."""
        return not (any(self.stiffness[1:]) or any(self.damping[1:])) and (
            self.rest[0] == self.rest[1] or not any(self.stiffness)
        )

    def law(self, length: str, speed: str) -> str:
        """Formula of the force."""
        low, high = self.rest
        x = f"({length} - {low!r})" if low == high else f"({length} - clip({length}, {low!r}, {high!r}))"
        parts = [f"{c!r}*{x}" + (f"**{i + 1}" if i else "") for i, c in enumerate(self.stiffness) if c]
        parts += [f"{c!r}*{speed}" + (f"*abs({speed})**{i}" if i else "") for i, c in enumerate(self.damping) if c]
        return f"-({' + '.join(parts)})"


def _sum(c: tuple[float, float, float], length: str, speed: str) -> str:
    """Text of c0 + c1*length + c2*speed without what is zero."""
    parts = [repr(c[0])] if c[0] else []
    parts += [f"({c[1]!r})*{length}"] if c[1] else []
    parts += [f"({c[2]!r})*{speed}"] if c[2] else []
    return " + ".join(parts) or "0.0"


def _times(factor: float, name: str) -> str:
    """Text of a variable times a factor."""
    return name if factor == 1.0 else f"({factor!r}*{name})"


def _apart(a: Array, b: Array, c: Array, d: Array) -> bool:
    """Whether anchors a, b on one body and c, d on another span an axis."""
    one, two = float(np.linalg.norm(b - a)), float(np.linalg.norm(d - c))
    scale = max(1.0, *(float(np.abs(x).max()) for x in (a, b, c, d)))
    return min(one, two) > ANCHORS_APART * scale and math.isclose(one, two, rel_tol=ANCHORS_APART)
