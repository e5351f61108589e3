"""Random mechanisms for tests: any tree, loops that close by construction, every joint type, generic orientation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.forces import Actuator, AppliedForce, Bushing, JointFriction, JointSpring, Motor, SpringDamper
from loopdyn.joints import (
    Cylindrical,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Rotation,
    Spherical,
    Translational,
    Universal,
    Weld,
)
from loopdyn.library._common import at_least_one, vec3
from loopdyn.model.inertia import Inertia
from loopdyn.model.mechanism import GROUND, Mechanism

Array = NDArray[np.float64]
Generator = np.random.Generator

# Smallest singular value of the rows of a loop orthogonal to those of the others (lengths are of order one).
INDEPENDENT = 0.02
DIGITS = 6  # of all lengths, axes and inertias: files can be read and are the same everywhere
TREES = 20  # to be tried
TRIES = 50  # to place one loop on a tree


def random_mechanism(
    seed: int,
    bodies: int = 8,
    loops: int = 2,
    joints: Sequence[str] | None = None,
    *,
    redundant: int = 0,
    floating: bool = False,
    forces: bool = False,
) -> Mechanism:
    """Random mechanism: the same seed and options give the same mechanism.

    A tree of bodies grows from the ground, then further joints close loops. All joints are placed in the world at the
    reference pose, so that every loop is closed there. Places, axes, mass properties and gravity are generic, and
    half of the joints have parent and child the other way round. Loops are placed where their rows are well
    independent of each other at the reference pose and at least one freedom remains.

    Parameters
    ----------
    seed : int
        Seed of the random numbers.
    bodies : int
        Number of bodies.
    loops : int
        Number of joints that close a loop, in addition to the doubled ones; 0 gives a tree.
    joints : list of str, optional
        Types to draw from, as in a model file, e.g. ``["revolute", "spherical"]``; all by default.
    redundant : int
        Number of joints that are doubled, like the two hinges of a door: their rows are redundant at every pose.
    floating : bool
        Whether nothing is fixed to the ground; the first body is then free.
    forces : bool
        Whether one force of each kind acts.

    Raises
    ------
    ValueError
        If the tree has too few freedoms for so many loops, or a joint type is unknown.

    Examples
    --------
    >>> m = random_mechanism(7, bodies=6, loops=1, redundant=1)
    >>> len(m.bodies), len(m.joints)
    (6, 8)
    """
    at_least_one("bodies", bodies)
    types = list(joints) if joints is not None else list(MAKERS)
    for name in types:
        if name not in MAKERS:
            raise LoopdynError(f"unknown joint type '{name}'; known: {', '.join(MAKERS)}")
    rng = np.random.default_rng(seed)
    for _ in range(TREES):
        draft = _Draft(rng, types)
        draft.grow_tree(bodies, floating)
        if all(draft.close_loop(f"loop{k + 1}", floating) for k in range(loops)):
            draft.double(redundant)
            return draft.mechanism(f"random_{seed}", forces)
    raise LoopdynError(f"no room for {loops} loops: take fewer, more bodies, or joints with more freedoms")


# ------------------------------------------------------------------------------------------ joints at random


def _direction(rng: Generator) -> Array:
    v = rng.normal(size=3)
    unit: Array = v / np.linalg.norm(v)
    return np.round(unit, DIGITS)


def _near(rng: Generator, point: Array | float, spread: float) -> Array:
    at: Array = point + spread * rng.normal(size=3)
    return np.round(at, DIGITS)


def _uniform(rng: Generator, low: float, high: float) -> float:
    return round(rng.uniform(low, high), DIGITS)


def _turns(*axes: Array) -> Array:
    return np.array([[*a, 0, 0, 0] for a in axes])


def _slides(*axes: Array) -> Array:
    return np.array([[0, 0, 0, *a] for a in axes])


def _revolute(rng: Generator) -> tuple[Joint, Array]:
    a = _direction(rng)
    return Revolute(axis=vec3(a)), _turns(a)


def _prismatic(rng: Generator) -> tuple[Joint, Array]:
    a = _direction(rng)
    return Prismatic(axis=vec3(a)), _slides(a)


def _helical(rng: Generator) -> tuple[Joint, Array]:
    a, pitch = _direction(rng), _uniform(rng, 0.05, 0.3) * (1 if rng.random() < 0.5 else -1)
    return Helical(axis=vec3(a), pitch=pitch), _turns(a) + pitch * _slides(a)


def _cylindrical(rng: Generator) -> tuple[Joint, Array]:
    a = _direction(rng)
    return Cylindrical(axis=vec3(a)), np.vstack([_turns(a), _slides(a)])


def _universal(rng: Generator) -> tuple[Joint, Array]:
    a = _direction(rng)
    b = _direction(rng)
    while np.linalg.norm(np.cross(a, b)) < 0.5:
        b = _direction(rng)
    return Universal(axis1=vec3(a), axis2=vec3(b)), _turns(a, b)


def _planar(rng: Generator) -> tuple[Joint, Array]:
    n = _direction(rng)
    x = np.round(np.cross(n, _direction(rng)), DIGITS)
    return Planar(normal=vec3(n), x=vec3(x)), np.vstack([_slides(x, np.cross(n, x)), _turns(n)])


def _translational(rng: Generator) -> tuple[Joint, Array]:
    return Translational(), _slides(*np.eye(3))


def _spherical(rng: Generator) -> tuple[Joint, Array]:
    return Spherical(), _turns(*np.eye(3))


def _free(rng: Generator) -> tuple[Joint, Array]:
    return Free(), np.eye(6)


def _weld(rng: Generator) -> tuple[Joint, Array]:
    return Weld(), np.zeros((0, 6))


# A joint of each type, and its freedoms: twists of the child against the parent at the joint, world axes,
# angular part first.
MAKERS: dict[str, Callable[[Generator], tuple[Joint, Array]]] = {
    "revolute": _revolute,
    "prismatic": _prismatic,
    "helical": _helical,
    "cylindrical": _cylindrical,
    "universal": _universal,
    "planar": _planar,
    "translational": _translational,
    "spherical": _spherical,
    "free": _free,
    "weld": _weld,
}


def _moved(twists: Array, r: Array) -> Array:
    """Twists (k, 6) seen from a point displaced by r: v' = v + omega x r."""
    return np.hstack([twists[:, :3], twists[:, 3:] + np.cross(twists[:, :3], r)])


