"""Four-bars with given lengths, and where their points are: shared by tests of singular poses."""

from __future__ import annotations

import numpy as np

import loopdyn as ld


def pose(lengths, angle, side):
    """Pins A, B, C, D of a planar four-bar (ground, crank, coupler, rocker) at a crank angle; side +1 or -1 of BD."""
    ground, crank, coupler, rocker = lengths
    A, D = np.zeros(2), np.array([ground, 0.0])
    B = crank * np.array([np.cos(angle), np.sin(angle)])
    line = D - B
    long = np.hypot(*line)
    along = (coupler**2 - rocker**2 + long**2) / (2.0 * long)
    across = np.sqrt(max(coupler**2 - along**2, 0.0))
    e = line / long
    return A, B, B + along * e + side * across * np.array([-e[1], e[0]]), D


def linkage(lengths, angle, side, masses=(1.0, 2.0, 1.5)):
    """A four-bar of slender rods that is closed at its reference pose."""
    m = ld.Mechanism("linkage", gravity=(0, -9.81, 0))
    return m, add_linkage(m, lengths, angle, side, masses)


def add_linkage(m, lengths, angle, side, masses=(1.0, 2.0, 1.5), tag="", crank=None):
    """Add a four-bar to a mechanism, on a crank that is there or with one of its own; its pins A, B, C, D."""
    points = [(float(p[0]), float(p[1]), 0.0) for p in pose(lengths, angle, side)]
    A, B, C, D = points
    rods = {"crank": (A, B), "coupler": (B, C), "rocker": (D, C)}
    made = {
        name: m.add_body(name + tag, ld.Inertia.rod(mass=mass, start=start, end=end))
        for mass, (name, (start, end)) in zip(masses, rods.items(), strict=True)
        if name != "crank" or crank is None
    }
    pin = ld.Revolute(axis=(0, 0, 1))
    if crank is None:
        m.add_joint(f"A{tag}", pin, m.ground, made["crank"], at=A)
    m.add_joint(f"B{tag}", pin, crank or made["crank"], made["coupler"], at=B)
    m.add_joint(f"C{tag}", pin, made["coupler"], made["rocker"], at=C)
    m.add_joint(f"D{tag}", pin, m.ground, made["rocker"], at=D)
    return points


def moved(run, points, tag=""):
    """Paths (n, 2) of the pins B and C of a run."""
    coupler = f"coupler{tag}"
    B, C = (run.point(coupler, at=points[k])["position"].values[:, :2] for k in (1, 2))
    return B, C


def sides(run, points, tag=""):
    """Side of the line BD on which C is, at every output: +1 or -1, the circuit of a four-bar whose circuits differ."""
    B, C = moved(run, points, tag)
    D = np.array(points[3][:2])
    b, c = D - B, C - B
    return np.sign(b[:, 0] * c[:, 1] - b[:, 1] * c[:, 0])
