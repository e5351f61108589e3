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
    points = [(float(p[0]), float(p[1]), 0.0) for p in pose(lengths, angle, side)]
    A, B, C, D = points
    m = ld.Mechanism("linkage", gravity=(0, -9.81, 0))
    rods = {"crank": (A, B), "coupler": (B, C), "rocker": (D, C)}
    crank, coupler, rocker = (
        m.add_body(name, ld.Inertia.rod(mass=mass, start=start, end=end))
        for mass, (name, (start, end)) in zip(masses, rods.items(), strict=True)
    )
    pin = ld.Revolute(axis=(0, 0, 1))
    m.add_joint("A", pin, m.ground, crank, at=A)
    m.add_joint("B", pin, crank, coupler, at=B)
    m.add_joint("C", pin, coupler, rocker, at=C)
    m.add_joint("D", pin, m.ground, rocker, at=D)
    return m, points


def moved(run, points):
    """Paths (n, 2) of the pins B and C of a run."""
    B = run.point("crank", at=points[1]).values[:, :2]
    C = run.point("coupler", at=points[2]).values[:, :2]
    return B, C


def sides(run, points):
    """Side of the line BD on which C is, at every output: +1 or -1, the circuit of a four-bar whose circuits differ."""
    B, C = moved(run, points)
    D = np.array(points[3][:2])
    b, c = D - B, C - B
    return np.sign(b[:, 0] * c[:, 1] - b[:, 1] * c[:, 0])
