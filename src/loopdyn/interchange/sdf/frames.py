"""Models, names and frames of an SDF file: which model is read, what names mean in it, where everything is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from loopdyn.errors import ModelError, Problem
from loopdyn.interchange.draft import Pose, compose, inverse, pose_quaternion, pose_rpy
from loopdyn.interchange.draft import pose as make_pose
from loopdyn.interchange.markup import Element, MarkupSource
from loopdyn.interchange.report import Report
from loopdyn.quantities.wording import nearest, short

MODEL = "__model__"
WORLD = "world"
UNIQUE_NAMES = (1, 7)  # version from which on a joint cannot have the name of a link


@dataclass(eq=False)
class Scope:
    """Scope of names: a model, or the world."""

    element: Element
    prefix: str  # of the names of its bodies and joints
    outer: Scope | None = None
    grounded: bool = False  # whether its links are part of the ground: another, static model of the world
    static: bool = False
    placed: dict[str, Element] = field(default_factory=dict)  # links, joints, frames and models by name
    models: dict[str, Scope] = field(default_factory=dict)
    known: dict[str, Pose] = field(default_factory=lambda: {MODEL: make_pose()})  # poses in the frame of the scope

    def links(self) -> dict[str, Element]:
        """Its own links by name."""
        return {name: e for name, e in self.placed.items() if e.tag == "link"}

    def inside(self) -> Iterator[Scope]:
        """Scope and all scopes nested in it."""
        yield self
        for nested in self.models.values():
            yield from nested.inside()

    def names(self) -> list[str]:
        """Names that can be used in this scope."""
        return [*self.placed, *(f"{m}::{name}" for m, nested in self.models.items() for name in nested.names())]


class Frames:
    """Scopes of names, and the poses of the named elements."""

    def __init__(self, source: MarkupSource, report: Report):
        self.s, self.report = source, report
        version = source.root.get("version", "1.6")
        try:
            self.version = tuple(int(n) for n in version.split("."))
        except ValueError:
            source.problem("<sdf>", f"version '{short(version)}' is not a number", 'Write version="1.7".', source.root)
            self.version = (1, 6)
        self.resolving: set[tuple[Scope, str]] = set()  # whose poses are being found

    def choose(self, wanted: str | None) -> Scope:
        """World of the model to read, which becomes `self.model`; other, static models are ground."""
        root = self.s.root
        worlds = [Element("world", {}, root.line, children=root.children)]
        worlds += [e for e in root.children if e.tag == "world"]
        found = [(m, w) for w in worlds for m in w.children if m.tag == "model"]
        moving = [(m, w) for m, w in found if not is_static(m)] if wanted is None else found
        names = [m.get("name") for m, _ in found]
        if wanted is not None and wanted in names:
            chosen, at = found[names.index(wanted)]
        elif wanted is None and (len(found) == 1 or len(moving) == 1):
            chosen, at = (moving or found)[0]
        else:
            raise ModelError([self._no_choice(wanted, names, [m.get("name") for m, _ in moving])])
        world = Scope(at.see(), "")
        beside = [m for m in at.children if m.tag == "model" and m is not chosen and is_static(m)]
        for m in (chosen, *beside):
            self._collect(m, world, "" if m is chosen else f"{m.get('name')}/", grounded=m is not chosen)
        self._collect_names(world)
        self.s.check()
        self.model = next(s for s in world.models.values() if s.element is chosen)
        others = [m.get("name") for m, _ in found if m is not chosen and m not in beside]
        self.report.leave_out("other static models, which count as ground", [m.get("name") for m in beside])
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

    def _collect(self, e: Element, outer: Scope, prefix: str, grounded: bool = False) -> None:
        """Add a model and all nested in it, as scopes of `outer`."""
        name = e.see().get("name")
        scope = Scope(e, prefix, outer, grounded, is_static(e) or outer.static)
        if not self._is_new(e, outer):
            return
        outer.placed[name], outer.models[name] = e, scope
        for nested in e.children:
            if nested.tag == "model":
                self._collect(nested, scope, f"{prefix}{nested.get('name')}/", grounded)
        self._collect_names(scope)
        if scope.static and not grounded and not outer.static:
            self.report.changed.append(f"the model '{name}' is static: its links are fixed to the ground")

    def _collect_names(self, scope: Scope) -> None:
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

    def _is_new(self, e: Element, scope: Scope) -> bool:
        name = e.get("name")
        if name and name not in scope.placed and "::" not in name and name not in (MODEL, WORLD):
            return True
        message = f"there are two elements '{name}'" if name in scope.placed else f"<{e.tag}> has no name"
        if name and name not in scope.placed:
            message = f"'{short(name)}' cannot be the name of an element"
        self.s.problem(f"<{e.tag}>", message, "Give every element its own name.", e)
        return False

    def concerns(self, e: Element) -> bool:
        """Whether a joint of the world is connected to the model."""
        mine = self.model.element.get("name")
        ends = [end_of(e, key).split("::")[0] for key in ("parent", "child")]
        if mine in ends:
            e.see()
        return mine in ends

    def own_pose(self, e: Element) -> Pose:
        """Pose in the <pose> of an element."""
        p = e.first("pose")
        what = f"{e.tag} '{e.get('name')}'"
        if p is None or not p.text.strip():
            return make_pose()
        if p.get("rotation_format", "euler_rpy") == "quat_xyzw":
            x = self.s.numbers(p.text, 7, what, p)
            return pose_quaternion(x[:3], [x[6], *x[3:6]]) if np.any(x[3:]) else make_pose(x[:3])
        x = self.s.numbers(p.text, 6, what, p)
        return pose_rpy(x[:3], np.radians(x[3:]) if p.get("degrees") in ("1", "true") else x[3:])

    def _pose(self, scope: Scope, name: str) -> Pose:
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
            X = compose(scope.known[name], self.own_pose(scope.placed[step]))
            pivot = scope.placed[step].get("placement_frame") if step in scope.models else ""
            if pivot and self.find(scope.models[step], pivot, scope.placed[step]):
                X = compose(X, inverse(self._pose(scope.models[step], pivot)))
            scope.known[step], name = X, step
            self.resolving.discard((scope, step))
        return scope.known[name]

    def _base_of(self, scope: Scope, name: str) -> str:
        """Frame in which the pose of an element is given."""
        e = scope.placed[name]
        p = e.first("pose")
        base = "" if p is None else p.get("relative_to") or p.get("frame")
        if not base:
            given = {"joint": end_of(e, "child"), "frame": e.get("attached_to")}
            base = given.get(e.tag) or MODEL
        if scope.outer is None and base == WORLD:
            base = MODEL
        return base if self.find(scope, base, p or e) else MODEL

    def find(self, scope: Scope, name: str, e: Element) -> bool:
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

    def _of_scope(self, scope: Scope) -> Pose:
        """Pose of the frame of a scope in the world."""
        if scope.outer is None:
            return make_pose()
        return compose(self._of_scope(scope.outer), self._pose(scope.outer, scope.element.get("name")))

    def in_world(self, scope: Scope, name: str) -> Pose:
        """Pose of something named in a scope, in the world."""
        return compose(self._of_scope(scope), self._pose(scope, name))


def is_static(model: Element) -> bool:
    """Whether a model does not move."""
    return model.child_text("static") in ("1", "true")


def end_of(joint: Element, key: str) -> str:
    """Name of the parent or child of a joint."""
    inside = joint.first(key)
    link = None if inside is None else inside.first("link")  # as joints of a gripper have it
    return "" if inside is None else (link or inside).text.strip()
