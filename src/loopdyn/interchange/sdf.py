"""Reading SDFormat (Gazebo, Drake): links, joints and frames of one model. Loops are native: joints form any graph.

Poses are resolved as the specification says: a link stands in the model frame, a joint in its child, a frame in what it
is attached to, unless ``relative_to`` names something else. Joint coordinates are zero in the drawn pose.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.draft import Draft, Pose, compose, inverse, pose_quaternion, pose_rpy, world_frames
from loopdyn.interchange.draft import pose as make_pose
from loopdyn.interchange.markup import Element, Source, is_text
from loopdyn.interchange.report import Imported, Report
from loopdyn.model import GROUND
from loopdyn.wording import nearest

Array = NDArray[np.float64]

TYPES = {
    "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "ball": "spherical",
    "universal": "universal", "fixed": "weld", "screw": "helical",
}  # fmt: skip
NOT_READ = {  # elements of a model or link that are left out, and what the report calls them
    "visual": "visual shapes", "collision": "collision shapes", "sensor": "sensors", "plugin": "plugins",
    "light": "lights", "projector": "projectors", "audio_source": "audio sources", "battery": "batteries",
    "gripper": "grippers", "fluid_added_mass": "added masses of a fluid",
}  # fmt: skip
UNLIMITED = 1e15  # limits of this size mean none (the specification writes 1e16)
GRAVITY = (0.0, 0.0, -9.8)  # of a world that says nothing


def read_sdf(
    source: str | os.PathLike[str],
    *,
    model: str | None = None,
    gravity: Sequence[float] | None = None,
    mend: bool = False,
) -> Imported:
    """Read a model from an SDF file, loops included.

    Parameters
    ----------
    source : str or Path
        Name of the file, or its text.
    model : str, optional
        Which model, if the file has several.
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


