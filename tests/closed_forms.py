"""Spatial mechanisms whose loops have closed forms, for the tests of `closure`: all closed where they are drawn."""

from __future__ import annotations

import numpy as np

import loopdyn as ld


def _body(m: ld.Mechanism, name: str, at: np.ndarray) -> ld.Body:
    return m.add_body(name, ld.Inertia.box(mass=1.0, size=(0.2, 0.3, 0.1), at=tuple(at)))


def spherical_four_bar() -> ld.Mechanism:
    """Four hinges whose axes meet in (0.1, 0.2, 0.3); each is placed at a different distance from it."""
    m = ld.Mechanism("spherical_four_bar", gravity=(0, -9.81, 0))
    centre = np.array([0.1, 0.2, 0.3])
    axes = [(1, 0, 0.1), (0.9, 0.4, 0.2), (0.5, 0.8, 1.0), (0.1, 0.2, 1.0)]
    bodies = ["ground", "crank", "coupler", "rocker", "ground"]
    for k, name in enumerate(bodies[1:4]):
        _body(m, name, centre + 0.5 * np.array(axes[k]))
    for k, axis in enumerate(axes):
        at = tuple(centre + (0.5 + 0.2 * k) * np.array(axis))
        m.add_joint("ABCD"[k], ld.Revolute(axis=axis), bodies[k], bodies[k + 1], at=at)
    return m


def shafts() -> ld.Mechanism:
    """Two shafts joined by a universal joint, their axes 0.5 rad apart."""
    m = ld.Mechanism("shafts", gravity=(0, -9.81, 0))
    way = np.array([np.cos(0.5), np.sin(0.5), 0.0])
    _body(m, "first", np.array([-0.5, 0.1, 0.0]))
    _body(m, "second", 0.5 * way + [0.0, 0.0, 0.1])
    m.add_joint("A", ld.Revolute(axis=(1, 0, 0)), "ground", "first", at=(-1, 0, 0))
    m.add_joint("U", ld.Universal(axis1=(0, 0, 1), axis2=(-0.3, 1, 0)), "first", "second", at=(0, 0, 0))
    m.add_joint("B", ld.Revolute(axis=tuple(way)), "ground", "second", at=tuple(way))
    return m


def hooked_rod(reverse: bool = False) -> ld.Mechanism:
    """RUSR: the rod of an RSSR with a universal joint in the place of its first ball, so that it does not spin."""
    m = ld.library.rssr()
    ends = ("coupler", "crank") if reverse else ("crank", "coupler")
    m.joints["B"] = ld.Universal(axis1=(0, 1, 0.2), axis2=(0.3, -0.2, 1), parent=ends[0], child=ends[1],
                                 at=m.joints["B"].at)  # fmt: skip
    return m


def crossed_rod() -> ld.Mechanism:
    """... made of two hinges whose axes meet, with a body between them."""
    m = hooked_rod()
    at = m.joints.pop("B").at
    _body(m, "cross", np.array([0.15, 0.05, 0.02]))
    m.add_joint("B1", ld.Revolute(axis=(0, 1, 0.2)), "crank", "cross", at=at)
    m.add_joint("B2", ld.Revolute(axis=(0.3, -0.2, 1)), "coupler", "cross", at=at)
    return m


def wrist() -> ld.Mechanism:
    """Seven hinges and more: the ball of `hooked_rod` made of three hinges whose axes meet."""
    m = hooked_rod()
    at, (x, y, z) = m.joints.pop("C").at, (0.3, 0.6, 0.3)
    _body(m, "inner", np.array([x, y, z]) + [0.05, 0, 0])
    _body(m, "outer", np.array([x, y, z]) + [0, 0.05, 0])
    m.add_joint("C1", ld.Revolute(axis=(1, 0.1, 0)), "coupler", "inner", at=at)
    m.add_joint("C2", ld.Revolute(axis=(0, 1, 0.3)), "inner", "outer", at=at)
    m.add_joint("C3", ld.Revolute(axis=(0.2, 0, 1)), "outer", "rocker", at=at)
    return m


def arm(middle: str = "RR", askew: float = 0.0) -> ld.Mechanism:
    """A robot holds a crank with its wrist: a hinge, two joints in a plane it is askew to, three hinges that meet.

    With `askew` the axis of the second joint is out of parallel with that of the third.
    """
    m = ld.Mechanism(f"arm_{middle.lower()}", gravity=(0, 0, -9.81))
    hand = np.array([0.9, 0.3, 0.5])
    places = {"crank": hand + [0.2, 0, 0.1], "turret": (0, 0, 0.2), "upper": (0.2, 0.1, 0.7), "fore": (0.6, 0.2, 0.7),
              "inner": hand + [0, 0.1, 0], "outer": hand + [0.1, 0, 0]}  # fmt: skip
    for name, at in places.items():
        _body(m, name, np.array(at))
    n = np.array([-0.3, 1.0, 0.2])
    along = [np.cross(n, (0, 0, 1)), np.cross(n, (1, 0, 0.3))]
    kinds = [
        ld.Revolute(axis=tuple(n + tilt * along[0])) if k == "R" else ld.Prismatic(axis=tuple(w))
        for k, w, tilt in zip(middle, along, (askew, 0.0), strict=True)
    ]
    m.add_joint("A", ld.Revolute(axis=(0.2, 0.3, 1)), "ground", "crank", at=tuple(hand + [0.4, 0.2, -0.1]))
    m.add_joint("J1", ld.Revolute(axis=(0.1, 0, 1)), "ground", "turret", at=(0, 0, 0))
    m.add_joint("J2", kinds[0], "turret", "upper", at=(0, 0.05, 0.4))
    m.add_joint("J3", kinds[1], "fore", "upper", at=(0.4, 0.1, 0.9))
    m.add_joint("W1", ld.Revolute(axis=(1, 0.2, 0)), "fore", "inner", at=tuple(hand))
    m.add_joint("W2", ld.Revolute(axis=(0, 1, 0.3)), "inner", "outer", at=tuple(hand))
    m.add_joint("W3", ld.Revolute(axis=(0.3, 0, 1)), "crank", "outer", at=tuple(hand))
    return m


