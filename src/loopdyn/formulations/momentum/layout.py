"""Ends of a step and scratch of `momentum` in the arrays of the kernels.

Each end of a step, a *place*, has a work array of its own. A call of a kernel with all these tables as arguments took
as long as several steps.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from loopdyn.engine.jit import inline, window
from loopdyn.engine.layout import FLOATS, N_ADDRESSES, WORK, Block, Opener
from loopdyn.engine.records import H_BODIES, H_NC, H_NV, H_SOLVER

# Header: rows, speeds and freedoms of the dense matrices, zero where there are none; rows that constrain velocities
# alone; the length of the work array of the system.
P_ROWS, P_SPEEDS, P_FREEDOMS, P_VELOCITIES, P_COPY, P_SIZE = range(N_ADDRESSES, N_ADDRESSES + 6)

# Numbers of a place: time, and the indicator: the smallest length of the component of a kept row that is orthogonal to
# the rows before it, in natural units.
TIME, INDICATOR, N_NUMBERS = range(3)


class Place(NamedTuple):
    """One end of a step. ``J[kept] = T Q^T`` with T lower triangular and Q a product of reflections."""

    number: Annotated[Any, "work", "N_NUMBERS"]
    work: Annotated[Any, "work", "copy"]  # state, poses, subspaces
    v: Annotated[Any, "work", "nv"]  # speeds, SI
    J: Annotated[Any, "work", "rows, speeds"]
    phi: Annotated[Any, "work", "rows"]  # residual of position
    rate: Annotated[Any, "work", "rows"]  # residual of velocity
    phi_t: Annotated[Any, "work", "rows"]  # its part that is not due to motion
    T: Annotated[Any, "work", "rows, speeds"]
    mirror: Annotated[Any, "work", "rows, speeds"]  # normals of the reflections
    kept: Annotated[Any, "work", "rows"]  # rows in the order of their choice at the start of the steps
    N: Annotated[Any, "work", "freedoms, speeds"]  # motions that the rows allow
    M: Annotated[Any, "work", "speeds, speeds"]  # mass matrix
    p: Annotated[Any, "work", "nv"]  # momenta
    f: Annotated[Any, "work", "nv"]  # loads
    d: Annotated[Any, "work", "nv"]  # generalised momenta of the chord at this end
    impulse: Annotated[Any, "work", "nv"]  # of the constraints at this end of the step


class Scratch(NamedTuple):
    """Scratch arrays, and units."""

    of_velocity: Annotated[Any, "ints", "velocities"]  # rows that constrain velocities alone
    unit: Annotated[Any, "floats", "nv"]  # natural units of increments
    row_unit: Annotated[Any, "floats", "nc"]
    load: Annotated[Any, "work", "bodies, 6"]
    far: Annotated[Any, "work", "bodies, 6"]  # loads at the other end
    goal: Annotated[Any, "work", "rows"]
    x: Annotated[Any, "work", "speeds"]
    y: Annotated[Any, "work", "freedoms, 1"]
    xi: Annotated[Any, "work", "nv"]  # SI
    A: Annotated[Any, "work", "freedoms, freedoms"]
    order: Annotated[Any, "work", "freedoms"]
    along: Annotated[Any, "work", "freedoms, speeds"]  # N0^T M0
    still: Annotated[Any, "work", "nv"]  # momenta of moving bases alone
    total: Annotated[Any, "work", "nc"]  # multipliers over the time of the steps so far


BLOCK = Block(
    sizes="momentum_sizes",
    header="P_",
    openers=(Opener("open_place", Place), Opener("open_scratch", Scratch)),
    address="H_SOLVER",
)

# Written by tools/openers.py from the classes above; change these and run it.


def momentum_sizes(ints: Any) -> tuple[int, int, int]:
    """Lengths that the block adds to the arrays, from the headers in `ints`."""
    o = ints[H_SOLVER]
    velocities = ints[o + P_VELOCITIES]
    nv = ints[H_NV]
    nc = ints[H_NC]
    copy = ints[o + P_COPY]
    rows = ints[o + P_ROWS]
    speeds = ints[o + P_SPEEDS]
    freedoms = ints[o + P_FREEDOMS]
    bodies = ints[H_BODIES]
    n_ints = P_SIZE + velocities
    n_floats = nv + nc
    n_work = N_NUMBERS + copy + nv + rows * speeds + rows + rows + rows + rows * speeds + rows * speeds + rows
    n_work += freedoms * speeds + speeds * speeds + nv + nv + nv + nv + bodies * 6 + bodies * 6 + rows + speeds
    n_work += freedoms + nv + freedoms * freedoms + freedoms + freedoms * speeds + nv + nc
    return int(n_ints), int(n_floats), int(n_work)


@inline(always=True)
def open_place(ints, work):
    """One end of a step. ``J[kept] = T Q^T`` with T lower triangular and Q a product of reflections."""
    o = ints[H_SOLVER]
    copy = ints[o + P_COPY]
    nv = ints[H_NV]
    rows = ints[o + P_ROWS]
    speeds = ints[o + P_SPEEDS]
    freedoms = ints[o + P_FREEDOMS]
    at_number = ints[o + WORK]
    at_work = at_number + N_NUMBERS
    at_v = at_work + copy
    at_J = at_v + nv
    at_phi = at_J + rows * speeds
    at_rate = at_phi + rows
    at_phi_t = at_rate + rows
    at_T = at_phi_t + rows
    at_mirror = at_T + rows * speeds
    at_kept = at_mirror + rows * speeds
    at_N = at_kept + rows
    at_M = at_N + freedoms * speeds
    at_p = at_M + speeds * speeds
    at_f = at_p + nv
    at_d = at_f + nv
    at_impulse = at_d + nv
    return Place(
        window(work, at_number, N_NUMBERS),
        window(work, at_work, copy),
        window(work, at_v, nv),
        window(work, at_J, rows, speeds),
        window(work, at_phi, rows),
        window(work, at_rate, rows),
        window(work, at_phi_t, rows),
        window(work, at_T, rows, speeds),
        window(work, at_mirror, rows, speeds),
        window(work, at_kept, rows),
        window(work, at_N, freedoms, speeds),
        window(work, at_M, speeds, speeds),
        window(work, at_p, nv),
        window(work, at_f, nv),
        window(work, at_d, nv),
        window(work, at_impulse, nv),
    )


@inline(always=True)
def open_scratch(ints, floats, work):
    """Scratch arrays, and units."""
    o = ints[H_SOLVER]
    velocities = ints[o + P_VELOCITIES]
    nv = ints[H_NV]
    nc = ints[H_NC]
    copy = ints[o + P_COPY]
    rows = ints[o + P_ROWS]
    speeds = ints[o + P_SPEEDS]
    freedoms = ints[o + P_FREEDOMS]
    bodies = ints[H_BODIES]
    at_of_velocity = o + P_SIZE
    at_unit = ints[o + FLOATS]
    at_row_unit = at_unit + nv
    at_number = ints[o + WORK]
    at_work = at_number + N_NUMBERS
    at_v = at_work + copy
    at_J = at_v + nv
    at_phi = at_J + rows * speeds
    at_rate = at_phi + rows
    at_phi_t = at_rate + rows
    at_T = at_phi_t + rows
    at_mirror = at_T + rows * speeds
    at_kept = at_mirror + rows * speeds
    at_N = at_kept + rows
    at_M = at_N + freedoms * speeds
    at_p = at_M + speeds * speeds
    at_f = at_p + nv
    at_d = at_f + nv
    at_impulse = at_d + nv
    at_load = at_impulse + nv
    at_far = at_load + bodies * 6
    at_goal = at_far + bodies * 6
    at_x = at_goal + rows
    at_y = at_x + speeds
    at_xi = at_y + freedoms
    at_A = at_xi + nv
    at_order = at_A + freedoms * freedoms
    at_along = at_order + freedoms
    at_still = at_along + freedoms * speeds
    at_total = at_still + nv
    return Scratch(
        window(ints, at_of_velocity, velocities),
        window(floats, at_unit, nv),
        window(floats, at_row_unit, nc),
        window(work, at_load, bodies, 6),
        window(work, at_far, bodies, 6),
        window(work, at_goal, rows),
        window(work, at_x, speeds),
        window(work, at_y, freedoms, 1),
        window(work, at_xi, nv),
        window(work, at_A, freedoms, freedoms),
        window(work, at_order, freedoms),
        window(work, at_along, freedoms, speeds),
        window(work, at_still, nv),
        window(work, at_total, nc),
    )