class _Reader:
    def __init__(self, source: Source, mend: bool):
        self.s = source
        self.mend = mend
        self.report = Report(f"{source.shown}: SDF to loopdyn")
        version = source.root.get("version", "1.6")
        try:
            self.version = tuple(int(n) for n in version.split("."))
        except ValueError:
            source.problem("<sdf>", f"version '{version}' is not a number", 'Write version="1.7".', source.root)
            self.version = (1, 6)

    def read(self, wanted: str | None, gravity: Sequence[float] | None) -> Imported:
        model, world = self._choose(wanted)
        self.model = model
        self.draft = Draft(model.get("name"), self.s.shown, self.report, self.mend)
        g = np.array(GRAVITY if gravity is None else gravity, float)
        if gravity is None and world is not None and world.first("gravity") is not None:
            g = self.s.numbers(world.child_text("gravity"), 3, "world", world)
        elif gravity is None:
            self.report.changed.append("gravity is not in the file: (0, 0, -9.8) m/s^2, as SDF takes it then")
        self.draft.data["gravity"] = g.tolist()
        self._collect()
        for name, e in self.links.items():
            self._link(name, e, g)
        self.ends: list[tuple[str, str, str]] = []  # joint, parent, child
        for e in model.all("joint"):
            self._joint(e)
        self.s.check()
        self._base()
        self._mimics()
        self._rest()
        self.s.check()
        report = self.report
        sections = ("bodies", "joints", "constraints", "forces")
        report.carried[:0] = [f"{len(self.draft.data[s])} {s}" for s in sections if self.draft.data[s]]
        loops = self._loops()
        if loops:
            report.carried.append(f"loops closed by: {', '.join(loops)}")
        return Imported(self.draft.mechanism(), report, loops)

    def _choose(self, wanted: str | None) -> tuple[Element, Element | None]:
        root = self.s.root
        found = [(m, None) for m in root.all("model")]
        found += [(m, w) for w in root.all("world") for m in w.all("model")]  # type: ignore[misc]
        names = [m.get("name") for m, _ in found]
        if wanted is not None and wanted in names:
            return found[names.index(wanted)]
        if len(found) == 1 and wanted is None:
            return found[0]
        if not found:
            problem = Problem("<sdf>", "there is no model", "Add <model>, or include none.", self.s.shown, root.line)
        elif wanted is None:
            message = f"the file has {len(found)} models: {', '.join(names)}"
            problem = Problem("<sdf>", message, "Choose one: read_sdf(file, model=NAME).", self.s.shown)
        else:
            problem = Problem("<sdf>", f"there is no model '{wanted}'", nearest(wanted, names), self.s.shown)
        raise ModelError([problem])

    # ------------------------------------------------------------------------------------------------ frames

    def _collect(self) -> None:
        """Links, and everything that has a pose by its name."""
        self.placed: dict[str, Element] = {}
        self.links: dict[str, Element] = {}
        self.links_here: dict[str, str] = {}  # names of their bodies
        for e in self.model.children:
            if e.tag not in ("link", "joint", "frame"):
                continue
            name = e.get("name")
            if not name or name in self.placed:
                message = f"<{e.tag}> has no name" if not name else f"there are two elements '{name}'"
                self.s.problem(f"<{e.tag}>", message, "Give every element its own name.", e)
                continue
            self.placed[name] = e
            if e.tag == "link":
                self.links[name] = e
        self.known: dict[str, Pose] = {"__model__": make_pose()}
        for e in (*self.model.all("model"), *self.model.all("include")):
            what = e.get("name") or e.child_text("uri")
            self.report.left_out.append(f"nested or included model '{what}'")
        self.at = self._own_pose(self.model)  # of the model in the world
        if self.model.child_text("static") in ("1", "true"):
            self.report.changed.append("the model is static: its links are fixed to the ground")

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

    def _pose(self, name: str, on_the_way: tuple[str, ...] = ()) -> Pose:
        """Pose of a link, joint or frame in the model frame."""
        if name in self.known:
            return self.known[name]
        e = self.placed[name]
        if name in on_the_way:
            self.s.problem(f"{e.tag} '{name}'", "its pose depends on itself", "Check relative_to and attached_to.", e)
            return make_pose()
        p = e.first("pose")
        base = "" if p is None else p.get("relative_to") or p.get("frame")
        if not base:
            base = {"link": "__model__", "joint": e.child_text("child"), "frame": e.get("attached_to") or "__model__"}[
                e.tag
            ]
        if base == "world":
            base = "__model__"  # of a joint whose child is the world; the model frame stands for it
        if base != "__model__" and base not in self.placed:
            hint = nearest(base, self.placed)
            self.s.problem(f"{e.tag} '{name}'", f"there is no frame '{base}'", hint, p or e)
            return make_pose()
        self.known[name] = compose(self._pose(base, (*on_the_way, name)), self._own_pose(e))
        return self.known[name]

    # ------------------------------------------------------------------------------------------ links, joints

    def _link(self, name: str, e: Element, gravity: Array) -> None:
        s, what = self.s, f"link '{name}'"
        body = self.draft.name("bodies", name)
        self.links_here[name] = body
        mass, com, matrix = 1.0, make_pose(), np.eye(3)
        inertial = e.first("inertial")
        if inertial is None:
            self.report.changed.append(f"link '{name}' has no inertial: 1 kg and 1 kg m^2 about each axis, as SDF says")
        else:
            if inertial.get("auto") in ("1", "true"):
                s.problem(what, "its inertia is to be computed from its shapes", "Write mass and inertia.", inertial)
            mass = s.number(inertial.child_text("mass", "1"), what, inertial)
            com = self._own_pose(inertial)
            given = inertial.first("inertia")
            if given is not None:
                default = {"ixx": "1", "iyy": "1", "izz": "1"}
                xx, yy, zz, xy, xz, yz = (
                    s.number(given.child_text(k, default.get(k, "0")), what, given)
                    for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
                )
                matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        at = compose(self.at, self._pose(name))
        self.draft.body(body, at, mass, com[0], com[1] @ matrix @ com[1].T, e.line)
        if e.child_text("gravity") in ("0", "false"):
            point = self.draft.world_point(body, com[0])
            self.draft.add(
                "forces",
                f"{body} without gravity",
                type="applied",
                body=body,
                force=(-mass * gravity).tolist(),
                at=point,
            )

    def _joint(self, e: Element) -> None:
        s, name, kind = self.s, e.get("name"), e.get("type")
        what = f"joint '{name}'"
        ends = []
        for key in ("parent", "child"):
            link = e.child_text(key) or (f.text.strip() if (f := e.first(key)) and (f := f.first("link")) else "")
            link = self._attached(link)
            if link != "world" and link not in self.links:
                s.problem(what, f"there is no link '{link}' for its {key}", nearest(link, self.links), e)
                return
            ends.append(GROUND if link == "world" else self.links_here[link])
        if kind in ("gearbox", "revolute2"):
            self.report.left_out.append(f"joint '{name}' of type {kind}")
            return
        if kind not in TYPES:
            s.problem(what, f"joints of type '{kind}' are not known", nearest(kind, TYPES), e)
            return
        here = self.draft.name("joints", name)
        at = compose(self.at, self._pose(name))
        F, M = world_frames(self.draft.poses[ends[0]], self.draft.poses[ends[1]], at)
        own: dict[str, object] = {}
        if kind not in ("fixed", "ball"):
            own = {"axis": self._axis(e, "axis", at)}
        if kind == "universal":
            own = {"axis1": own["axis"], "axis2": self._axis(e, "axis2", at)}
        if kind == "screw":
            own["pitch"] = self._pitch(e, what)
        axis = e.first("axis")
        if axis is not None and kind in ("revolute", "prismatic"):
            own["limits"] = self._limits(axis, what)
        self.ends.append((here, ends[0], ends[1]))
        self.draft.joint(here, TYPES[kind], (ends[0], ends[1]), F, M, e.line, **own)
        labels = [f"{here}.1", f"{here}.2"] if kind == "universal" else [here]
        if kind not in ("fixed", "ball"):
            for label, tag in zip(labels, ("axis", "axis2"), strict=False):
                self._dynamics(e.first(tag), label, what)

    def _attached(self, name: str) -> str:
        """The link that a frame is attached to; other names as they are."""
        seen = set()
        while name in self.placed and self.placed[name].tag == "frame" and name not in seen:
            seen.add(name)
            name = self.placed[name].get("attached_to") or next(iter(self.links), name)
        return name

    def _axis(self, e: Element, tag: str, at: Pose) -> Array:
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
            in_frame = "__model__"
        if in_frame and in_frame != "__model__" and in_frame not in self.placed:
            self.s.problem(what, f"there is no frame '{in_frame}'", nearest(in_frame, self.placed), xyz or axis)
        elif in_frame:
            turn = compose(inverse(at), compose(self.at, self._pose(in_frame)))[1]
            given = turn @ given
        if not np.any(given):
            self.s.problem(what, f"its <{tag}> has length zero", "Give a direction.", axis)
        return given

    def _limits(self, axis: Element, what: str) -> list[float] | None:
        limit = axis.first("limit")
        if limit is None:
            return None
        low, high = (
            self.s.number(limit.child_text(k, d), what, limit) for k, d in (("lower", "-1e16"), ("upper", "1e16"))
        )
        return None if low < -UNLIMITED and high > UNLIMITED else [low, high]

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
        if friction:
            self.draft.add("forces", f"{label} friction", type="joint_friction", joint=label, coulomb=friction)
            self.report.changed.append(f"dry friction of '{label}' is smooth about zero speed (joint_friction)")

    def _mimics(self) -> None:
        for e in self.model.all("joint"):
            axis = e.first("axis")
            mimic = None if axis is None else axis.first("mimic")
            if mimic is None:
                continue
            what, leader = f"joint '{e.get('name')}'", mimic.get("joint")
            if leader not in self.draft.data["joints"]:
                hint = nearest(leader, self.draft.data["joints"])
                self.s.problem(what, f"mimics the joint '{leader}', which is not there", hint, mimic)
                continue
            keys = (("multiplier", "1"), ("offset", "0"), ("reference", "0"))
            ratio, offset, reference = (self.s.number(mimic.child_text(k, d), what, mimic) for k, d in keys)
            terms = {e.get("name"): 1.0, leader: -ratio}
            self.draft.add(
                "constraints", f"{e.get('name')} mimic", type="coupler", terms=terms, offset=offset - ratio * reference
            )

    # ------------------------------------------------------------------------------------------------ the rest

    def _base(self) -> None:
        """What holds the model: the ground, if it is static or joined to the world; otherwise it floats."""
        draft = self.draft
        static = self.model.child_text("static") in ("1", "true")
        near: dict[str, set[str]] = {b: set() for b in (GROUND, *draft.data["bodies"])}
        for _, a, b in self.ends:
            near[a].add(b)
            near[b].add(a)
        reached = _reach(near, GROUND)
        floating = []
        for body in list(draft.data["bodies"]):
            if static or body not in reached:
                kind = "weld" if static else "free"
                joint = draft.name("joints", f"{body} base")
                F = draft.poses[body] if static else make_pose()
                draft.joint(joint, kind, (GROUND, body), F, make_pose())
                self.ends.insert(0, (joint, GROUND, body))
                reached |= {body} if static else _reach(near, body)
                floating += [] if static else [body]
        if floating:
            self.report.changed.append(f"not joined to the world, so free to move: {', '.join(floating)}")

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
        counts = Counter(e.tag for e in self.model.walk() if e.tag in NOT_READ)
        for tag, number in counts.items():
            self.report.leave_out(NOT_READ[tag], number)
        limits = {name: j["limits"] for name, j in self.draft.data["joints"].items() if "limits" in j}
        if limits:
            self.report.changed.append("limits of joints are kept by assembling, not as forces")
        beyond = [name for name, (low, high) in limits.items() if not low <= 0.0 <= high]
        if beyond:
            how = "drawn outside their limits, so assemble with limits=False or from another start"
            self.report.notes.append(f"{how}: {', '.join(beyond)}")
        efforts = [e for e in self.model.walk() if e.tag in ("effort", "velocity") and e.text.strip() not in ("", "-1")]
        self.report.leave_out("limits of effort and speed", len(efforts))


def _reach(near: dict[str, set[str]], start: str) -> set[str]:
    found, todo = {start}, [start]
    while todo:
        for b in near[todo.pop()] - found:
            found.add(b)
            todo.append(b)
    return found
