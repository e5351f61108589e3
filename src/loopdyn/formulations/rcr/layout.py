"""Tables and numbers of `rcr` behind the arrays of the system, as the kernels read them."""

from __future__ import annotations

from typing import Any, NamedTuple

from loopdyn.engine.jit import inline, window
from loopdyn.engine.records import H_BODIES, H_ENTRIES, H_NC, H_NV

# Header of the plan, behind the ints of the system: lengths of its tables, of its arrays of numbers, and settings.
N_GROUPS, N_STEPS, N_CELLS, N_ROWS, N_DEPENDENT, N_PARTS, N_PATH, N_LOCAL, N_DIRECT, N_TENTATIVE = range(10)
N_COLUMNS, N_E, N_X, N_REDUCED, N_M, FORM, AFFINE, STEADY, FLOATS, N_HEADER = range(10, 20)

# group[g]: base or -1; steps; closing cells; tentative speeds, how many of them are independent, where they begin;
# where its M, its reduced rows and its X of those begin.
G_BASE, G_STEPS, G_STEPS_END, G_CLOSING, G_CLOSING_END, G_WIDTH, G_FREEDOMS, G_TENTATIVE = range(8)
G_M, G_REDUCED, G_X, N_GROUP = range(8, 12)
# cell[c]: rows, dependent speeds, parts, direct entries; where X and its reduced rows begin; number of tentative speeds
K_ROWS, K_ROWS_END, K_DEPENDENT, K_PARTS, K_PARTS_END, K_DIRECT, K_DIRECT_END, K_X, K_REDUCED, K_WIDTH, N_CELL = range(
    11
)
# part[p]: cut, entry of a relation or -1, bodies at the ends of the ways or -1, bodies on the ways
Y_CUT, Y_ENTRY, Y_CHILD, Y_PARENT, Y_PATH, Y_PATH_END, N_PART = range(7)
# path[x]: a body, which side (+1 or -1), where the places of its speeds among the dependent ones begin
X_BODY, X_SIGN, X_LOCAL, N_PATH_COLUMNS = range(4)
# direct[x]: entry of a relation, its speed, place of that among the dependent ones or -1
D_ENTRY, D_SPEED, D_LOCAL, N_DIRECT_COLUMNS = range(4)

# Forms of the state: all given; or dependent speeds follow from the independent ones.
FULL, K_PLUS_N = range(2)
SPEEDS, ACCELERATIONS, POSITIONS = range(3)  # stages of an evaluation

# Smallest pivot of a cell as a share of what it was at the choice, cells whose determinant has changed its sign, how
# far the dependent speeds were from following, best gain of an exchange; given: the last stage that is asked for.
PIVOT, FLIPPED, JUMP, GAIN, ASKED, N_NOTES = range(6)
MOST_ROWS = 6  # of a cell


class Cells(NamedTuple):
    """The plan."""

    slot: Any  # (bodies,) first column of a body of a group, else -1
    start: Any  # (bodies,) the group whose first body it is, or -1
    carries: Any  # (bodies,) 1 where something outside of its group stands on it: its acceleration is asked for
    e: Any  # (nv,) where the row of E of a speed begins, -1 outside of groups
    holonomic: Any  # (nc,) 0 for rows that constrain velocities alone
    group: Any  # (groups, N_GROUP)
    step: Any  # (steps,) a body, or cell -1 - step
    cell: Any  # (cells, N_CELL)
    row: Any  # (rows,)
    dependent: Any  # (dependent,)
    part: Any  # (parts, N_PART)
    path: Any  # (path, N_PATH_COLUMNS)
    local: Any  # (local,)
    direct: Any  # (direct, N_DIRECT_COLUMNS)
    tentative: Any  # (tentative,)


class Numbers(NamedTuple):
    """Numbers of the plan, and the own work."""

    row_scale: Any  # (nc,) one over the natural unit of each row
    unit: Any  # (nv,)
    candidate: Any  # (nv,) 1 where a speed may be independent, else 0
    switch: Any  # (1,) gain that is worth an exchange
    E: Any  # (n_e,)
    W: Any  # (columns, 6)
    X: Any  # (n_x,) inverses of the cells
    Y: Any  # (n_x,) what they are inverses of; scratch
    reduced: Any  # (n_reduced,) rows of cells in tentative speeds
    N: Any  # (MOST_ROWS, 6) wrenches of the rows of a cell
    point: Any  # (parts, 3) where they act
    entry: Any  # (entries, 9) torque, force, point of each entry of a relation that acts on a cut joint
    motion: Any  # (bodies, 6)
    x: Any  # (nv,) of the speeds, like motion of the bodies
    right: Any  # (nc,)
    rate: Any  # (nc,) of the relations
    M: Any  # (n_m,) mass matrix of each group, then its Cholesky factor
    F: Any  # (tentative,) its right side, then accelerations
    H: Any  # (tentative, 6) coupling to the base
    side: Any  # (width or rows,) scratch
    free: Any  # (nv,) mobility M^-1(i, i) of a speed in the open tree
    spread: Any  # (bodies, 21) covariance of accelerations, for the mobilities
    chosen: Any  # (cells, 2) sign of the determinant and smallest pivot of a cell at the choice; 0 if not yet known
    notes: Any  # (N_NOTES,)


