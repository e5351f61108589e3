"""Spatial mechanisms: linkages and parallel platforms."""

from __future__ import annotations

from math import cos, radians, sin
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.contacts import Stop
from loopdyn.errors import LoopdynError
from loopdyn.joints import Prismatic, Revolute, Spherical, Universal
from loopdyn.library._common import vec3
from loopdyn.model.inertia import Inertia
from loopdyn.model.mechanism import Mechanism, Start

Array = NDArray[np.float64]


def rssr() -> Mechanism:
    """Spatial four-bar: crank and rocker with skew axes, coupled by a rod with a ball at each end.

    Three bodies, two revolute and two spherical joints, one loop, two degrees of freedom: the motion of the crank, and
    an idle one, the spin of the coupler about its own line. The crank can turn fully; at the start it turns at
    5 rad/s. The numbers are our own.

    Parameters of the mechanism: `crank` length, place (`x`, `y`, `z`) and length of the `rocker`, `g`.

    Examples
    --------
    >>> m = rssr()
    >>> len(m.bodies), len(m.joints)
    (3, 4)
    """
    m = Mechanism(
        "rssr",
        gravity=(0, 0, "-g"),
        parameters={"crank": 0.15, "x": 0.3, "y": 0.6, "z": -0.1, "rocker": 0.4, "g": 9.81},
    )
    B, C = ("crank", 0, 0), ("x", "y", "z + rocker")
    crank = m.add_body("crank", Inertia.rod(mass=0.5, start=(0, 0, 0), end=B, radius=0.02))
    coupler = m.add_body("coupler", Inertia.rod(mass=1.0, start=B, end=C, radius=0.015))
    rocker = m.add_body("rocker", Inertia.rod(mass=0.8, start=("x", "y", "z"), end=C, radius=0.02))
    m.add_joint("A", Revolute(axis=(0, 0.3, 1)), m.ground, crank, at=(0, 0, 0))
    m.add_joint("B", Spherical(), crank, coupler, at=B)
    m.add_joint("C", Spherical(), coupler, rocker, at=C)
    m.add_joint("D", Revolute(axis=(1, 0.2, 0)), m.ground, rocker, at=("x", "y", "z"))
    m.start = Start(v={"A": 5.0})
    return m


def bennett() -> Mechanism:
    """Bennett's linkage: four hinges with skew axes, which moves though counting forbids it.

    Three bodies, four revolute joints, one loop, one degree of freedom; three rows of the loop are redundant for ever.
    Opposite links have the same length and twist, and sin(twist)/length is the same for all. This holds for
    every skew quadrilateral that a half turn maps onto itself, with each hinge perpendicular to the two links that
    meet there (the twists are the dihedral angles of its tetrahedron, and the areas of opposite faces are equal), so
    that it stays a Bennett linkage for all values of the parameters. The numbers are our own.

    Parameters of the mechanism: the corners are P1, P3 = (+-u, 0, h) and P2, P4 = (+-v cos(phi), +-v sin(phi), -h);
    `g`. The link from P4 to P1 is the ground.

    Examples
    --------
    >>> m = bennett()
    >>> len(m.bodies), len(m.joints), m.compile().nv
    (3, 4, 3)
    """
    m = Mechanism(
        "bennett",
        gravity=(0, 0, "-g"),
        parameters={"u": 0.5, "v": 0.8, "phi": 1.1, "h": 0.2, "g": 9.81, "c": "cos(phi)", "s": "sin(phi)"},
    )
    corners = (("u", 0, "h"), ("v*c", "v*s", "-h"), ("-u", 0, "h"), ("-v*c", "-v*s", "-h"))
    axes = (("-2*h*s", "2*h*c", "u*s"), (0, "2*h", "v*s"), ("2*h*s", "-2*h*c", "u*s"), (0, "-2*h", "v*s"))
    for k in range(3):
        rod = Inertia.rod(mass=1.0, start=corners[k], end=corners[k + 1], radius=0.02)
        m.add_body(f"link{k + 1}", rod)
    bodies = [m.ground, *m.bodies, m.ground]
    for k in range(4):
        m.add_joint(f"P{k + 1}", Revolute(axis=axes[k]), bodies[k], bodies[k + 1], at=corners[k])
    m.start = Start(v={"P1": 2.0})
    return m


def stewart_6ups(stops: bool = False) -> Mechanism:
    """Stewart (Gough) platform on six legs, each with a universal joint, a slide and a ball.

    Thirteen bodies, eighteen joints, five loops, six degrees of freedom, nothing redundant. Joints on the base lie in
    pairs on a circle of radius 0.6 m, those on the platform on one of 0.35 m, 0.8 m above, in pairs that face the
    gaps of the base. Each leg is a cylinder (lower) and a piston (upper); the first axis of its universal joint is
    tangential. The slides hold their length as stiff springs with damping. The numbers are our own.

    Parameters of the mechanism: `stiffness` and `damping` of the legs, `payload` mass of the platform, `g`.

    Parameters
    ----------
    stops : bool
        Whether the legs end in stops, `stop1` to `stop6`, below which the slides cannot be compressed. The platform
        then rests on all six at the reference pose.

    Examples
    --------
    >>> m = stewart_6ups()
    >>> len(m.bodies), len(m.joints)
    (13, 18)
    >>> list(stewart_6ups(stops=True).contacts)
    ['stop1', 'stop2', 'stop3', 'stop4', 'stop5', 'stop6']
    """
    m = Mechanism(
        "stewart_6ups_stops" if stops else "stewart_6ups",
        gravity=(0, 0, "-g"),
        parameters={"stiffness": 4e4, "damping": 400.0, "payload": 20.0, "g": 9.81},
    )
    top = Inertia.cylinder(mass="payload", radius=0.38, length=0.04, axis=(0, 0, 1), at=(0, 0, 0.82))
    platform = m.add_body("platform", top)
    for k in range(6):
        base, end = _on_circle(0.6, 0.0, _paired(k, 15.0)), _on_circle(0.35, 0.8, _paired(k, 45.0))
        leg = end - base
        tangent = np.cross((0, 0, 1), base)
        hooke = Universal(axis1=vec3(tangent, 4), axis2=vec3(np.cross(leg, tangent), 4))
        part = [vec3(base + x * leg, 4) for x in (0.0, 0.4, 0.5, 0.55, 1.0)]
        lower = m.add_body(f"lower{k + 1}", Inertia.rod(mass=2.0, start=part[0], end=part[3], radius=0.03))
        upper = m.add_body(f"upper{k + 1}", Inertia.rod(mass=1.0, start=part[1], end=part[4], radius=0.015))
        m.add_joint(f"U{k + 1}", hooke, m.ground, lower, at=part[0])
        m.add_joint(f"P{k + 1}", Prismatic(axis=vec3(leg, 4)), lower, upper, at=part[2])
        m.add_joint(f"S{k + 1}", Spherical(), upper, platform, at=part[4])
        m.add_motor(f"leg{k + 1}", f"P{k + 1}", force="-stiffness*position - damping*speed")
        if stops:
            m.add_contact(f"stop{k + 1}", Stop(joint=f"P{k + 1}", lower=0.0))
    return m