def platform(leg: str) -> ld.Mechanism:
    """A platform on six legs of two bodies each: UPS, URS (with an elbow), RUS (a crank and a rod)."""
    m = ld.Mechanism(f"six_{leg.lower()}", gravity=(0, 0, -9.81))
    top = ld.Inertia.cylinder(mass=5.0, radius=0.3, length=0.05, axis=(0, 0, 1), at=(0, 0, 0.82))
    m.add_body("platform", top)
    for k in range(6):
        turn = 2 * np.pi / 3 * (k // 2)
        low, high = (turn + (1 if k % 2 else -1) * np.radians(x) for x in (15.0, 45.0))
        base = np.array([0.6 * np.cos(low), 0.6 * np.sin(low), 0.0])
        end = np.array([0.35 * np.cos(high), 0.35 * np.sin(high), 0.8])
        side = np.cross(base, (0, 0, 1)) / 0.6
        knee = (base + end) / 2 + (0.0 if leg == "UPS" else 0.2) * base / 0.6
        n = k + 1
        _body(m, f"lower{n}", (base + knee) / 2)
        _body(m, f"upper{n}", (knee + end) / 2)
        first, second = (base, knee) if leg[0] == "U" else (knee, base)
        hook = ld.Universal(axis1=tuple(side), axis2=tuple(np.cross(end - first, side) + 0.1 * side))
        other = ld.Prismatic(axis=tuple(end - base)) if leg == "UPS" else ld.Revolute(axis=tuple(side))
        joints = {"U": (hook, first), "P": (other, second), "R": (other, second)}
        for kind, parent, child in ((leg[0], "ground", f"lower{n}"), (leg[1], f"lower{n}", f"upper{n}")):
            joint, at = joints[kind]
            m.add_joint(f"{kind}{n}", joint, parent, child, at=tuple(at))
        m.add_joint(f"S{n}", ld.Spherical(), f"upper{n}", "platform", at=tuple(end))
    return m


def tripod(axes: str) -> ld.Mechanism:
    """A tilted platform on three legs RRS, the axes of whose hinges are parallel, meet in the knee, or are skew."""
    m = ld.Mechanism(f"tripod_{axes}", gravity=(0, 0, -9.81))
    top = ld.Inertia.cylinder(mass=4.0, radius=0.3, length=0.05, axis=(0, 0, 1), at=(0.02, 0.01, 0.62))
    m.add_body("platform", top)
    for k in range(3):
        out = np.array([np.cos(2.1 * k), np.sin(2.1 * k), 0.0])  # nearly three times the same
        side = np.cross((0, 0, 1), out)
        base, knee, end = 0.5 * out, 0.6 * out + [0, 0, 0.3], 0.3 * out + [0, 0, 0.5 + 0.12 * k]
        first = {"parallel": side, "meet": knee - base, "skew": side + 0.7 * out + 0.4 * (knee - base)}[axes]
        _body(m, f"lower{k + 1}", (base + knee) / 2)
        _body(m, f"upper{k + 1}", (knee + end) / 2)
        m.add_joint(f"A{k + 1}", ld.Revolute(axis=tuple(first)), "ground", f"lower{k + 1}", at=tuple(base))
        m.add_joint(f"B{k + 1}", ld.Revolute(axis=tuple(side)), f"upper{k + 1}", f"lower{k + 1}", at=tuple(knee))
        m.add_joint(f"S{k + 1}", ld.Spherical(), f"upper{k + 1}", "platform", at=tuple(end))
    return m


def carried_leg() -> ld.Mechanism:
    """A crank that takes along a leg RRS whose first hinge is on the crank's axis: one row is redundant."""
    m = ld.Mechanism("carried_leg", gravity=(0, -9.81, 0))
    axis = np.array([0.2, 0.1, 1.0])
    _body(m, "crank", np.array([0.4, 0.1, 0.0]))
    _body(m, "lower", np.array([0.2, 0.3, 0.5]))
    _body(m, "upper", np.array([0.6, 0.4, 0.4]))
    m.add_joint("A", ld.Revolute(axis=tuple(axis)), "ground", "crank", at=(0, 0, 0))
    m.add_joint("J1", ld.Revolute(axis=tuple(axis)), "ground", "lower", at=tuple(0.5 * axis))
    m.add_joint("J2", ld.Revolute(axis=(1, 0.3, -0.2)), "lower", "upper", at=(0.4, 0.5, 0.6))
    m.add_joint("S", ld.Spherical(), "crank", "upper", at=(0.8, 0.2, 0.1))
    return m
