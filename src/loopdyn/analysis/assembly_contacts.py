"""A closed pose beyond contacts is moved to the nearest pose at which no gap is below zero.

The nearest pose is that of least distance in the mass metric M of the first one, q0, with loops closed and targets
held. Newton's method for quadratic programmes finds it: at a pose q the step x solves

    min (d + x)^T M (d + x)/2,    J x = -phi,    G x >= -g,

with d the displacement from q0 so far and g the gaps, whose gradients are G. With x = x0 + N y, J N = 0, this is a
complementarity problem in the multipliers of the gaps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly_closure import Held, Target, flipped, outside_limits
from loopdyn.errors import AssemblyError, SingularityError
from loopdyn.loops.complementarity import solve_lcp
from loopdyn.loops.rank import of_matrix
from loopdyn.system.sides import all_closed, sides_of
from loopdyn.system.system import State, System
from loopdyn.thresholds import AT_LIMIT, CLOSED
from loopdyn.tree.functions import difference, increment, open_tree_mass_matrix, terms
from loopdyn.tree.massless_motions import motions_without_inertia

Array = NDArray[np.float64]

STEPS = 100  # most steps; each is quadratically nearer once the gaps that touch are known
LONGEST = 0.3  # natural units: longest step, so that gaps are nearly linear in it
SETTLED = 1e-10  # natural units: a step of this size ends the search
INDEPENDENT = 1e-9  # part of a gap's gradient that loops and targets leave movable, below which they hold the gap


def outside_contacts(system: System, pose: State, targets: Sequence[Target]) -> tuple[State, str] | None:
    """Nearest pose outside all rigid contacts, and a note; None if the pose is outside already.

    Raises AssemblyError if the targets leave poses, but none outside is found. Where they leave none, as values that
    are given are kept, the note says what is passed.
    """
    passed = _passed(system, pose)
    if not passed:
        return None
    names = ", ".join(f"'{name}', by {depth}" for name, depth in passed.items())
    held = Held(system, pose.t, targets)
    if not held.free.any() or _moves(held, pose.q).shape[1] == 0:
        return pose, f"as given it is beyond {names}, where no run can start"
    found = _nearest(system, pose, held)
    if found is None or flipped(system, found) or outside_limits(system, found, targets):
        fixed = f" with {', '.join(k.label for k in targets)} as given" if targets else ""
        raise AssemblyError(
            f"the mechanism closes{fixed}, but the pose is beyond {names}, and no pose outside was found near it. Give "
            "other values or start elsewhere with near=..., or assemble with limits=False.",
            nearest=pose,
        )
    return found, f"moved to the nearest pose outside {names}"


def _passed(system: System, pose: State) -> dict[str, str]:
    """Contacts beyond which a pose is, and the depth in the declared unit."""
    closed, sides = all_closed(system), sides_of(system)
    found: dict[str, tuple[float, str]] = {}
    phi = terms(closed, State(pose.t, pose.q, np.zeros(system.nv))).phi
    for side in sides:
        k = closed.constraint_rows.index(side.name)
        gap, of = side.sign * float(phi[k]), closed.row_dimensions[k]
        if gap < -AT_LIMIT * closed.row_units[k] and -gap > found.get(side.element, (0.0, ""))[0]:
            found[side.element] = -gap, of
    units = system.units
    return {name: f"{x / units.factor(of):.3g} {units.symbol(of)}" for name, (x, of) in found.items()}


def _moves(held: Held, q: Array) -> Array:
    """Basis of the motions that loops and targets leave, in natural units; rows of speeds that are held are zero."""
    A = (held.dense_rows(q)[1] * held.system.speed_units)[:, held.free]
    Vt = np.linalg.svd(A, full_matrices=True)[2]
    N = np.zeros((held.system.nv, int(held.free.sum()) - of_matrix(A).count))
    N[held.free] = Vt[of_matrix(A).count :].T
    return N


def _nearest(system: System, pose: State, held: Held) -> State | None:
    """Nearest closed pose with no gap below zero; None if none is found."""
    unit = system.speed_units
    M = open_tree_mass_matrix(system, pose) * np.outer(unit, unit)
    closed, sides = all_closed(system), sides_of(system)
    rows = [closed.constraint_rows.index(side.name) for side in sides]
    signs = np.array([side.sign for side in sides], float) / closed.row_units[rows]
    q = np.array(pose.q)
    for _ in range(STEPS):
        now = terms(closed, State(pose.t, q, np.zeros(system.nv)))
        gap, G = signs * now.phi[rows], signs[:, None] * now.J[rows] * unit
        phi, J = held.dense_rows(q)
        x = _step(held, M, difference(system, pose.q, q) / unit, _moves(held, q), (phi, J * unit), (gap, G))
        if x is None or not np.isfinite(x).all():
            return None
        size = float(np.abs(x).max(initial=0.0))
        if size <= SETTLED and gap.min() >= -AT_LIMIT and np.abs(phi).max(initial=0.0) <= CLOSED:
            return State(pose.t, q, pose.v)
        q = increment(system, q, unit * x * min(1.0, LONGEST / size if size else 1.0))
    return None


def _step(
    held: Held, M: Array, d: Array, N: Array, loops: tuple[Array, Array], contacts: tuple[Array, Array]
) -> Array | None:
    """Solution x of the quadratic programme; None if no motion keeps the gaps open."""
    (phi, J), (gap, G) = loops, contacts
    x = np.zeros(len(d))
    if len(phi):
        x[held.free] = np.linalg.lstsq(J[:, held.free], -phi, rcond=INDEPENDENT)[0]
    if motions_without_inertia(M, N).size:
        raise SingularityError(
            f"'{held.system.name}' has a motion without inertia, in which no pose is the nearest one. Give the bodies "
            "that can move freely mass or inertia, or assemble with limits=False."
        )
    inertia = N.T @ M @ N
    x = x - N @ np.linalg.solve(inertia, N.T @ M @ (d + x))  # without contacts
    B = G @ N
    response = np.linalg.solve(inertia, B.T)
    A, b = B @ response, gap + G @ x
    movable = np.linalg.norm(B, axis=1) > INDEPENDENT * np.linalg.norm(G, axis=1)
    if np.any(b[~movable] < -AT_LIMIT):
        return None
    k = np.flatnonzero(movable)
    scale = 1.0 / np.sqrt(np.diag(A)[k])
    z = solve_lcp(A[np.ix_(k, k)] * np.outer(scale, scale), b[k] * scale)
    return None if z is None else x + N @ (response[:, k] @ (z * scale))
