"""Mechanisms whose small motions are known in closed form or from the literature."""

from __future__ import annotations

import numpy as np

import loopdyn as ld

Z = (0, 0, 1)
G = 9.81


def parallelogram(crank=1.0, coupler=2.0, width=2.0, reverse=False, order="cdk", cuts=None, units=None):
    """Hanging parallelogram of rods: cranks of 1 m, coupler `width` long; masses in kg."""
    length = {None: 1.0, "mm": 1000.0}[units]
    declared = {} if units is None else {"units": {"length": "mm", "angle": "deg", "mass": "g"}}
    mass = 1.0 if units is None else 1000.0
    m = ld.Mechanism("parallelogram", gravity=(0, -G, 0), **declared)

    def rod(name, a, b, kg):
        m.add_body(name, ld.Inertia.rod(mass=kg * mass, start=np.multiply(length, a), end=np.multiply(length, b)))

    rods = {"c": ("c", (0, 0, 0), (0, -1, 0), crank), "d": ("d", (width, 0, 0), (width, -1, 0), crank),
            "k": ("k", (0, -1, 0), (width, -1, 0), coupler)}  # fmt: skip
    for key in order:
        rod(*rods[key])
    pairs = {"A": ("ground", "c", (0, 0, 0)), "B": ("c", "k", (0, -1, 0)), "C": ("k", "d", (width, -1, 0)),
             "D": ("ground", "d", (width, 0, 0))}  # fmt: skip
    for name, (parent, child, at) in pairs.items():
        ends = (child, parent) if reverse else (parent, child)
        m.add_joint(name, ld.Revolute(axis=Z), *ends, at=tuple(np.multiply(length, at)))
    return m


def governor(inertia=None, speed=4.4294469181):
    """Two masses of 0.5 kg on arms of 1 m, 60 degrees from a vertical shaft, which is driven if it has no inertia."""
    m = ld.Mechanism("governor", gravity=(0, 0, -G))
    matrix = {"xx": 1.0, "yy": 1.0, "zz": inertia or 1.0}
    m.add_body("shaft", ld.Inertia(1.0, (0, 0, 0), matrix))
    m.add_joint("shaft", ld.Revolute(axis=Z), "ground", "shaft", at=(0, 0, 0))
    s, c = np.sin(np.pi / 3), np.cos(np.pi / 3)
    for name, sign in (("1", 1.0), ("2", -1.0)):
        m.add_body(f"mass{name}", ld.Inertia.point(0.5, at=(sign * s, 0, -c)))
        # arms turn outward with a growing angle
        m.add_joint(f"arm{name}", ld.Revolute(axis=(0, -sign, 0)), "shaft", f"mass{name}", at=(0, 0, 0))
    if inertia is None:
        m.add_driver("drive", "shaft", f"{speed!r}*t")
    return m


def disc(radius=0.3, chain=False):
    """Thin disc of 2 kg that rolls along x on the plane z = 0."""
    m = ld.Mechanism("disc", gravity=(0, 0, -G))
    J = 2.0 * radius**2 / 4.0
    m.add_body("disc", ld.Inertia(2.0, (0, 0, radius), {"xx": J, "yy": 2 * J, "zz": J}))
    if chain:  # yaw, lean and spin by hinges: massless carriers
        m.add_body("carrier", ld.Inertia.massless())
        m.add_body("yaw", ld.Inertia.massless())
        m.add_body("lean", ld.Inertia.massless())
        m.add_joint("P", ld.joints.Translational(), "ground", "carrier", at=(0, 0, radius))
        m.add_joint("yaw", ld.Revolute(axis=(0, 0, 1)), "carrier", "yaw", at=(0, 0, radius))
        m.add_joint("lean", ld.Revolute(axis=(1, 0, 0)), "yaw", "lean", at=(0, 0, radius))
        m.add_joint("spin", ld.Revolute(axis=(0, 1, 0)), "lean", "disc", at=(0, 0, radius))
    else:
        m.add_joint("F", ld.Free(), "ground", "disc", at=(0, 0, radius))
    m.add_constraint("rolls", ld.constraints.Rolling(
        on="ground", body="disc", normal=(0, 0, 1), through=(0, 0, 0), centre=(0, 0, radius), radius=radius,
        axis=(0, 1, 0)))  # fmt: skip
    return m


def bicycle():
    """Whipple bicycle with the benchmark's parameters (Meijaard, Papadopoulos, Ruina, Schwab 2007, table 1).

    Axes as there: x forward, y right, z down; rear contact at the origin.
    """
    w, c, tilt, rR, rF = 1.02, 0.08, np.pi / 10, 0.3, 0.35
    m = ld.Mechanism("bicycle", gravity=(0, 0, G))
    m.add_body("B", ld.Inertia(85.0, (0.3, 0, -0.9), {"xx": 9.2, "yy": 11.0, "zz": 2.8, "xz": 2.4}))
    m.add_body("R", ld.Inertia(2.0, (0, 0, -rR), {"xx": 0.0603, "yy": 0.12, "zz": 0.0603}))
    m.add_body("H", ld.Inertia(4.0, (0.9, 0, -0.7), {"xx": 0.05892, "yy": 0.06, "zz": 0.00708, "xz": -0.00756}))
    m.add_body("F", ld.Inertia(3.0, (w, 0, -rF), {"xx": 0.1405, "yy": 0.28, "zz": 0.1405}))
    m.add_joint("frame", ld.Free(), "ground", "B", at=(0, 0, -rR))
    m.add_joint("rear", ld.Revolute(axis=(0, 1, 0)), "B", "R", at=(0, 0, -rR))
    m.add_joint("steer", ld.Revolute(axis=(np.sin(tilt), 0, np.cos(tilt))), "B", "H", at=(w + c, 0, 0))
    m.add_joint("front", ld.Revolute(axis=(0, 1, 0)), "H", "F", at=(w, 0, -rF))
    for wheel, x, r in (("R", 0.0, rR), ("F", w, rF)):
        m.add_constraint(f"rolls_{wheel}", ld.constraints.Rolling(
            on="ground", body=wheel, normal=(0, 0, -1), through=(0, 0, 0), centre=(x, 0, -r), radius=r,
            axis=(0, 1, 0)))  # fmt: skip
    return m
