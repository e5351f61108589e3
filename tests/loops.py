"""For tests of the linear-time solver: loops in loops, loops across loops, a joint of each kind in a loop."""

from __future__ import annotations

import numpy as np
from tests.independent import random_inertia, random_joint

import loopdyn as ld
from loopdyn.loops.elimination import layout
from loopdyn.loops.elimination.solver import Elimination


def rod(start: tuple[float, ...], end: tuple[float, ...], mass: float = 1.0) -> ld.Inertia:
    """With thickness, so that it has inertia against every motion."""
    return ld.Inertia.rod(mass=mass, start=start, end=end, radius=0.03)


def nested(depth: int = 3) -> ld.Mechanism:
    """A four-bar with a four-bar inside, and so on: each pair of links that share a pin carries the next pair.

    Plane, one degree of freedom; 1 + `depth` loops with three redundant rows each.
    """
    m = ld.Mechanism("nested", gravity=(0, -9.81, 0))
    pin = ld.Revolute(axis=(0, 0, 1))
    A, B, C, D = (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (2.0, 1.6, 0.0), (1.8, 0.0, 0.0)
    for name, start, end in (("crank", A, B), ("coupler", B, C), ("rocker", C, D)):
        m.add_body(name, rod(start, end))
    m.add_joint("A", pin, m.ground, "crank", at=A)
    m.add_joint("B", pin, "crank", "coupler", at=B)
    m.add_joint("C", pin, "coupler", "rocker", at=C)
    m.add_joint("D", pin, m.ground, "rocker", at=D)
    first, second = "crank", "coupler"
    corner, ends = np.array(B), (np.array(A), np.array(C))
    for k in range(depth):
        p, q = (corner + 0.6 * (end - corner) for end in ends)
        meet = p + q - corner + 0.1 * np.array([0.3, -0.5, 0.0])  # opposite the corner, nearly a parallelogram
        P, Q, R = (tuple(np.round(x, 4).tolist()) for x in (p, q, meet))
        m.add_body(f"p{k}", rod(P, R, 0.7))
        m.add_body(f"q{k}", rod(R, Q, 0.5))
        m.add_joint(f"P{k}", pin, first, f"p{k}", at=P)
        m.add_joint(f"Q{k}", pin, second, f"q{k}", at=Q)
        m.add_joint(f"R{k}", pin, f"p{k}", f"q{k}", at=R)
        first, second, corner, ends = f"p{k}", f"q{k}", meet, (p, q)
    return m


def crossed() -> ld.Mechanism:
    """Four posts on universal joints, each joined with each of the others by a rod with a universal joint and a ball.

    Six loops, every one of them linked with all others; 4 * 2 - 6 = 2 degrees of freedom, nothing redundant.
    """
    m = ld.Mechanism("crossed", gravity=(0, 0, -9.81))
    feet = [(0.0, 0.0, 0.0), (1.0, 0.1, 0.05), (0.9, 1.1, -0.1), (-0.1, 0.8, 0.08)]
    tips = [(0.1, 0.05, -1.0), (1.1, 0.0, -1.2), (1.0, 1.0, -0.9), (-0.2, 0.9, -1.1)]
    for i, (foot, tip) in enumerate(zip(feet, tips, strict=True)):
        m.add_body(f"post{i}", rod(foot, tip))
        m.add_joint(f"U{i}", ld.Universal(axis1=(1, 0.1 * i, 0), axis2=(0, 1, 0.1 * i)), m.ground, f"post{i}", at=foot)
    for i in range(4):
        for j in range(i + 1, 4):
            name = f"{i}{j}"
            # fastened to the posts at heights of their own
            a, b = (
                tuple(np.round(np.array(feet[k]) + share * np.subtract(tips[k], feet[k]), 4).tolist())
                for k, share in ((i, 0.5 + 0.1 * j), (j, 0.9 - 0.15 * i))
            )
            m.add_body(f"rod{name}", rod(a, b, 0.4))
            m.add_joint(
                f"V{name}", ld.Universal(axis1=(0.2, 1, 0.3), axis2=(0.1, 0.2, 1)), f"post{i}", f"rod{name}", at=a
            )
            m.add_joint(f"S{name}", ld.Spherical(), f"rod{name}", f"post{j}", at=b)
    return m


def under_actuated() -> ld.Mechanism:
    """Parallel manipulator with more freedoms than motors, our reading of Fig. 7b of Anderson and Critchley (2003).

    A plate on three legs in a plane. Leg 0 has two links, legs 1 and 2 have three, pins `A` at the feet, `B`, `C`
    between links, `E` at the plate; 3 + 4 + 4 pins less 2 * 3 = 5 degrees of freedom, three motors at the feet, and
    three redundant rows in each of the two loops.
    """
    m = ld.Mechanism("under_actuated", gravity=(0, -9.81, 0))
    feet = [(0.0, 0.0, 0.0), (1.6, -0.1, 0.0), (0.9, 1.7, 0.0)]
    plate = [(0.6, 0.6, 0.0), (1.0, 0.55, 0.0), (0.85, 0.9, 0.0)]
    knees = [[(0.1, 0.5, 0.0)], [(1.7, 0.3, 0.0), (1.35, 0.5, 0.0)], [(0.55, 1.5, 0.0), (0.7, 1.15, 0.0)]]
    pin = ld.Revolute(axis=(0, 0, 1))
    m.add_body("plate", ld.Inertia.planar(mass=1.2, com=(0.8, 0.7, 0.0), izz=0.04))
    for k in range(3):
        points, before = [feet[k], *knees[k], plate[k]], m.ground
        for n, name in enumerate("ABC"[: len(points) - 1]):
            m.add_body(f"{name.lower()}{k}", rod(points[n], points[n + 1], 0.6 + 0.1 * k))
            m.add_joint(f"{name}{k}", pin, before, f"{name.lower()}{k}", at=points[n])
            before = f"{name.lower()}{k}"
        m.add_joint(f"E{k}", pin, before, "plate", at=plate[k])
        m.add_motor(f"motor{k}", f"A{k}", f"{1.5 - k} - 0.1*speed")
    return m


def loop_with(kind: str, seed: int = 3) -> ld.Mechanism:
    """Chain of four bodies on universal joints, the joint `K` of this kind in its middle, its end held by a rod.

    Names along the chain: `b0`, `b1`, K, `b2`, `b3`. Loads of all kinds act on K's coordinates.
    """
    rng = np.random.default_rng(seed)
    m = ld.Mechanism(f"loop_with_{kind}", gravity=(1.0, -2.0, -9.0))
    places = [tuple((np.array([0.6 * k, 0.1, 0.0]) + 0.2 * rng.normal(size=3)).round(4).tolist()) for k in range(5)]
    last = m.ground
    for k in range(4):
        centre = 0.5 * (np.array(places[k]) + places[k + 1])
        m.add_body(f"b{k}", random_inertia(rng, tuple(centre.tolist())))
        spec = random_joint(kind, rng) if k == 2 else random_joint("universal", rng)
        m.add_joint("K" if k == 2 else f"U{k}", spec, last, f"b{k}", at=places[k])
        last = f"b{k}"
    m.add_constraint(
        "end", ld.constraints.Distance(body1=last, body2=m.ground, point1=places[4], point2=(1.5, 1.0, 0.5))
    )
    return m


def add_loads(m: ld.Mechanism, joint: str) -> ld.Mechanism:
    """A motor, a spring and friction on each coordinate of a joint that is an angle or a slide."""
    spec = m.joints[joint]
    if "number" in spec.dimensions:
        return m
    for label, dimension in zip(spec.labels(joint)[0], spec.dimensions, strict=True):
        name = label.replace(".", "_")
        law = "2 + 1.5*cos(t) - 0.4*position - 0.2*speed"
        m.add_motor(f"motor_{name}", label, **({"torque": law} if dimension == "angle" else {"force": law}))
        m.add_force(f"spring_{name}", ld.forces.JointSpring(joint=label, stiffness=7.0, damping=0.3, rest=0.2))
        m.add_force(f"friction_{name}", ld.forces.JointFriction(joint=label, viscous=0.3, coulomb=0.4, transition=0.1))
    return m


def poison(e: Elimination) -> None:
    """Write NaN to all of the work array except inputs: external loads, turns of angles, floors and least pivot."""
    given_numbers = e.views.diagnostics[layout.WEAKEST_PIVOT :].copy()
    e.arrays[2][:] = np.nan
    for given in (e.work.tau, e.work.near, e.views.floor):
        given[:] = 0.0
    e.views.diagnostics[layout.WEAKEST_PIVOT :] = given_numbers