@inline(always=True)
def open_cells(ints, o):
    """The plan, which begins at o in the int array."""
    n, nv, nc = ints[H_BODIES], ints[H_NV], ints[H_NC]
    a = o + N_HEADER
    b = a + 3 * n
    c = b + nv + nc
    d = c + ints[o + N_GROUPS] * N_GROUP
    e = d + ints[o + N_STEPS]
    f = e + ints[o + N_CELLS] * N_CELL
    g = f + ints[o + N_ROWS]
    h = g + ints[o + N_DEPENDENT]
    i = h + ints[o + N_PARTS] * N_PART
    j = i + ints[o + N_PATH] * N_PATH_COLUMNS
    k = j + ints[o + N_LOCAL]
    m = k + ints[o + N_DIRECT] * N_DIRECT_COLUMNS
    return Cells(
        window(ints, a, n),
        window(ints, a + n, n),
        window(ints, a + 2 * n, n),
        window(ints, b, nv),
        window(ints, b + nv, nc),
        window(ints, c, ints[o + N_GROUPS], N_GROUP),
        window(ints, d, ints[o + N_STEPS]),
        window(ints, e, ints[o + N_CELLS], N_CELL),
        window(ints, f, ints[o + N_ROWS]),
        window(ints, g, ints[o + N_DEPENDENT]),
        window(ints, h, ints[o + N_PARTS], N_PART),
        window(ints, i, ints[o + N_PATH], N_PATH_COLUMNS),
        window(ints, j, ints[o + N_LOCAL]),
        window(ints, k, ints[o + N_DIRECT], N_DIRECT_COLUMNS),
        window(ints, m, ints[o + N_TENTATIVE]),
    )


@inline(always=True)
def open_numbers(ints, o, floats, work, a):
    """Numbers of the plan, whose ints begin at o, and the own work, which begins at a."""
    n, nv, nc, entries = ints[H_BODIES], ints[H_NV], ints[H_NC], ints[H_ENTRIES]
    f, cells, t = ints[o + FLOATS], ints[o + N_CELLS], ints[o + N_TENTATIVE]
    b = a + ints[o + N_E]
    c = b + 6 * ints[o + N_COLUMNS]
    d = c + ints[o + N_X]
    e = d + ints[o + N_X]
    g = e + ints[o + N_REDUCED]
    h = g + 6 * MOST_ROWS
    i = h + 3 * ints[o + N_PARTS]
    j = i + 9 * entries
    k = j + 6 * n
    m = k + nv
    p = m + 2 * nc
    q = p + ints[o + N_M]
    r = q + t
    s = r + 6 * t
    u = s + t + MOST_ROWS
    v = u + nv
    w = v + 21 * n
    y = w + 2 * cells
    return Numbers(
        window(floats, f, nc),
        window(floats, f + nc, nv),
        window(floats, f + nc + nv, nv),
        window(floats, f + nc + 2 * nv, 1),
        window(work, a, ints[o + N_E]),
        window(work, b, ints[o + N_COLUMNS], 6),
        window(work, c, ints[o + N_X]),
        window(work, d, ints[o + N_X]),
        window(work, e, ints[o + N_REDUCED]),
        window(work, g, MOST_ROWS, 6),
        window(work, h, ints[o + N_PARTS], 3),
        window(work, i, entries, 9),
        window(work, j, n, 6),
        window(work, k, nv),
        window(work, m, nc),
        window(work, m + nc, nc),
        window(work, p, ints[o + N_M]),
        window(work, q, t),
        window(work, r, t, 6),
        window(work, s, t + MOST_ROWS),
        window(work, u, nv),
        window(work, v, n, 21),
        window(work, w, cells, 2),
        window(work, y, N_NOTES),
    )


def own_work(header: Any, bodies: int, nv: int, nc: int, entries: int) -> int:
    """Length of the own work."""
    t = int(header[N_TENTATIVE])
    total = int(header[N_E]) + 6 * int(header[N_COLUMNS]) + 2 * int(header[N_X]) + int(header[N_REDUCED])
    total += 6 * MOST_ROWS + 3 * int(header[N_PARTS]) + 9 * entries + 27 * bodies + 2 * nv + 2 * nc
    return total + int(header[N_M]) + 8 * t + MOST_ROWS + 2 * int(header[N_CELLS]) + N_NOTES
