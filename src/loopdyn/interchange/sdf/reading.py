"""Reading SDFormat (Gazebo, Drake): links, joints and frames of one model and of the models nested in it.

Loops are native: joints form any graph. Poses are resolved as the specification says: a link stands in the model frame,
a joint in its child, a frame in what it is attached to, unless ``relative_to`` names something else. Joint coordinates
are zero in the drawn pose. Elements of a nested model are called ``model/element``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray

from loopdyn.interchange.draft import Draft, Pose, compose, inverse, world_frames
from loopdyn.interchange.draft import pose as make_pose
from loopdyn.interchange.markup import Element, MarkupSource, is_text, not_asked_for
from loopdyn.interchange.report import Imported, Report, listed
from loopdyn.interchange.sdf.frames import MODEL, WORLD, Frames, Scope, end_of
from loopdyn.model.mechanism import GROUND
from loopdyn.quantities.wording import nearest, short

Array = NDArray[np.float64]

TYPES = {
    "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "ball": "spherical",
    "universal": "universal", "revolute2": "universal", "fixed": "weld", "screw": "helical", "gearbox": "",
}  # fmt: skip
NOT_READ = {  # elements that are left out, and what the report calls them
    "visual": "visual shapes", "collision": "collision shapes", "sensor": "sensors", "plugin": "plugins",
    "light": "lights", "projector": "projectors", "audio_source": "audio sources", "battery": "batteries",
    "gripper": "grippers", "fluid_added_mass": "added masses of a fluid", "physics": "settings of a physics engine",
    "scene": "scenes", "gui": "settings of windows", "actor": "actors", "velocity_decay": "dampings of links by air",
}  # fmt: skip
UNLIMITED = 1e15  # limits of this size mean none (the specification writes 1e16)
GRAVITY = (0.0, 0.0, -9.8)  # of a world that says nothing
DRAWN_APART = 1e-6  # m or rad; SDF files have some six digits, so frames that differ by less are intended to agree
PARALLEL = 1e-6  # sine of the angle of two axes that count as parallel


def read_sdf(
    source: str | os.PathLike[str],
    *,
    model: str | None = None,
    gravity: Sequence[float] | None = None,
    mend: bool = False,
) -> Imported:
    """Read a model from an SDF file, loops and nested models included.

    Parameters
    ----------
    source : str or Path
        Name of the file, or its text.
    model : str, optional
        Name of the model, if the file has several that can move. Other, static models count as ground.
    gravity : (3,), optional
        Gravity in m/s^2; by default that of the file's world, or (0, 0, -9.8), the default of SDF.
    mend : bool
        Replace inertias that no body can have by the nearest possible ones; otherwise compiling refuses them.

    Returns
    -------
    Imported
        ``mechanism``, ``report`` and ``loops``.

    Examples
    --------
    >>> text = '''<sdf version="1.7"><model name="m"><link name="arm"><inertial><mass>2</mass></inertial></link>
    ... <joint name="A" type="revolute"><parent>world</parent><child>arm</child><axis><xyz>0 1 0</xyz></axis></joint>
    ... </model></sdf>'''
    >>> read_sdf(text).mechanism.joints["A"].axis
    (0.0, 1.0, 0.0)
    """
    file = None if is_text(source) else FilePath(os.fspath(source))
    opened = MarkupSource(file, str(source) if file is None else None, "sdf", ".sdf")
    return _Reader(opened, mend).read(model, gravity)


@dataclass(frozen=True)
class _JointHere:
    """Converted joint: its bodies, and the directions of its axes in the world."""

    name: str
    type: str
    parent: str
    child: str
    axes: tuple[Array, ...]

    def labels(self) -> list[str]:
        """Labels of the coordinates that belong to <axis> and <axis2>."""
        return [f"{self.name}.1", f"{self.name}.2"] if self.type == "universal" else [self.name]


class _Reader:
    def __init__(self, source: MarkupSource, mend: bool):
        self.s = source
        self.mend = mend
        self.report = Report(f"{source.shown}: SDF to loopdyn")
        self.frames = Frames(source, self.report)
        self.bodies: dict[tuple[Scope, str], str] = {}  # names of bodies by scope and link
        self.joints: dict[tuple[Scope, str], _JointHere] = {}

    def read(self, wanted: str | None, gravity: Sequence[float] | None) -> Imported:
        world = self.frames.choose(wanted)
        self.draft = Draft(self.frames.model.element.get("name"), self.s.shown, self.report, self.mend)
        g = self._gravity(world.element, gravity)
        for scope in self.frames.model.inside():
            for name, e in scope.links().items():
                self._link(scope, name, e, g)
        jointed = [
            (scope, e) for scope in self.frames.model.inside() for e in scope.placed.values() if e.tag == "joint"
        ]
        jointed += [(world, e) for e in world.placed.values() if e.tag == "joint" and self.frames.concerns(e)]
        for scope, e in jointed:
            self._joint(scope, e)
        self.s.check()
        self._base()
        for scope, e in jointed:
            self._mimics(scope, e)
            self._gearbox(scope, e)
        self._rest()
        self.s.check()
        report = self.report
        sections = ("bodies", "joints", "constraints", "forces")
        report.carried[:0] = [f"{len(self.draft.data[s])} {s}" for s in sections if self.draft.data[s]]
        loops = self._loops()
        if loops:
            report.carried.append(f"loops closed by: {', '.join(loops)}")
        return Imported(self.draft.mechanism(), report, loops)

    def _gravity(self, world: Element, given: Sequence[float] | None) -> Array:
        g = np.array(GRAVITY if given is None else given, float)
        if given is None and world.first("gravity") is not None:
            g = self.s.numbers(world.child_text("gravity"), 3, "world", world)
        elif given is None:
            self.report.changed.append("gravity is not in the file: (0, 0, -9.8) m/s^2, the default of SDF")
        self.draft.data["gravity"] = g.tolist()
        return g

    def _attached(self, scope: Scope, name: str) -> str | None:
        """Body that a link, frame, joint or model moves with; None if there is none."""
        seen: set[tuple[Scope, str]] = set()
        while (scope, name) not in seen:
            seen.add((scope, name))
            if name == WORLD or (name == MODEL and scope.outer is None):
                return GROUND
            first, _, rest = name.partition("::")
            if name == MODEL:
                first_link = next(iter(scope.links()), None) or next((f"{m}::{MODEL}" for m in scope.models), "")
                name = scope.element.get("canonical_link") or first_link
            elif first in scope.models:
                scope, name = scope.models[first], rest or MODEL
            elif name not in scope.placed:
                return None
            elif scope.placed[name].tag == "link":
                return GROUND if scope.grounded else self.bodies[scope, name]
            elif scope.placed[name].tag == "frame":
                name = scope.placed[name].get("attached_to") or MODEL
            else:
                name = end_of(scope.placed[name], "child")
        return None

    # ------------------------------------------------------------------------------------------ links, joints

    def _link(self, scope: Scope, name: str, e: Element, gravity: Array) -> None:
        s, what = self.s, f"link '{name}'"
        body = self.draft.name("bodies", scope.prefix + name)
        self.bodies[scope, name] = body
        mass, com, matrix = 1.0, make_pose(), np.eye(3)
        inertial = e.first("inertial")
        if inertial is None:
            self.report.changed.append(f"link '{name}' has no inertial: 1 kg and 1 kg m^2 about each axis, as SDF says")
        else:
            if inertial.get("auto") in ("1", "true"):
                s.problem(what, "its inertia is to be computed from its shapes", "Write mass and inertia.", inertial)
            mass = s.number(inertial.child_text("mass", "1"), what, inertial)
            com = self.frames.own_pose(inertial)
            p = inertial.first("pose")
            if p is not None and p.get("relative_to"):
                s.problem(what, "the pose of its <inertial> is relative to another frame", "Give it in the link.", p)
            matrix = self._inertia(inertial.first("inertia"), what)
        at = self.frames.in_world(scope, name)
        self.draft.body(body, at, mass, com[0], com[1] @ matrix @ com[1].T, e.line)
        if e.child_text("gravity") in ("0", "false"):
            point = self.draft.world_point(body, com[0])
            force = (-mass * gravity).tolist()
            self.draft.add("forces", f"{body} without gravity", type="applied", body=body, force=force, at=point)

    def _inertia(self, given: Element | None, what: str) -> Array:
        if given is None:
            return np.eye(3)
        default = {"ixx": "1", "iyy": "1", "izz": "1"}
        keys = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        xx, yy, zz, xy, xz, yz = (self.s.number(given.child_text(k, default.get(k, "0")), what, given) for k in keys)
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def _joint(self, scope: Scope, e: Element) -> None:
        s, name, kind = self.s, e.get("name"), e.get("type")
        what = f"joint '{name}'"
        ends = []
        for key in ("parent", "child"):
            body = self._attached(scope, end_of(e, key))
            if body is None:
                s.problem(
                    what, f"there is no link '{short(end_of(e, key))}' for its {key}", self._hint(scope, e, key), e
                )
                return
            ends.append(body)
        if kind not in TYPES:
            s.problem(what, f"joints of type '{short(kind)}' are not known", nearest(kind, TYPES), e)
        if kind not in TYPES or kind == "gearbox":
            return
        here = self.draft.name("joints", scope.prefix + name)
        at = self.frames.in_world(scope, name)
        F, M = world_frames(self.draft.poses[ends[0]], self.draft.poses[ends[1]], at)
        tags = {"fixed": (), "ball": (), "universal": ("axis", "axis2"), "revolute2": ("axis", "axis2")}
        axes = [self._axis(scope, e, tag, at) for tag in tags.get(kind, ("axis",))]
        keys = ("axis1", "axis2") if len(axes) == 2 else ("axis",)
        own: dict[str, object] = dict(zip(keys, axes, strict=False))
        if kind == "screw":
            own["pitch"] = self._pitch(e, what)
        if kind not in ("continuous", "screw"):
            own["limits"] = self._limits(e, len(axes), what)
        if kind == "revolute2":
            message = "of type revolute2 is a universal joint: first axis on the parent, second on the child"
            self.report.changed.append(f"joint '{here}' {message}")
        made = _JointHere(here, TYPES[kind], ends[0], ends[1], tuple(at[1] @ a for a in axes))
        self.joints[scope, name] = made
        self.draft.joint(here, made.type, (ends[0], ends[1]), F, M, e.line, **own)
        for label, tag in zip(made.labels(), ("axis", "axis2")[: len(axes)], strict=False):
            self._dynamics(e.first(tag), label, what)
        self._compare_frames(scope, e, made, at)

    def _hint(self, scope: Scope, e: Element, key: str) -> str:
        """Hint for a link that does not exist."""
        included = any(child.tag == "include" for child in scope.element.children)
        if included and "::" in end_of(e, key):
            return "Models of other files (<include>) are not read: put the <model> in the place of its <include>."
        return nearest(end_of(e, key), scope.names())

    def _compare_frames(self, scope: Scope, e: Element, joint: _JointHere, at: Pose) -> None:
        """Add a note on frames of a joint that do not coincide: SDF joins them as they are."""
        for key in ("parent", "child"):
            name = end_of(e, key)
            if scope.placed.get(name, e).tag != "frame":
                continue
            X = compose(inverse(at), self.frames.in_world(scope, name))
            off, turn = X[0], _rotation_vector(X[1])
            axis = joint.axes[0] @ at[1] / np.linalg.norm(joint.axes[0]) if joint.axes else np.zeros(3)
            if joint.type in ("prismatic", "helical"):
                off = off - axis * (axis @ off)
            if joint.type in ("revolute", "helical"):
                turn = np.cross(axis, X[1] @ axis)
            gap, angle = float(np.linalg.norm(off)), float(np.linalg.norm(turn))
            if joint.type in ("universal", "spherical"):
                angle = 0.0
            if max(gap, angle) > DRAWN_APART:
                how = f"{gap:.3g} m and {angle:.3g} rad from where the joint is"
                message = f"joint '{joint.name}': its {key} frame '{name}' is drawn {how}; SDF joins them as drawn"
                self.report.notes.append(message)

    def _axis(self, scope: Scope, e: Element, tag: str, at: Pose) -> Array:
        """Direction of an axis in the joint frame."""
        axis = e.first(tag)
        what = f"joint '{e.get('name')}'"
        if axis is None:
            self.s.problem(what, f"has no <{tag}>", "Add it with <xyz>.", e)
            return np.array([0.0, 0.0, 1.0])
        xyz = axis.first("xyz")
        given = np.array([0.0, 0.0, 1.0]) if xyz is None else self.s.numbers(xyz.text, 3, what, xyz)
        in_frame = "" if xyz is None else xyz.get("expressed_in")
        if axis.child_text("use_parent_model_frame") in ("1", "true") or self.frames.version < (1, 5):
            in_frame = MODEL
        if in_frame and self.frames.find(scope, in_frame, xyz or axis):
            given = compose(inverse(at), self.frames.in_world(scope, in_frame))[1] @ given
        if not np.any(given):
            self.s.problem(what, f"its <{tag}> has length zero", "Give a direction.", axis)
            return np.array([0.0, 0.0, 1.0])
        return given

    def _limits(self, e: Element, axes: int, what: str) -> list[float] | dict[str, list[float]] | None:
        """Limits of the one coordinate, or by the names of the two of a universal joint."""
        found = {}
        for label, tag in list(zip("12", ("axis", "axis2"), strict=True))[:axes]:
            axis = e.first(tag)
            limit = None if axis is None else axis.first("limit")
            if limit is None:
                continue
            keys = (("lower", "-1e16"), ("upper", "1e16"))
            low, high = (float(self.s.numbers(limit.child_text(k, d), 1, what, limit, False)[0]) for k, d in keys)
            if low >= -UNLIMITED or high <= UNLIMITED:
                found[label] = [max(low, -1e16), min(high, 1e16)]
        return found.get("1") if axes < 2 else found or None

    def _pitch(self, e: Element, what: str) -> float:
        """Metres per radian of metres per turn."""
        if e.first("screw_thread_pitch") is None:
            message = "has no <screw_thread_pitch> (the old <thread_pitch> means different things to different engines)"
            self.s.problem(what, message, "Add it, in metres per turn.", e)
            return 1.0
        return self.s.number(e.child_text("screw_thread_pitch"), what, e) / (2 * np.pi)

    def _dynamics(self, axis: Element | None, label: str, what: str) -> None:
        given = None if axis is None else axis.first("dynamics")
        if given is None:
            return
        keys = ("spring_stiffness", "damping", "spring_reference", "friction")
        k, c, rest, friction = (self.s.number(given.child_text(key, "0"), what, given) for key in keys)
        self.draft.spring(label, k, c, rest)
        self.draft.friction(label, friction)

    # -------------------------------------------------------------------------------------------------- gears

    def _mimics(self, scope: Scope, e: Element) -> None:
        follower = self.joints.get((scope, e.get("name")))
        for tag, label in zip(("axis", "axis2"), follower.labels() if follower and follower.axes else (), strict=False):
            axis = e.first(tag)
            mimic = None if axis is None else axis.first("mimic")
            if mimic is None:
                continue
            what, leader = f"joint '{e.get('name')}'", self._leader(scope, mimic)
            if leader is None:
                hint = nearest(mimic.get("joint"), [name for at, name in self.joints if at is scope])
                message = f"mimics the joint '{short(mimic.get('joint'))}', which is not there or has no such axis"
                self.s.problem(what, message, hint, mimic)
                continue
            keys = (("multiplier", "1"), ("offset", "0"), ("reference", "0"))
            ratio, offset, reference = (self.s.number(mimic.child_text(k, d), what, mimic) for k, d in keys)
            if leader == label:
                self.s.problem(what, "mimics itself", "Name another joint.", mimic)
                continue
            terms = {label: 1.0, leader: -ratio}
            self.draft.add(
                "constraints", f"{label} mimic", type="coupler", terms=terms, offset=offset - ratio * reference
            )

    def _leader(self, scope: Scope, mimic: Element) -> str | None:
        """Label of the coordinate that is followed."""
        name, which = mimic.get("joint"), mimic.get("axis") or "axis"
        while "::" in name and name.split("::", 1)[0] in scope.models:
            first, name = name.split("::", 1)
            scope = scope.models[first]
        leader = self.joints.get((scope, name))
        if leader is None or which not in ("axis", "axis2")[: len(leader.axes)]:
            return None
        return leader.labels()[which == "axis2"]

    def _gearbox(self, scope: Scope, e: Element) -> None:
        """Angle of the child about axis2 = -ratio * angle of the parent about axis, seen from the reference body."""
        if e.get("type") != "gearbox":
            return
        what, name = f"joint '{e.get('name')}'", e.child_text("gearbox_reference_body")
        reference = self._attached(scope, name) if name else None
        if reference is None:
            hint = "Name the link that carries both gears in <gearbox_reference_body>."
            self.s.problem(what, f"there is no link '{short(name)}' for its reference", hint, e)
            return
        ratio = self.s.number(e.child_text("gearbox_ratio", "1"), what, e)
        at = self.frames.in_world(scope, e.get("name"))
        terms: dict[str, float] = {}
        for key, tag, factor in (("child", "axis2", 1.0), ("parent", "axis", ratio)):
            direction = at[1] @ self._axis(scope, e, tag if e.first(tag) is not None else "axis", at)
            turns = self._turns(reference, self._attached(scope, end_of(e, key)) or "", direction)
            if not turns:
                message = f"no hinges about its <{tag}> lead from '{name}' to its {key} '{end_of(e, key)}'"
                hint = "A gearbox couples hinges: add the revolute joint that carries the gear."
                self.s.problem(what, message, hint, e)
                return
            for joint, sign in turns.items():
                terms[joint] = terms.get(joint, 0.0) + factor * sign
        self.draft.add("constraints", scope.prefix + e.get("name"), type="coupler", terms=terms)
        self.report.changed.append(f"joint '{e.get('name')}' of type gearbox is a coupler of {', '.join(terms)}")

    def _turns(self, start: str, end: str, direction: Array) -> dict[str, float]:
        """Signs of the hinges about a direction whose angles add up to that of body `end` seen from `start`."""
        ways: dict[str, dict[str, float]] = {start: {}}
        todo = [start]
        while todo and end not in ways:
            here = todo.pop(0)
            for j in self.joints.values():
                there = {j.parent: j.child, j.child: j.parent}.get(here, here)
                sign = _along(j.axes[0], direction) if j.type == "revolute" else 0.0
                if there in ways or not (sign or j.type == "weld"):
                    continue
                ways[there] = ways[here] | ({j.name: sign if j.parent == here else -sign} if sign else {})
                todo.append(there)
        return ways.get(end, {})

    # ------------------------------------------------------------------------------------------------ the rest

    def _base(self) -> None:
        """Support of the model: the ground, if it is static or joined to the world; otherwise it floats."""
        draft = self.draft
        static = {body for (scope, _), body in self.bodies.items() if scope.static}
        near: dict[str, set[str]] = {b: set() for b in (GROUND, *draft.data["bodies"])}
        self.ends = [(j.name, j.parent, j.child) for j in self.joints.values()]
        for _, a, b in self.ends:
            near[a].add(b)
            near[b].add(a)
        for body in static:
            self._hold(body, "weld", draft.poses[body])
            near[GROUND].add(body)
        reached = _reach(near, GROUND)
        floating = []
        for body in list(draft.data["bodies"]):
            if body not in reached:
                self._hold(body, "free", make_pose())
                reached |= _reach(near, body)
                floating.append(body)
        if floating:
            self.report.changed.append(f"not joined to the world, so free to move: {', '.join(floating)}")
        if len(floating) > 1:
            self.report.notes.append(f"no joints connect these parts of the model: {listed(floating)}")

    def _hold(self, body: str, kind: str, F: Pose) -> None:
        joint = self.draft.name("joints", f"{body} base")
        self.draft.joint(joint, kind, (GROUND, body), F, make_pose())
        self.ends.insert(0, (joint, GROUND, body))

    def _loops(self) -> tuple[str, ...]:
        """Joints that close loops: those whose bodies are connected already, in the order of the file."""
        group = {b: b for b in (GROUND, *self.draft.data["bodies"])}

        def root(b: str) -> str:
            while group[b] != b:
                b = group[b]
            return b

        found = []
        for name, a, b in self.ends:
            if root(a) == root(b):
                found.append(name)
            group[root(a)] = root(b)
        return tuple(found)

    def _rest(self) -> None:
        report = self.report
        limits = {name: j["limits"] for name, j in self.draft.data["joints"].items() if "limits" in j}
        if limits:
            report.changed.append("limits of joints are kept by assembling, not as forces")
        pairs = [(name, pair) for name, x in limits.items() for pair in (x.values() if isinstance(x, dict) else [x])]
        beyond = [name for name, (low, high) in pairs if not low <= 0.0 <= high]
        if beyond:
            how = "drawn outside their limits, so assemble with limits=False or from another start"
            report.notes.append(f"{how}: {', '.join(dict.fromkeys(beyond))}")
        if any(scope.prefix for scope in self.frames.model.inside()):
            report.changed.append("elements of nested models: '/' in their names stands for '::'")
        report.leave_out("limits of effort and speed", self._efforts())
        report.left_out += not_asked_for(self.s.root, NOT_READ)

    def _efforts(self) -> int:
        """Number of limits of effort and speed, without those that mean no limit."""
        found = 0
        for limit in (e for e in self.frames.model.element.walk() if e.tag == "limit" and e.seen):
            for e in (*limit.all("effort"), *limit.all("velocity")):
                value = float(self.s.numbers(e.text, 1, "limit", e, finite=False)[0])
                found += 0.0 <= value < UNLIMITED
        return found


def _along(axis: Array, direction: Array) -> float:
    """1 or -1 for parallel vectors, 0 for others."""
    a, b = axis / np.linalg.norm(axis), direction / np.linalg.norm(direction)
    return 0.0 if np.linalg.norm(np.cross(a, b)) > PARALLEL else math.copysign(1.0, float(a @ b))


def _rotation_vector(R: Array) -> Array:
    """Axis times angle; only its length matters, which is right from 0 to pi."""
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine = float(np.linalg.norm(axis)) / 2
    angle = math.atan2(sine, (float(np.trace(R)) - 1.0) / 2)
    return np.array([angle, 0.0, 0.0])


def _reach(near: Mapping[str, set[str]], start: str) -> set[str]:
    found, todo = {start}, [start]
    while todo:
        for b in near[todo.pop()] - found:
            found.add(b)
            todo.append(b)
    return found