# ---------------------------------------------------------------------------------------- growing a mechanism


@dataclass
class _Placed:
    """A joint between bodies a and b at a world point."""

    name: str
    joint: Joint
    a: str
    b: str
    at: Array


@dataclass
class _Draft:
    """A mechanism while it grows, with the freedoms of its tree and the rows of its loops at the reference pose."""

    rng: Generator
    types: list[str]
    names: list[str] = field(default_factory=lambda: [GROUND])
    centres: dict[str, Array] = field(default_factory=lambda: {GROUND: np.zeros(3)})
    placed: list[_Placed] = field(default_factory=list)
    # For each body: its parent, the index of its first freedom, its freedoms as twists at the world origin.
    tree: dict[str, tuple[str, int, Array]] = field(default_factory=dict)
    freedoms: int = 0
    basis: Array = field(default_factory=lambda: np.zeros((0, 0)))  # of the rows of all loops, orthonormal

    def add(self, name: str, centre: Array, parent: str, twists: Array) -> None:
        """Add a body to the tree."""
        self.names.append(name)
        self.centres[name] = centre
        self.tree[name] = (parent, self.freedoms, twists)
        self.freedoms += len(twists)

    def place(self, name: str, joint: Joint, a: str, b: str, at: Array) -> None:
        """Add a joint, in half of the cases with parent and child the other way round."""
        if self.rng.random() < 0.5:
            a, b = b, a
        self.placed.append(_Placed(name, joint, a, b, at))

    def grow_tree(self, bodies: int, floating: bool) -> None:
        """Join each body to one of those before it, or to the ground."""
        if floating:  # the first body is free without a joint, and no other one is joined to the ground
            self.add("body1", _near(self.rng, 0.0, 1.0), GROUND, np.eye(6))
        for k in range(len(self.names), bodies + 1):
            parent = self.names[self.rng.integers(int(floating), k)]
            joint, twists = MAKERS[self.types[self.rng.integers(len(self.types))]](self.rng)
            at = _near(self.rng, self.centres[parent], 0.4)
            self.add(f"body{k}", _near(self.rng, at, 0.4), parent, _moved(twists, -at))
            self.place(f"J{k}", joint, parent, f"body{k}", at)

    def close_loop(self, name: str, floating: bool) -> bool:
        """Add one more joint where its rows are independent of those of the other loops; False if none was found."""
        bodies = self.names[int(floating) :]
        types = [t for t in self.types if t != "free"]  # would not constrain anything
        for _ in range(TRIES if types and len(bodies) > 1 else 0):
            a, b = (bodies[k] for k in self.rng.choice(len(bodies), size=2, replace=False))
            at = _near(self.rng, (self.centres[a] + self.centres[b]) / 2, 0.3)
            joint, twists = MAKERS[types[self.rng.integers(len(types))]](self.rng)
            if self.take(self.loop_rows(a, b, at, twists)):
                self.place(name, joint, a, b, at)
                return True
        return False

    def loop_rows(self, a: str, b: str, at: Array, twists: Array) -> Array:
        """Motion of b relative to a at the joint, in the directions that the joint constrains: (rows, freedoms)."""
        relative = np.zeros((self.freedoms, 6))
        for end, sign in ((b, 1), (a, -1)):
            while end != GROUND:
                end, k, own = self.tree[end]
                relative[k : k + len(own)] += sign * own
        forbidden = np.linalg.svd(twists)[2][len(twists) :] if len(twists) else np.eye(6)
        rows: Array = forbidden @ _moved(relative, at).T
        return rows

    def take(self, rows: Array) -> bool:
        """Add rows to the basis if they are independent of it and leave a freedom."""
        basis = self.basis if len(self.basis) else np.zeros((0, self.freedoms))
        if len(basis) + len(rows) >= self.freedoms:
            return False
        left = rows - rows @ basis.T @ basis
        left -= left @ basis.T @ basis  # repeated to remove rounding
        sizes, directions = np.linalg.svd(left, full_matrices=False)[1:]
        if sizes[-1] < INDEPENDENT:
            return False
        self.basis = np.vstack([basis, directions])
        return True

    def double(self, count: int) -> None:
        """Double joints: hinges and slides further along their axis, others in the same place."""
        candidates = [p for p in self.placed if not isinstance(p.joint, Free)]
        if count > len(candidates):
            raise LoopdynError(f"redundant = {count}: there are only {len(candidates)} joints to double")
        for k in self.rng.choice(len(candidates), size=count, replace=False) if count else []:
            p = candidates[k]
            axis = np.array(getattr(p.joint, "axis", (0.0, 0.0, 0.0)))
            at = p.at + round(self.rng.uniform(0.2, 0.5), 2) * axis  # exactly on the axis
            # parent and child as they are: else the axes of a universal joint would change bodies
            self.placed.append(_Placed(f"{p.name}_twin", p.joint, p.a, p.b, at))

    def mechanism(self, name: str, forces: bool) -> Mechanism:
        """Mechanism with all placed elements, in random order."""
        m = Mechanism(name, gravity=10 * _direction(self.rng))
        for k in self.rng.permutation(len(self.names) - 1) + 1:
            m.add_body(self.names[k], _inertia(self.rng, self.centres[self.names[k]]))
        for k in self.rng.permutation(len(self.placed)):
            p = self.placed[k]
            m.add_joint(p.name, p.joint, p.a, p.b, at=p.at)
        if forces:
            _add_forces(m, self.rng, self.centres)
        return m


