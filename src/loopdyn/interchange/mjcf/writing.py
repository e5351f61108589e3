"""Writing MJCF, MuJoCo's format.

Joints that MuJoCo lacks become several on one body (a universal joint is two hinges; a screw is a hinge and a slide
that an equality couples). A cut joint becomes an equality: one `connect` for a ball, two for a hinge, `weld`. MuJoCo
has no equality for other joints: there a body is split into two halves that are welded, and one half is the child
of the joint. The motion is the same.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.constraints import Coupler
from loopdyn.contacts import Stop
from loopdyn.errors import AssemblyError, ModelError, Problem
from loopdyn.files import write
from loopdyn.forces import Actuator, AppliedForce, JointFriction, JointSpring, JointTendon, Motor, SpringDamper
from loopdyn.forces.base import Force
from loopdyn.interchange.compiled import Compiled, Link, not_held, principal, relative, unique, unwritable
from loopdyn.interchange.draft import Pose
from loopdyn.interchange.report import Report, refuse_loss
from loopdyn.interchange.servos import CONTROL, EVERYTHING, Servo, servo
from loopdyn.model.mechanism import GROUND, Mechanism
from loopdyn.spatial.rotations import from_matrix, to_matrix
from loopdyn.system.builder import build
from loopdyn.system.system import JointData, State
from loopdyn.tree.functions import body_motion

Array = NDArray[np.float64]

# MuJoCo requires mass and inertia above 1e-15 on every body that moves; these are negligible.
SMALLEST_MASS, SMALLEST_INERTIA = 1e-12, 1e-14
SAME = 1e-12  # forces and places that differ by no more, relative to a weight or the size, differ by rounding
EQUALITY = ("revolute", "spherical", "weld")  # cut joints that an equality can replace


@dataclass(frozen=True)
class _Axis:
    """One joint of MuJoCo on a body: hinge, slide or ball; its axis in the world at the reference pose."""

    name: str
    kind: str
    axis: Array | None = None
    ref: float = 0.0


def write_mjcf(mechanism: Mechanism, path: str | os.PathLike[str], *, leave_out: bool = False) -> Report:
    """Write a mechanism as MJCF, loops included.

    Parameters
    ----------
    mechanism : Mechanism
    path : str or Path
        Name of the file, ending in ``.xml``.
    leave_out : bool
        Leave out what MJCF cannot hold, and list it in the report, instead of refusing it.

    Returns
    -------
    Report
        Report of what was converted, changed and left out.

    Raises
    ------
    ModelError
        With every element that MJCF cannot hold.

    Examples
    --------
    >>> import tempfile
    >>> import loopdyn as ld
    >>> file = FilePath(tempfile.mkdtemp()) / "four_bar.xml"
    >>> print(write_mjcf(ld.library.four_bar(), file).carried[0])
    3 bodies: crank, coupler, rocker
    """
    file = FilePath(path)
    if file.suffix.lower() not in (".xml", ".mjcf"):
        message = f"files ending in '{file.suffix}' are not MJCF"
        raise ModelError([Problem("MJCF", message, "Use a name that ends in .xml.", str(file))])
    report = Report(f"{file}: loopdyn to MJCF")
    text = _Writer(mechanism, report, leave_out).write()
    write(file, text)
    return report


class _Writer:
    def __init__(self, mechanism: Mechanism, report: Report, leave_out: bool):
        self.m = mechanism
        self.c = Compiled(mechanism, build(mechanism))
        self.report = report
        self.leave_out = leave_out
        self.problems = unwritable(mechanism, "MJCF")
        self.problems += [not_held("base", name, "given motion", "MJCF") for name in mechanism.base]
        self.root = ET.Element("mujoco", model=mechanism.name)
        _add(self.root, "compiler", angle="radian", autolimits="false")
        gravity = self.c.r.vector(mechanism.gravity, "acceleration", "mechanism", ("gravity",))
        _add(self.root, "option", gravity=_text(gravity))
        self.elements: dict[str, ET.Element] = {GROUND: _add(self.root, "worldbody")}
        self.equality = ET.Element("equality")
        self.tendon = ET.Element("tendon")
        self.actuator = ET.Element("actuator")
        self.controls: list[float] = []  # values of the actuators' controls
        self.names: set[str] = {*self.c.system.bodies, *mechanism.joints}
        self.joints: dict[str, ET.Element] = {}  # hinges and slides by label of the coordinate
        self.balls: dict[str, ET.Element] = {}  # ball joints by name
        self.parts: dict[str, tuple[Link, JointData, list[_Axis], str, Pose]] = {}  # link that each <body> represents

    def write(self) -> str:
        halves = self._halves()
        for link in self.c.links:
            split = [j for j, (name, _) in halves.items() if name == link.name]
            share = 1.0 / (1 + len(split))
            self._body(link, link.name, link.parent, link.joint, link.backwards, share)
        for joint, (name, carrier) in halves.items():
            j, link = self.c.system.joints[joint], self.c.by_name[name]
            share = 1.0 / (1 + sum(other == name for other, _ in halves.values()))
            half = unique(f"{name} at {joint}", self.names)
            self._body(link, half, carrier, j, self.c.ends(j)[0] == name, share)
            same = {"relpose": "0 0 0 1 0 0 0", "anchor": "0 0 0"}
            _add(self.equality, "weld", name=f"{half} weld", body1=name, body2=half, **same)
            self.report.changed.append(f"joint '{joint}' is cut: body '{name}' is split there into welded halves")
        for j in self.c.cuts:
            if j.name not in halves:
                self._cut(j)
        self._forces()
        self._constraints()
        self._contacts()
        refuse_loss(self.problems, self.report, self.leave_out)
        for section in (self.equality, self.tendon, self.actuator):
            if len(section):
                self.root.append(section)
        self._start()
        self.report.carried.insert(0, f"{len(self.c.links)} bodies: {', '.join(link.name for link in self.c.links)}")
        self.report.count("joints", list(self.m.joints))
        if self.m.parameters:
            self.report.changed.append("parameters are replaced by their values, except controls of actuators")
        ET.indent(self.root)
        return ET.tostring(self.root, encoding="unicode") + "\n"

    def _halves(self) -> dict[str, tuple[str, str]]:
        """Cut joints that no equality can replace: the body that is split, and the parent of its half."""
        loaded = self.c.loaded()
        found = {}
        for j in self.c.cuts:
            if j.spec.type in EQUALITY and (j.name not in loaded or j.spec.type != "revolute"):
                continue
            parent, child = self.c.ends(j)
            found[j.name] = (child, parent) if child in self.c.by_name else (parent, child)
        return found

    # ------------------------------------------------------------------------------------- bodies, joints

    def _body(self, link: Link, name: str, parent: str, j: JointData, backwards: bool, share: float) -> None:
        """Write a body, or one part of it, with its joint."""
        place = relative(self.c.poses[parent], link.pose)
        e = _add(self.elements[parent], "body", name=name, **_placed(place))
        self.elements[name] = e
        M = self.c.world_frames(j)[1]
        anchor = _text(link.pose[1].T @ (M[0] - link.pose[0]))
        axes = self._axes(j, parent, backwards)
        for a in axes:
            if a.kind == "free":
                _add(e, "freejoint", name=a.name)
                continue
            made = _add(e, "joint", name=a.name, type=a.kind, pos=anchor)
            if a.axis is not None:
                made.set("axis", _text(link.pose[1].T @ a.axis))
                made.set("ref", repr(a.ref))
                made.set("springref", "0")
        self._label(j, e)
        self.parts[name] = (link, j, axes, parent, place)
        moments, R = principal(link.inertia * share)
        mass = link.mass * share
        if (axes and (mass < SMALLEST_MASS or moments[0] < SMALLEST_INERTIA)) or (mass == 0.0 and moments.any()):
            if mass < SMALLEST_MASS:
                self.report.changed.append(f"body '{name}': MuJoCo needs a mass; it has {SMALLEST_MASS:g} kg")
            else:
                self.report.changed.append(f"body '{name}': its smallest moments are {SMALLEST_INERTIA:g} kg m^2")
            mass, moments = max(mass, SMALLEST_MASS), np.maximum(moments, SMALLEST_INERTIA)
        if mass > 0.0:
            numbers = {"mass": repr(float(mass)), "diaginertia": _text(moments)}
            at = {"pos": _text(link.com), "quat": _text(from_matrix(R))}
            e.insert(0, ET.Element("inertial", at | numbers))

    def _axes(self, j: JointData, parent: str, backwards: bool) -> list[_Axis]:
        """Joints of MuJoCo that make up a joint, in their order from the carrier outwards."""
        (_, F), (_, M) = self.c.world_frames(j)
        kind, name = j.spec.type, j.name.replace(":", " ")
        x, y, z = F.T
        q = j.q_reference
        two = j.par[0] * M[:, 0] + j.par[1] * M[:, 1]  # second axis of a universal joint
        ways: dict[str, list[tuple[str, str, Array]]] = {
            "revolute": [("", "hinge", z)],
            "prismatic": [("", "slide", z)],
            "helical": [("", "hinge", z), ("slide", "slide", z)],
            "cylindrical": [("angle", "hinge", z), ("slide", "slide", z)],
            "universal": [("1", "hinge", x), ("2", "hinge", two)],
            "planar": [("x", "slide", x), ("y", "slide", y), ("angle", "hinge", z)],
            "translational": [("x", "slide", x), ("y", "slide", y), ("z", "slide", z)],
        }
        if kind == "weld":
            return []
        if kind == "spherical":
            return [_Axis(name, "ball")]
        if kind == "free" and parent == GROUND and not backwards:
            return [_Axis(name, "free")]
        if kind == "free":
            found = [
                _Axis(f"{name} {s}", "slide", a, float(q[k])) for k, (s, a) in enumerate(zip("xyz", F.T, strict=True))
            ]
            found.append(_Axis(name, "ball"))
        elif kind not in ways:
            raise ModelError([not_held("joint", j.name, f"a '{kind}' joint", "MJCF")])
        else:
            refs = [float(q[0]), j.par[0] * float(q[0])] if kind == "helical" else [float(v) for v in q]
            found = [
                _Axis(f"{name} {s}" if s else name, what, a, ref)
                for (s, what, a), ref in zip(ways[kind], refs, strict=True)
            ]
        if not backwards:
            return found
        return [_Axis(a.name, a.kind, None if a.axis is None else -a.axis, a.ref) for a in reversed(found)]

    def _label(self, j: JointData, body: ET.Element) -> None:
        """Remember which element has which coordinate; couple the parts of a screw; write limits and armature."""
        by_name = {e.get("name"): e for e in body.findall("joint")}
        name = j.name.replace(":", " ")
        armature = self.c.system.model.armature[j.v0 : j.v0 + len(j.spec.speeds)] if j.in_tree else np.zeros(0)
        if j.spec.type == "spherical":
            self.balls[j.name] = by_name[name]
            if np.any(armature):
                by_name[name].set("armature", repr(float(armature[0])))
        for suffix, label in zip(j.spec.coordinates, j.spec.labels(j.name)[0], strict=True):
            e = by_name.get(f"{name} {suffix}" if suffix else name)
            if e is None:
                continue
            self.joints[label] = e
            if np.any(armature) and j.spec.type != "spherical":
                e.set("armature", repr(float(armature[j.spec.coordinates.index(suffix)])))
            if label in self.c.system.limits:
                self._range(label, *self.c.system.limits[label])
        if j.spec.type == "helical":
            pair = {"joint1": f"{name} slide", "joint2": name, "polycoef": f"0 {j.par[0]!r} 0 0 0"}
            _add(self.equality, "joint", name=f"{name} pitch", **pair)

    def _cut(self, j: JointData) -> None:
        """An equality between sites on the two bodies: they need not meet at the reference pose."""
        ends, frames = self.c.ends(j), (j.F, j.M)
        offsets = (0.0, self.c.system.size) if j.spec.type == "revolute" else (0.0,)
        for k, along in enumerate(offsets):
            sites = []
            for body, (p, R) in zip(ends, frames, strict=True):
                site = unique(f"{j.name} {body}" + (f" {k}" if k else ""), self.names)
                at = {"pos": _text(p + along * R[:, 2]), "quat": _text(from_matrix(R))}
                _add(self.elements[body], "site", name=site, **at)
                sites.append(site)
            kind = "weld" if j.spec.type == "weld" else "connect"
            name = j.name if k == 0 else unique(f"{j.name} second", self.names)
            _add(self.equality, kind, name=name, site1=sites[0], site2=sites[1])

    # --------------------------------------------------------------------------------------------- loads

    def _forces(self) -> None:
        carried = []
        springs: dict[str, list[tuple[float, float, float]]] = {}  # stiffness, damping, rest
        round_dampers = self._ball_dampers()
        for name, force in self.m.forces.items():
            if name in round_dampers or self._force(name, force, springs):
                carried.append(name)
            else:
                self.problems.append(not_held("force", name, f"a '{force.type}' of this kind", "MJCF"))
        for label, parts in springs.items():
            k, c = sum(p[0] for p in parts), sum(p[1] for p in parts)
            self.joints[label].set("stiffness", repr(k))
            self.joints[label].set("damping", repr(c))
            if k:
                self.joints[label].set("springref", repr(sum(p[0] * p[2] for p in parts) / k))
        self.report.count("forces", carried)

    def _ball_dampers(self) -> set[str]:
        """Write dampers that are equal about all three axes of a ball, which MuJoCo has; the names of the forces."""
        found: dict[str, dict[str, tuple[str, float]]] = {}  # by joint and speed: force and damping
        for name, force in self.m.forces.items():
            if isinstance(force, JointSpring) and force.joint.partition(".")[0] in self.balls:
                joint, _, speed = force.joint.partition(".")
                c = self.c.r.scalar(force.damping, "angular_damping", name, ())
                if self.c.r.scalar(force.stiffness, "angular_stiffness", name, ()) == 0.0:
                    found.setdefault(joint, {}).setdefault(speed, (name, c))
        written: set[str] = set()
        for joint, three in found.items():
            names, values = zip(*three.values(), strict=True)
            if len(three) == 3 and len(set(values)) == 1:
                self.balls[joint].set("damping", repr(values[0]))
                written |= set(names)
        return written

    def _force(self, name: str, force: Force, springs: dict[str, list[tuple[float, float, float]]]) -> bool:
        """Write one force; False if MJCF cannot say it."""
        r = self.c.r
        if isinstance(force, JointSpring | JointFriction | Motor):
            joint = self.joints.get(force.joint)
            if joint is None:
                return False
            turns = joint.get("type") == "hinge"
            turn, position = ("angular_", "angle") if turns else ("", "length")
        if isinstance(force, JointSpring):
            k = r.scalar(force.stiffness, turn + "stiffness", name, ())
            c = r.scalar(force.damping, turn + "damping", name, ())
            springs.setdefault(force.joint, []).append((k, c, r.scalar(force.rest, position, name, ())))
        elif isinstance(force, JointFriction):
            springs.setdefault(force.joint, []).append((0.0, r.scalar(force.viscous, turn + "damping", name, ()), 0.0))
            dry = r.scalar(force.coulomb, "torque" if turns else "force", name, ())
            if dry:
                before = float(self.joints[force.joint].get("frictionloss", "0"))  # of another force on this joint
                self.joints[force.joint].set("frictionloss", repr(before + dry))
                self.report.changed.append(
                    f"force '{name}': smooth friction becomes MuJoCo's frictionloss, which sticks"
                )
        elif isinstance(force, Motor):
            law, out = (force.torque, "torque") if turns else (force.force, "force")
            found = servo(self.c, law, "position", position, turn + "speed", out)
            return self._general(name, found, joint=self.joints[force.joint].get("name", ""))
        elif isinstance(force, JointTendon):
            return self._joint_tendon(name, force)
        elif isinstance(force, SpringDamper):
            length = force.length
            ends = self._line(name, force)
            rest = float(np.linalg.norm(ends[1] - ends[0])) if length is None else r.scalar(length, "length", name, ())
            k, c = r.scalar(force.stiffness, "stiffness", name, ()), r.scalar(force.damping, "damping", name, ())
            line = self.tendon[-1]
            line.attrib |= {"stiffness": repr(k), "damping": repr(c), "springlength": repr(rest)}
        elif isinstance(force, Actuator):
            found = servo(self.c, force.force, "length", "length", "speed", "force")
            if found is None:
                return False
            self._line(name, force)
            return self._general(name, found, tendon=name)
        elif isinstance(force, AppliedForce):
            return self._applied(name, force) if force.axes == "body" else self._gravcomp(name, force)
        else:
            return False
        return True

    def _general(self, name: str, law: Servo | None, **where: str) -> bool:
        """Write an actuator with this law; False if MJCF has none."""
        if law is None:
            return False
        kind = {"gaintype": "affine", "gainprm": _text(law.gain), "biastype": "affine", "biasprm": _text(law.bias)}
        for key, limits in (("ctrl", law.control_range), ("force", law.force_range)):
            if limits != EVERYTHING:
                kind |= {f"{key}limited": "true", f"{key}range": _text(limits)}
        _add(self.actuator, "general", name=name, **where, **kind)
        self.controls.append(self.c.r.parameters[law.control] if law.control else 0.0)
        if law.control and law.control != CONTROL + name:
            self.report.changed.append(f"the parameter '{law.control}' is the control of the actuator '{name}'")
        return True

    def _joint_tendon(self, name: str, force: JointTendon) -> bool:
        """Write a fixed tendon with an actuator; False if a joint has no coordinate of its own in MuJoCo."""
        if not all(label in self.joints for label in force.terms):
            return False
        joints = [self.joints[label] for label in force.terms]
        dimensions = ["angle" if e.get("type") == "hinge" else "length" for e in joints]
        row = "length" if "length" in dimensions else "angle"
        kinds = ("length", "speed", "force") if row == "length" else ("angle", "angular_speed", "torque")
        found = servo(self.c, force.force, "length", *kinds)
        if found is None:
            return False
        r = self.c.r
        tendon = _add(self.tendon, "fixed", name=name)
        for e, d, factor in zip(joints, dimensions, force.terms.values(), strict=True):
            coef = r.scalar(factor, "number", name, ()) * r.units.factor(row) / r.units.factor(d)
            _add(tendon, "joint", joint=e.get("name", ""), coef=repr(coef))
        return self._general(name, found, tendon=name)

    def _line(self, name: str, force: SpringDamper | Actuator) -> list[Array]:
        """Write a spatial tendon between two sites, given as world points at the reference pose."""
        tendon = _add(self.tendon, "spatial", name=name)
        points = []
        for body, p in ((force.body1, force.point1), (force.body2, force.point2)):
            point = self.c.r.vector(p, "length", name, ())
            site = unique(f"{name} {body}", self.names)
            _add(self.elements[body], "site", name=site, pos=_text(self.c.body_point(body, point)))
            _add(tendon, "site", site=site)
            points.append(point)
        return points

    def _constants(self, force: AppliedForce) -> list[float] | None:
        """Force and torque of a constant load; None for any other."""
        laws = [self.c.affine(law, "t", "number", "number", "force") for law in force.force]
        laws += [self.c.affine(law, "t", "number", "number", "torque") for law in force.torque]
        found = [law[0] for law in laws if law is not None and not (law[1] or law[2])]
        return found if len(found) == len(laws) else None

    def _gravcomp(self, name: str, force: AppliedForce) -> bool:
        """Write a constant force that balances weight at the centre of mass as gravity compensation; else False."""
        load, link = self._constants(force), self.c.by_name.get(force.body)
        if load is None or link is None or any(load[3:]):
            return False
        weight = link.mass * self.c.r.vector(self.m.gravity, "acceleration", "mechanism", ("gravity",))
        size = float(weight @ weight)
        share = -float(weight @ load[:3]) / size if size else 0.0
        off = self.c.body_point(force.body, self.c.r.vector(force.at, "length", name, ())) - link.com
        if np.abs(load[:3] + share * weight).max() > SAME * np.sqrt(size) or np.abs(off).max() > SAME * max(
            self.c.system.size, float(np.abs(link.pose[0]).max())
        ):
            return False
        for part in (n for n, (of, *_) in self.parts.items() if of.name == force.body):
            before = float(self.elements[part].get("gravcomp", "0"))
            self.elements[part].set("gravcomp", repr(before + share))
        return True

    def _applied(self, name: str, force: AppliedForce) -> bool:
        """Write a constant load in body axes as an actuator on a site."""
        load = self._constants(force)
        if load is None:
            return False
        R = self.c.system.reference_poses[self.c.system.bodies.index(force.body)][1]
        p = self.c.body_point(force.body, self.c.r.vector(force.at, "length", name, ()))
        site = unique(f"{name} site", self.names)
        turned = from_matrix(R.T)  # its axes are the world's at the reference pose
        _add(self.elements[force.body], "site", name=site, pos=_text(p), quat=_text(turned))
        return self._general(name, Servo((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)), site=site, gear=_text(load))

    def _range(self, label: str, low: float, high: float) -> None:
        """Limit a coordinate, in SI units."""
        self.joints[label].set("limited", "true")
        self.joints[label].set("range", f"{low!r} {high!r}")
        self.report.changed.append(f"limits of '{label}' are soft stops in MuJoCo")

    def _contacts(self) -> None:
        """Write rigid stops on both sides of a coordinate as its range."""
        carried = []
        for name, contact in self.m.contacts.items():
            bounds = [side.bound for side in contact.sides(name, self.c.r)]
            rigid = contact if isinstance(contact, Stop) and contact.stiffness is None else None
            if rigid is None or rigid.joint not in self.joints or len(bounds) < 2:
                what = "MuJoCo has rigid stops of joints, with a lower and an upper bound, only: this"
                self.problems.append(not_held("contact", name, what, "MJCF"))
                continue
            unit = self.c.system.labels.factor(rigid.joint)
            low, high = (unit * self.c.r.scalar(x, "number", name, ()) for x in bounds)
            self._range(rigid.joint, low, high)
            carried.append(name)
        self.report.count("stops", carried)

    def _constraints(self) -> None:
        carried = []
        for name, c in self.m.constraints.items():
            if isinstance(c, Coupler) and all(label in self.joints for label in c.terms):
                self._coupler(name, c)
                carried.append(name)
            else:
                self.problems.append(not_held("constraint", name, f"a '{c.type}'", "MJCF"))
        self.problems += [not_held("driver", name, "a motion given in time", "MJCF") for name in self.m.drivers]
        self.problems += [not_held("measure", name, "a formula of its quantities", "MJCF") for name in self.m.measures]
        self.report.count("relations", carried)

    def _coupler(self, name: str, c: Coupler) -> None:
        """MuJoCo counts from the reference coordinates."""
        r = self.c.r
        joints = [self.joints[label] for label in c.terms]
        dimensions = ["angle" if e.get("type") == "hinge" else "length" for e in joints]
        row = "length" if "length" in dimensions else "angle"
        unit = r.units.factor(row)
        factors = [
            r.scalar(f, "number", name, ()) * unit / r.units.factor(d)
            for f, d in zip(c.terms.values(), dimensions, strict=True)
        ]
        offset = r.scalar(c.offset, row, name, ())
        refs = [float(e.get("ref", "0")) for e in joints]
        offset -= sum(f * ref for f, ref in zip(factors, refs, strict=True))
        names = [e.get("name", "") for e in joints]
        if len(joints) > 2 or factors[0] == 0.0:
            tendon = _add(self.tendon, "fixed", name=f"{name} terms")
            for joint, factor in zip(names, factors, strict=True):
                _add(tendon, "joint", joint=joint, coef=repr(factor))
            _add(self.equality, "tendon", name=name, tendon1=f"{name} terms", polycoef=f"{offset!r} 0 0 0 0")
            return
        slope = -factors[1] / factors[0] if len(joints) == 2 else 0.0
        pair = {f"joint{k + 1}": joint for k, joint in enumerate(names)}
        poly = f"{offset / factors[0]!r} {slope!r} 0 0 0"
        _add(self.equality, "joint", name=name, **pair, polycoef=poly)

    # -------------------------------------------------------------------------------------------- start

    def _start(self) -> None:
        """Write the closed start and controls as a keyframe, unless all is zero and at rest in the reference pose."""
        controls = {"ctrl": _text(self.controls)} if any(self.controls) else {}
        if not (self.m.start.q or self.m.start.v):
            if controls:
                _add(_add(self.root, "keyframe"), "key", name="start", **controls)
            return
        try:
            state = assemble(self.c.system)
        except AssemblyError as error:
            self.report.left_out.append(f"the start: {error}")
            return
        moves = self.c.joint_motion(state)
        motion = body_motion(self.c.system, state)
        row = {name: k for k, name in enumerate(motion.bodies)}
        q: list[float] = []
        v: list[float] = []
        for body in self.root.iter("body"):  # MuJoCo counts coordinates in this order
            link, j, axes, carrier, place = self.parts[body.get("name", "")]
            b, c = row[link.name], row[carrier]
            R, w = motion.rotation[b], motion.angular_velocity[b]
            for a in axes:
                if a.kind == "free":
                    q += [*motion.position[b], *from_matrix(R)]
                    v += [*motion.velocity[b], *(R.T @ w)]
                elif a.kind == "ball":
                    q += from_matrix((motion.rotation[c] @ place[1]).T @ R).tolist()
                    v += (R.T @ (w - motion.angular_velocity[c])).tolist()
                else:
                    at, speed = _coordinate(j, a, moves, state)
                    q.append(at)
                    v.append(speed)
        _add(_add(self.root, "keyframe"), "key", name="start", qpos=_text(q), qvel=_text(v), **controls)
        self.report.carried.append("the start, as the keyframe 'start'")


def _coordinate(j: JointData, a: _Axis, moves: dict[str, tuple[Array, Array]], state: State) -> tuple[float, float]:
    """Coordinate and speed of one hinge or slide of a joint."""
    suffix = a.name[len(j.name) + 1 :]
    if j.spec.type == "free":
        k = "xyz".index(suffix)
        R = to_matrix(state.q[j.q0 + 3 : j.q0 + 7])
        return float(state.q[j.q0 + k]), float((R @ state.v[j.v0 + 3 : j.v0 + 6])[k])
    q, v = moves[j.name]
    if j.spec.type == "helical":
        scale = j.par[0] if suffix else 1.0
        return scale * float(q[0]), scale * float(v[0])
    k = j.spec.coordinates.index(suffix)
    return float(q[k]), float(v[k])


def _add(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    return ET.SubElement(parent, tag, attributes)


def _text(values: Sequence[float] | Array) -> str:
    return " ".join(repr(float(x) + 0.0) for x in values)


def _placed(a: Pose) -> dict[str, str]:
    return {"pos": _text(a[0]), "quat": _text(from_matrix(a[1]))}
