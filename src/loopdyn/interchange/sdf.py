"""Reading SDFormat (Gazebo, Drake): links, joints and frames of one model and of the models nested in it.

Loops are native: joints form any graph. Poses are resolved as the specification says: a link stands in the model frame,
a joint in its child, a frame in what it is attached to, unless ``relative_to`` names something else. Joint coordinates
are zero in the drawn pose. Elements of a nested model are called ``model/element``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.draft import Draft, Pose, compose, inverse, pose_quaternion, pose_rpy, world_frames
from loopdyn.interchange.draft import pose as make_pose
from loopdyn.interchange.markup import Element, Source, is_text, not_asked_for
from loopdyn.interchange.report import Imported, Report, listed
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
MODEL = "__model__"
WORLD = "world"
UNLIMITED = 1e15  # limits of this size mean none (the specification writes 1e16)
GRAVITY = (0.0, 0.0, -9.8)  # of a world that says nothing
DRAWN_APART = 1e-6  # m or rad; SDF files have some six places, so frames that differ by less were meant to agree
UNIQUE_NAMES = (1, 7)  # version from which on a joint cannot have the name of a link
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
        Which model, if the file has several that can move. Static ones beside it count as ground.
    gravity : (3,), optional
        In m/s^2; by default that of the file's world, or (0, 0, -9.8), which SDF takes where nothing is said.
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
    opened = Source(file, str(source) if file is None else None, "sdf", ".sdf")
    return _Reader(opened, mend).read(model, gravity)


@dataclass(eq=False)
class _Scope:
    """A model, or the world, in which names mean something."""

    element: Element
    prefix: str  # of the names of its bodies and joints
    outer: _Scope | None = None
    grounded: bool = False  # whether its links are part of the ground: a static model beside the one that is read
    static: bool = False
    placed: dict[str, Element] = field(default_factory=dict)  # links, joints, frames and models by name
    models: dict[str, _Scope] = field(default_factory=dict)
    known: dict[str, Pose] = field(default_factory=lambda: {MODEL: make_pose()})  # poses in the frame of the scope

    def links(self) -> dict[str, Element]:
        """Its own links by name."""
        return {name: e for name, e in self.placed.items() if e.tag == "link"}

    def inside(self) -> Iterator[_Scope]:
        """The scope and all nested in it."""
        yield self
        for nested in self.models.values():
            yield from nested.inside()

    def names(self) -> list[str]:
        """Names that can be used in this scope."""
        return [*self.placed, *(f"{m}::{name}" for m, nested in self.models.items() for name in nested.names())]


@dataclass(frozen=True)
class _JointHere:
    """A joint that was carried over: its bodies, and the directions of its axes in the world."""

    name: str
    type: str
    parent: str
    child: str
    axes: tuple[Array, ...]

    def labels(self) -> list[str]:
        """Labels of the coordinates that belong to <axis> and <axis2>."""
        return [f"{self.name}.1", f"{self.name}.2"] if self.type == "universal" else [self.name]


class _Reader:
    def __init__(self, source: Source, mend: bool):
        self.s = source
        self.mend = mend
        self.report = Report(f"{source.shown}: SDF to loopdyn")
        version = source.root.get("version", "1.6")
        try:
            self.version = tuple(int(n) for n in version.split("."))
        except ValueError:
            source.problem("<sdf>", f"version '{short(version)}' is not a number", 'Write version="1.7".', source.root)
            self.version = (1, 6)
        self.bodies: dict[tuple[_Scope, str], str] = {}  # names of bodies by scope and link
        self.joints: dict[tuple[_Scope, str], _JointHere] = {}
        self.resolving: set[tuple[_Scope, str]] = set()  # whose poses are being found

    def read(self, wanted: str | None, gravity: Sequence[float] | None) -> Imported:
        world = self._choose(wanted)
        self.draft = Draft(self.model.element.get("name"), self.s.shown, self.report, self.mend)
        g = self._gravity(world.element, gravity)
        for scope in self.model.inside():
            for name, e in scope.links().items():
                self._link(scope, name, e, g)
        jointed = [(scope, e) for scope in self.model.inside() for e in scope.placed.values() if e.tag == "joint"]
        jointed += [(world, e) for e in world.placed.values() if e.tag == "joint" and self._concerns(world, e)]
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
            self.report.changed.append("gravity is not in the file: (0, 0, -9.8) m/s^2, as SDF takes it then")
        self.draft.data["gravity"] = g.tolist()
        return g

    # ------------------------------------------------------------------------------------------------ which model

    def _choose(self, wanted: str | None) -> _Scope:
        """World of the model that is to be read, which becomes `self.model`; static models beside it are ground."""
        root = self.s.root
        worlds = [Element("world", {}, root.line, children=root.children)]
        worlds += [e for e in root.children if e.tag == "world"]
        found = [(m, w) for w in worlds for m in w.children if m.tag == "model"]
        moving = [(m, w) for m, w in found if not _is_static(m)] if wanted is None else found
        names = [m.get("name") for m, _ in found]
        if wanted is not None and wanted in names:
            chosen, at = found[names.index(wanted)]
        elif wanted is None and (len(found) == 1 or len(moving) == 1):
            chosen, at = (moving or found)[0]
        else:
            raise ModelError([self._no_choice(wanted, names, [m.get("name") for m, _ in moving])])
        world = _Scope(at.see(), "")
        beside = [m for m in at.children if m.tag == "model" and m is not chosen and _is_static(m)]
        for m in (chosen, *beside):
            self._collect(m, world, "" if m is chosen else f"{m.get('name')}/", grounded=m is not chosen)
        self._collect_names(world)
        self.s.check()
        self.model = next(s for s in world.models.values() if s.element is chosen)
        others = [m.get("name") for m, _ in found if m is not chosen and m not in beside]
        self.report.leave_out("static models beside it, which count as ground", [m.get("name") for m in beside])
        self.report.leave_out("other models of the file", others)
        for m, _ in found:
            m.reported = m is not chosen
        return world

    def _no_choice(self, wanted: str | None, names: Sequence[str], moving: Sequence[str]) -> Problem:
        shown = self.s.shown
        if not names:
            hint = "Add <model>; models of other files (<include>) are not read."
            return Problem("<sdf>", "there is no model", hint, shown, self.s.root.line)
        if wanted is not None:
            return Problem("<sdf>", f"there is no model '{wanted}'", nearest(wanted, names), shown)
        kind = "models that can move" if moving else "models, all static"
        message = f"the file has {len(moving or names)} {kind}: {', '.join(moving or names)}"
        hint = "Choose one: ld.load(file, model=NAME), or loopdyn convert FILE OUT --model NAME."
        return Problem("<sdf>", message, hint, shown)

    def _collect(self, e: Element, outer: _Scope, prefix: str, grounded: bool = False) -> None:
        """A model and all nested in it, as scopes of `outer`."""
        name = e.see().get("name")
        scope = _Scope(e, prefix, outer, grounded, _is_static(e) or outer.static)
        if not self._is_new(e, outer):
            return
        outer.placed[name], outer.models[name] = e, scope
        for nested in e.children:
            if nested.tag == "model":
                self._collect(nested, scope, f"{prefix}{nested.get('name')}/", grounded)
        self._collect_names(scope)
        if scope.static and not grounded and not outer.static:
            self.report.changed.append(f"the model '{name}' is static: its links are fixed to the ground")

    def _collect_names(self, scope: _Scope) -> None:
        """Links, joints and frames of a scope; what its file includes is reported."""
        tags = ("joint", "frame") if scope.outer is None else ("link", "joint", "frame")
        links = {e.get("name") for e in scope.element.children if e.tag == "link"}
        for e in scope.element.children:
            if e.tag == "joint" and e.get("name") in links and self.version < UNIQUE_NAMES:
                e.attributes["name"] += "_joint"
                message = f"joint '{e.get('name')}' has the name of a link, without '_joint', in the file"
                self.report.changed.append(message)
            if e.tag in tags and self._is_new(e, scope):
                scope.placed[e.get("name")] = e if scope.outer is None and e.tag == "joint" else e.see()
            elif e.tag == "include":
                what = e.child_text("uri") or e.child_text("name")
                e.reported = True
                self.report.left_out.append(f"included model '{short(what)}': other files are not read")

    def _is_new(self, e: Element, scope: _Scope) -> bool:
        name = e.get("name")
        if name and name not in scope.placed and "::" not in name and name not in (MODEL, WORLD):
            return True
        message = f"there are two elements '{name}'" if name in scope.placed else f"<{e.tag}> has no name"
        if name and name not in scope.placed:
            message = f"'{short(name)}' cannot be the name of an element"
        self.s.problem(f"<{e.tag}>", message, "Give every element its own name.", e)
        return False

    def _concerns(self, world: _Scope, e: Element) -> bool:
        """Whether a joint of the world holds the model that is read."""
        mine = self.model.element.get("name")
        ends = [_end(e, key).split("::")[0] for key in ("parent", "child")]
        if mine in ends:
            e.see()
        return mine in ends

    # ------------------------------------------------------------------------------------------------ frames

    def _own_pose(self, e: Element) -> Pose:
        """What an element says in <pose>."""
        p = e.first("pose")
        what = f"{e.tag} '{e.get('name')}'"
        if p is None or not p.text.strip():
            return make_pose()
        if p.get("rotation_format", "euler_rpy") == "quat_xyzw":
            x = self.s.numbers(p.text, 7, what, p)
            return pose_quaternion(x[:3], [x[6], *x[3:6]]) if np.any(x[3:]) else make_pose(x[:3])
        x = self.s.numbers(p.text, 6, what, p)
        return pose_rpy(x[:3], np.radians(x[3:]) if p.get("degrees") in ("1", "true") else x[3:])

    def _pose(self, scope: _Scope, name: str) -> Pose:
        """Pose of a link, joint, frame or nested model in the frame of a scope; `name` must be known there."""
        way: list[str] = []
        while name not in scope.known:
            if (scope, name) in self.resolving:
                e = scope.placed[name.split("::")[0]]
                hint = "Check relative_to and attached_to."
                self.s.problem(f"{e.tag} '{name}'", "its pose depends on itself", hint, e)
                scope.known[name] = make_pose()
                break
            if name == WORLD:
                scope.known[WORLD] = make_pose()  # for a world joint that depends on itself
                scope.known[WORLD] = inverse(self._of_scope(scope))
                break
            self.resolving.add((scope, name))
            if "::" in name:
                nested, rest = name.split("::", 1)
                scope.known[name] = compose(self._pose(scope, nested), self._pose(scope.models[nested], rest))
                self.resolving.discard((scope, name))
            else:
                way.append(name)
                name = self._base_of(scope, name)
        for step in reversed(way):
            X = compose(scope.known[name], self._own_pose(scope.placed[step]))
            pivot = scope.placed[step].get("placement_frame") if step in scope.models else ""
            if pivot and self._find(scope.models[step], pivot, scope.placed[step]):
                X = compose(X, inverse(self._pose(scope.models[step], pivot)))
            scope.known[step], name = X, step
            self.resolving.discard((scope, step))
        return scope.known[name]

    def _base_of(self, scope: _Scope, name: str) -> str:
        """What the pose of an element is given in."""
        e = scope.placed[name]
        p = e.first("pose")
        base = "" if p is None else p.get("relative_to") or p.get("frame")
        if not base:
            given = {"joint": _end(e, "child"), "frame": e.get("attached_to")}
            base = given.get(e.tag) or MODEL
        if scope.outer is None and base == WORLD:
            base = MODEL
        return base if self._find(scope, base, p or e) else MODEL

    def _find(self, scope: _Scope, name: str, e: Element) -> bool:
        """Whether a name means something in a scope; the problem is noted if not."""
        at, rest = scope, name
        while "::" in rest and rest.split("::", 1)[0] in at.models:
            first, rest = rest.split("::", 1)
            at = at.models[first]
        if rest in at.placed or rest in (MODEL, WORLD):
            return True
        what = f"{e.tag} '{e.get('name')}'" if "name" in e.attributes else f"<{e.tag}>"
        hint = nearest(name, scope.names())
        self.s.problem(what, f"there is no link, joint, frame or model '{short(name)}'", hint, e)
        return False

    def _of_scope(self, scope: _Scope) -> Pose:
        """Pose of the frame of a scope in the world."""
        if scope.outer is None:
            return make_pose()
        return compose(self._of_scope(scope.outer), self._pose(scope.outer, scope.element.get("name")))

    def _in_world(self, scope: _Scope, name: str) -> Pose:
        return compose(self._of_scope(scope), self._pose(scope, name))

    def _attached(self, scope: _Scope, name: str) -> str | None:
        """The body that a link, frame, joint or model moves with; None if there is none."""
        seen: set[tuple[_Scope, str]] = set()
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
                name = _end(scope.placed[name], "child")
        return None

    # ------------------------------------------------------------------------------------------ links, joints

    def _link(self, scope: _Scope, name: str, e: Element, gravity: Array) -> None:
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
            com = self._own_pose(inertial)
            p = inertial.first("pose")
            if p is not None and p.get("relative_to"):
                s.problem(what, "the pose of its <inertial> is relative to another frame", "Give it in the link.", p)
            matrix = self._inertia(inertial.first("inertia"), what)
        at = self._in_world(scope, name)
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

    def _joint(self, scope: _Scope, e: Element) -> None:
        s, name, kind = self.s, e.get("name"), e.get("type")
        what = f"joint '{name}'"
        ends = []
        for key in ("parent", "child"):
            body = self._attached(scope, _end(e, key))
            if body is None:
                s.problem(what, f"there is no link '{short(_end(e, key))}' for its {key}", self._hint(scope, e, key), e)
                return
            ends.append(body)
        if kind not in TYPES:
            s.problem(what, f"joints of type '{short(kind)}' are not known", nearest(kind, TYPES), e)
        if kind not in TYPES or kind == "gearbox":
            return
        here = self.draft.name("joints", scope.prefix + name)
        at = self._in_world(scope, name)
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

    def _hint(self, scope: _Scope, e: Element, key: str) -> str:
        """What may be meant by a link that is not there."""
        included = any(child.tag == "include" for child in scope.element.children)
        if included and "::" in _end(e, key):
            return "Models of other files (<include>) are not read: put the <model> in the place of its <include>."
        return nearest(_end(e, key), scope.names())

    def _compare_frames(self, scope: _Scope, e: Element, joint: _JointHere, at: Pose) -> None:
        """A note on frames that a joint is said to join but that are drawn apart: SDF joins them as drawn."""
        for key in ("parent", "child"):
            name = _end(e, key)
            if scope.placed.get(name, e).tag != "frame":
                continue
            X = compose(inverse(at), self._in_world(scope, name))
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

    def _axis(self, scope: _Scope, e: Element, tag: str, at: Pose) -> Array:
        """Direction of an axis in the joint frame."""
        axis = e.first(tag)
        what = f"joint '{e.get('name')}'"
        if axis is None:
            self.s.problem(what, f"has no <{tag}>", "Add it with <xyz>.", e)
            return np.array([0.0, 0.0, 1.0])
        xyz = axis.first("xyz")
        given = np.array([0.0, 0.0, 1.0]) if xyz is None else self.s.numbers(xyz.text, 3, what, xyz)
        in_frame = "" if xyz is None else xyz.get("expressed_in")
        if axis.child_text("use_parent_model_frame") in ("1", "true") or self.version < (1, 5):
            in_frame = MODEL
        if in_frame and self._find(scope, in_frame, xyz or axis):
            given = compose(inverse(at), self._in_world(scope, in_frame))[1] @ given
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

    def _mimics(self, scope: _Scope, e: Element) -> None:
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

    def _leader(self, scope: _Scope, mimic: Element) -> str | None:
        """Label of the coordinate that is followed."""
        name, which = mimic.get("joint"), mimic.get("axis") or "axis"
        while "::" in name and name.split("::", 1)[0] in scope.models:
            first, name = name.split("::", 1)
            scope = scope.models[first]
        leader = self.joints.get((scope, name))
        if leader is None or which not in ("axis", "axis2")[: len(leader.axes)]:
            return None
        return leader.labels()[which == "axis2"]

    def _gearbox(self, scope: _Scope, e: Element) -> None:
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
        at = self._in_world(scope, e.get("name"))
        terms: dict[str, float] = {}
        for key, tag, factor in (("child", "axis2", 1.0), ("parent", "axis", ratio)):
            direction = at[1] @ self._axis(scope, e, tag if e.first(tag) is not None else "axis", at)
            turns = self._turns(reference, self._attached(scope, _end(e, key)) or "", direction)
            if not turns:
                message = f"no hinges about its <{tag}> lead from '{name}' to its {key} '{_end(e, key)}'"
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
        """What holds the model: the ground, if it is static or joined to the world; otherwise it floats."""
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
        if any(scope.prefix for scope in self.model.inside()):
            report.changed.append("elements of nested models: '/' in their names stands for '::'")
        report.leave_out("limits of effort and speed", self._efforts())
        report.left_out += not_asked_for(self.s.root, NOT_READ)

    def _efforts(self) -> int:
        """Number of limits of effort and speed; those that mean none are not left out."""
        found = 0
        for limit in (e for e in self.model.element.walk() if e.tag == "limit" and e.seen):
            for e in (*limit.all("effort"), *limit.all("velocity")):
                value = float(self.s.numbers(e.text, 1, "limit", e, finite=False)[0])
                found += 0.0 <= value < UNLIMITED
        return found


def _is_static(model: Element) -> bool:
    return model.child_text("static") in ("1", "true")


def _end(joint: Element, key: str) -> str:
    """Name of the parent or child of a joint."""
    inside = joint.first(key)
    link = None if inside is None else inside.first("link")  # as joints of a gripper have it
    return "" if inside is None else (link or inside).text.strip()


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