def _inertia(rng: Generator, centre: Array) -> Inertia:
    """Mass properties of a possible body: second moments of mass are positive in every direction."""
    mass = _uniform(rng, 0.5, 3.0)
    A = rng.normal(size=(3, 3))
    second = np.round(mass * (0.02 * A @ A.T + 0.005 * np.eye(3)), DIGITS)
    matrix = np.round(np.trace(second) * np.eye(3) - second, DIGITS)
    return Inertia(mass, _near(rng, centre, 0.1), matrix)


# ------------------------------------------------------------------------------------------ forces at random


def _add_forces(m: Mechanism, rng: Generator, centres: dict[str, Array]) -> None:
    """One force of each kind, on bodies and joint coordinates drawn at random."""
    names = list(centres)

    def ends() -> dict[str, Any]:
        a, b = rng.choice(names, size=2, replace=False).tolist()
        return {"body1": a, "body2": b}

    def points() -> dict[str, Any]:
        two = ends()
        places = {f"point{k}": vec3(_near(rng, centres[two[f"body{k}"]], 0.2)) for k in (1, 2)}
        return two | places

    def somewhere() -> tuple[float, float, float]:
        return vec3(_near(rng, 0.0, 1.0))

    m.add_force(
        None, SpringDamper(**points(), stiffness=_uniform(rng, 5, 50), damping=_uniform(rng, 0.5, 3), length=0.4)
    )
    m.add_force(None, Actuator(**points(), force="3*cos(2*t) + 0.5*length - 0.3*speed"))
    coefficients = {"stiffness": 40.0, "damping": 2.0, "angular_stiffness": 5.0, "angular_damping": 0.5}
    each: dict[str, Any] = {key: [_uniform(rng, 0.1 * c, c) for _ in range(3)] for key, c in coefficients.items()}
    m.add_force(None, Bushing(**ends(), at=somewhere(), rotation=Rotation(axis=somewhere(), angle=1.0), **each))
    push, twist = somewhere(), somewhere()
    m.add_force(
        None,
        AppliedForce(
            body=names[rng.integers(1, len(names))],
            at=somewhere(),
            force=(push[0], "2*sin(3*t)", push[2]),
            torque=(twist[0], twist[1], "0.5*t"),
            axes="world" if rng.random() < 0.5 else "body",
        ),
    )
    _add_joint_forces(m, rng)


def _add_joint_forces(m: Mechanism, rng: Generator) -> None:
    """Spring, friction and motor on coordinates that are an angle or a slide, if there are any."""
    labels = [
        (label, dimension)
        for name, joint in m.joints.items()
        for label, dimension in zip(joint.labels(name)[0], joint.dimensions, strict=True)
        if "number" not in joint.dimensions  # no quaternion
    ]
    if not labels:
        return
    (spring, _), (friction, _), (motor, dimension) = (labels[k] for k in rng.integers(len(labels), size=3))
    m.add_force(
        None, JointSpring(joint=spring, stiffness=_uniform(rng, 1, 10), damping=_uniform(rng, 0.1, 1), rest=0.2)
    )
    m.add_force(None, JointFriction(joint=friction, viscous=_uniform(rng, 0.1, 0.5), coulomb=0.4, transition=0.1))
    law = "1.5*cos(t) - 0.4*position - 0.2*speed"
    m.add_force(None, Motor(joint=motor, torque=law) if dimension == "angle" else Motor(joint=motor, force=law))