def _paired(k: int, half: float) -> float:
    """Angle (rad) of joint k = 0..5: pairs about 0, 120 and 240 degrees, `half` degrees to both sides."""
    return radians(120.0 * (k // 2) + (half if k % 2 else -half))


def _on_circle(radius: float, z: float, angle: float) -> Array:
    return np.round([radius * cos(angle), radius * sin(angle), z], 4)


def stewart_3rrs(reading: Literal["S", "C"] = "S") -> Mechanism:
    """Three-legged platform (3-RRS) of Huang et al. (2002), driven by a constant torque on each shaft.

    Seven bodies (plate, three legs, three shafts), nine joints with 39 rows in all, two loops, three degrees of
    freedom, nothing redundant. Numbers of the paper's Fig. 10, as printed there with two or three digits. They
    contradict each other: the mass centre of the first shaft, seen from J4, lies towards the place of J8, that of the
    second, seen from J5, towards J7. Legs and shafts have their first principal axis along the link, the plate has its
    second one upwards. The paper does not say whether gravity acts; ``with_(g=0)`` removes it.

    Parameters of the mechanism: `torque` of each motor, `g`.

    Parameters
    ----------
    reading : str
        "S" exchanges the places of J7 and J8 and leaves their axes: only so the shafts lie along their motors' axes and
        the platform has its threefold symmetry. "C" keeps the columns of the table whole: the axes go with the places.

    Examples
    --------
    >>> m = stewart_3rrs()
    >>> len(m.bodies), len(m.joints)
    (7, 9)
    >>> stewart_3rrs(reading="C").joints["J7"].axis
    (-0.84, 0.48, 0.26)
    """
    if reading not in ("S", "C"):
        raise LoopdynError(f"reading = {reading!r} is unknown; known: S, C")
    m = Mechanism("stewart_3rrs", gravity=(0, 0, "-g"), parameters={"torque": 10.0, "g": 9.81})
    balls = ((0, 0.61, 0.71), (0.53, -0.31, 0.71), (-0.53, -0.31, 0.71))  # J1, J2, J3
    knees = ((0, 0.29, 0), (0.25, -0.14, 0), (-0.25, -0.14, 0))  # J4, J5, J6
    knee_axes = ((1, 0, 0), (-0.5, -0.87, 0), (-0.5, 0.867, 0))
    motors = ((0, 0.39, -0.03), (0.33, -0.19, -0.03), (-0.33, -0.19, -0.03))  # J7, J8, J9, named after their shafts
    motor_axes = ((0, -0.97, 0.26), (-0.84, 0.48, 0.26), (0.84, 0.48, 0.26))
    columns = (1, 0, 2) if reading == "C" else (0, 1, 2)
    leg_centres = ((0, 0.450, 0.355), (0.39, -0.225, 0.355), (-0.39, -0.225, 0.355))
    shaft_centres = ((0, 0.337, -0.013), (0.292, -0.168, -0.013), (-0.292, -0.168, -0.013))
    plate = m.add_body("plate", Inertia(10.0, (0, 0, 0.71), np.diag([2.5, 2.5, 5.0])))
    for k in range(3):
        leg_axis, motor_axis = np.subtract(balls[k], knees[k]), motor_axes[columns[k]]
        leg = m.add_body(f"leg{k + 1}", Inertia(5.0, leg_centres[k], _symmetric(0.07, 0.7, leg_axis)))
        shaft = m.add_body(f"shaft{k + 1}", Inertia(1.0, shaft_centres[k], _symmetric(0.01, 0.1, motor_axis)))
        m.add_joint(f"J{k + 1}", Spherical(), leg, plate, at=balls[k])
        m.add_joint(f"J{k + 4}", Revolute(axis=knee_axes[k]), shaft, leg, at=knees[k])
        m.add_joint(f"J{k + 7}", Revolute(axis=motor_axis), m.ground, shaft, at=motors[k])
        m.add_motor(f"motor{k + 1}", f"J{k + 7}", torque="torque")
    return m


def _symmetric(along: float, across: float, axis: ArrayLike) -> Array:
    """Inertia matrix of a body of revolution about `axis`; digits beyond the twelfth are rounding."""
    e = np.asarray(axis, float)
    matrix: Array = across * np.eye(3) + (along - across) * np.outer(e, e) / (e @ e)
    return np.round(matrix, 12)
