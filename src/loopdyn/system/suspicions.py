"""Legal but suspicious values in a model, probably mistakes in units, numbers or names."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.model.inertia import MassProperties
from loopdyn.model.mechanism import GROUND, Mechanism
from loopdyn.quantities.units import Units

Array = NDArray[np.float64]


class Placed(NamedTuple):
    """Joints of a model: names, rows of their bodies (joints, 2), world points (joints, 3) at the reference pose."""

    names: Sequence[str]
    ends: NDArray[np.int64]
    at: Array


# m/s^2: gravity of the earth; more than that is likely mm/s^2 (the sun has 274, drop towers go to 500 g), less than
# the other is likely m/s^2 in a model that declares mm/s^2 (Ceres has 0.28, Phobos 0.006).
EARTH, STRONG_GRAVITY, WEAK_GRAVITY = 9.80665, 1000.0, 0.02
LONG = 50.0  # m between two joints of one body, where no unit of length is declared: likely mm
FAR = 100.0  # multiple of the usual distance of a joint from the mass centre of its body
AT_CENTRE = 1e-9  # fraction of the largest distance of a joint from a mass centre that is zero up to rounding
HEAVY, LIGHT = 1e7, 1e-12  # kg: a bucket-wheel excavator has 1.4e7, a comb drive 1e-10


def suspicions(
    units: Units,
    names: Sequence[str],
    n_bases: int,
    centres: Array,
    masses: Sequence[MassProperties],
    joints: Placed,
) -> Iterator[str]:
    """Warnings about suspicious numbers.

    Parameters
    ----------
    units : Units
    names : list of str
        Bodies, the bases first.
    n_bases : int
    centres : (bodies, 3) array
        Mass centres in world coordinates at the reference pose, m.
    masses : list
        Mass properties of the bodies.
    joints : Placed
    """
    yield from _lengths(units, names, n_bases, joints)
    yield from _far_joints(units, names, n_bases, centres, masses, joints)
    yield from _masses(units, names, n_bases, masses)


def gravity_note(gravity: Array) -> Iterator[str]:
    """Warning about an implausible gravity, m/s^2."""
    strength = math.hypot(*gravity.tolist())
    if strength > STRONG_GRAVITY:
        yield (
            f"gravity is {strength:g} m/s^2, {strength / EARTH:.0f} times that of the earth. If mm/s^2 is meant, "
            "write units: {acceleration: mm/s^2}."
        )
    elif 0.0 < strength < WEAK_GRAVITY:
        yield (
            f"gravity is {strength:g} m/s^2, {strength / EARTH:.1g} times that of the earth. Check it against "
            "units: {acceleration: ...}; without that, gravity is in m/s^2."
        )


def _lengths(units: Units, names: Sequence[str], n_bases: int, joints: Placed) -> Iterator[str]:
    if "length" in units.model_fields_set or not joints.names or float(joints.at.max() - joints.at.min()) <= LONG:
        return
    low, high = np.full((len(names), 3), np.inf), np.full((len(names), 3), -np.inf)  # box of the joints of each body
    for end in joints.ends.T:
        np.minimum.at(low, end, joints.at)
        np.maximum.at(high, end, joints.at)
    length = (high - low).max(axis=1)
    length[:n_bases] = 0.0
    longest = float(length.max())
    if longest > LONG:
        body = int(np.flatnonzero(length == longest)[-1])
        yield (
            f"body '{names[body]}' is {longest:.4g} m from joint to joint, and no unit of length is declared. If mm "
            "are meant, write units: {length: mm}; if not, units: {length: m}."
        )


def _far_joints(
    units: Units, names: Sequence[str], n_bases: int, centres: Array, masses: Sequence[MassProperties], joints: Placed
) -> Iterator[str]:
    heavy = np.array([mass > 0.0 for mass, _, _ in masses], bool)
    heavy[:n_bases] = False
    arm = joints.at[:, None] - centres[joints.ends]
    gaps = np.where(heavy[joints.ends], np.sqrt(np.einsum("nij,nij->ni", arm, arm)), np.inf)
    distance = np.minimum(gaps[:, 0], gaps[:, 1])
    known = np.flatnonzero(np.isfinite(distance))
    if len(known) < 3:
        return
    usual = statistics.median(distance[known].tolist())  # of few numbers faster than NumPy's
    if usual < AT_CENTRE * distance[known].max():  # most joints are at mass centres: there is no usual distance
        return
    for k in known[distance[known] > FAR * usual].tolist() if usual > 0.0 else ():
        d = float(distance[k])
        away = f"{d / units.factor('length'):.4g} {units.length}"
        bodies = " and ".join(f"'{names[b]}'" for b in joints.ends[k] if b >= n_bases)
        yield (
            f"joint '{joints.names[k]}' is {away} from the mass centre of {bodies}, {d / usual:.0f} times "
            "as far as joints of this mechanism usually are. Check where it is placed."
        )


def _masses(units: Units, names: Sequence[str], n_bases: int, masses: Sequence[MassProperties]) -> Iterator[str]:
    for name, (mass, _, _) in list(zip(names, masses, strict=True))[n_bases:]:
        if mass > HEAVY or 0.0 < mass < LIGHT:
            found = f"{mass / units.factor('mass'):.4g} {units.mass}"
            yield f"body '{name}' has a mass of {found}, which no machine has. Check its mass, or its density."


def adrift(m: Mechanism, names: Sequence[str], n_bases: int, joints: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Warnings about bodies not connected to the ground, in a mechanism that is."""
    row = {name: k for k, name in enumerate(names)}
    leader = [0 if k < n_bases else k for k in range(len(names))]  # of the same group, a lower row; bases are held

    def group(body: int) -> int:
        """Lowest row of the bodies connected with this one; the way to it is halved for the next call."""
        while leader[body] != body:
            leader[body] = leader[leader[body]]
            body = leader[body]
        return body

    def join(bodies: Sequence[int]) -> None:
        groups = {group(b) for b in bodies}
        for g in groups:
            leader[g] = min(groups)

    for ends in joints:
        join(ends)
    standing = any(group(k) == 0 for k in range(n_bases, len(names)))
    for part in (*m.constraints.values(), *m.forces.values()):
        join([row[b] for b in part.bodies() if b in row])
    adrift: dict[int, list[str]] = {}
    for k in range(n_bases, len(names)):
        if group(k) != 0:
            adrift.setdefault(group(k), []).append(names[k])
    held_by_function = bool(m.user_constraints or m.user_forces)
    for bodies in adrift.values() if standing and not held_by_function else ():
        if len(bodies) == 1:
            yield f"body '{bodies[0]}' has no joint and moves freely. Join it if that is not intended."
        else:
            listed = ", ".join(f"'{b}'" for b in bodies[:6]) + (", ..." if len(bodies) > 6 else "")
            yield (
                f"bodies {listed} are not connected to '{GROUND}' and move freely. Join one of them if that is not "
                "intended."
            )
