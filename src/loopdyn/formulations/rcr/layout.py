"""Tables, numbers and work of `rcr` in the arrays of the kernels: a block behind what the system needs."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from loopdyn.engine.jit import inline, window
from loopdyn.engine.layout import FLOATS, N_ADDRESSES, WORK, Block, Opener
from loopdyn.engine.records import H_BODIES, H_ENTRIES, H_NC, H_NV, H_SOLVER

# Header of the plan: lengths of its tables and of its arrays of numbers, and settings.
N_GROUPS, N_STEPS, N_CELLS, N_ROWS, N_DEPENDENT, N_PARTS, N_PATH, N_LOCAL = range(N_ADDRESSES, N_ADDRESSES + 8)
N_DIRECT, N_TENTATIVE, N_COLUMNS, N_E, N_X, N_REDUCED, N_M = range(N_LOCAL + 1, N_LOCAL + 8)
FORM, AFFINE, STEADY, N_SIZE = range(N_M + 1, N_M + 5)

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

# Smallest pivot of a cell as a fraction of what it was at the choice, cells whose determinant has changed its sign, how
# far the dependent speeds were from following, best gain of an exchange; given: the last stage that is asked for.
PIVOT, FLIPPED, JUMP, GAIN, ASKED, N_NOTES = range(6)
MOST_ROWS = 6  # of a cell


class Cells(NamedTuple):
    """Named views of the plan."""

    slot: Annotated[Any, "ints", "bodies"]  # first column of a body of a group, else -1
    start: Annotated[Any, "ints", "bodies"]  # the group whose first body it is, or -1
    carries: Annotated[Any, "ints", "bodies"]  # 1 where something outside of its group stands on it: its acceleration
    # is asked for
    e: Annotated[Any, "ints", "nv"]  # where the row of E of a speed begins, -1 outside of groups
    holonomic: Annotated[Any, "ints", "nc"]  # 0 for rows that constrain velocities alone
    group: Annotated[Any, "ints", "groups, N_GROUP"]
    step: Annotated[Any, "ints", "steps"]  # a body, or cell -1 - step
    cell: Annotated[Any, "ints", "cells, N_CELL"]
    row: Annotated[Any, "ints", "rows"]
    dependent: Annotated[Any, "ints", "dependent"]
    part: Annotated[Any, "ints", "parts, N_PART"]
    path: Annotated[Any, "ints", "path, N_PATH_COLUMNS"]
    local: Annotated[Any, "ints", "local"]
    direct: Annotated[Any, "ints", "direct, N_DIRECT_COLUMNS"]
    tentative: Annotated[Any, "ints", "tentative"]


class Numbers(NamedTuple):
    """Named views of the numbers of the plan, and of the own work."""

    row_scale: Annotated[Any, "floats", "nc"]  # one over the natural unit of each row
    unit: Annotated[Any, "floats", "nv"]
    candidate: Annotated[Any, "floats", "nv"]  # 1 where a speed may be independent, else 0
    switch: Annotated[Any, "floats", "1"]  # gain that is worth an exchange
    E: Annotated[Any, "work", "e"]
    W: Annotated[Any, "work", "columns, 6"]
    X: Annotated[Any, "work", "x"]  # inverses of the cells
    Y: Annotated[Any, "work", "x"]  # what they are inverses of; scratch
    reduced: Annotated[Any, "work", "reduced"]  # rows of cells in tentative speeds
    N: Annotated[Any, "work", "MOST_ROWS, 6"]  # wrenches of the rows of a cell
    point: Annotated[Any, "work", "parts, 3"]  # where they act
    entry: Annotated[Any, "work", "entries, 9"]  # torque, force, point of each entry of a relation on a cut joint
    motion: Annotated[Any, "work", "bodies, 6"]
    x: Annotated[Any, "work", "nv"]  # of the speeds, like motion of the bodies
    right: Annotated[Any, "work", "nc"]
    rate: Annotated[Any, "work", "nc"]  # of the relations
    M: Annotated[Any, "work", "m"]  # mass matrix of each group, then its Cholesky factor
    F: Annotated[Any, "work", "tentative"]  # its right side, then accelerations
    H: Annotated[Any, "work", "tentative, 6"]  # coupling to the base
    side: Annotated[Any, "work", "tentative + MOST_ROWS"]  # scratch
    free: Annotated[Any, "work", "nv"]  # mobility M^-1(i, i) of a speed in the open tree
    spread: Annotated[Any, "work", "bodies, 21"]  # covariance of accelerations, for the mobilities
    chosen: Annotated[Any, "work", "cells, 2"]  # sign of the determinant and smallest pivot of a cell at the choice; 0
    # if not yet known
    notes: Annotated[Any, "work", "N_NOTES"]


BLOCK = Block(
    sizes="cell_sizes",
    header="N_",
    openers=(Opener("open_cells", Cells), Opener("open_numbers", Numbers)),
    address="H_SOLVER",
)

# Written by tools/openers.py from the classes above; change these and run it.


def cell_sizes(ints: Any) -> tuple[int, int, int]:
    """Lengths that the block adds to the arrays, from the headers in `ints`."""
    o = ints[H_SOLVER]
    bodies = ints[H_BODIES]
    nv = ints[H_NV]
    nc = ints[H_NC]
    groups = ints[o + N_GROUPS]
    steps = ints[o + N_STEPS]
    cells = ints[o + N_CELLS]
    rows = ints[o + N_ROWS]
    dependent = ints[o + N_DEPENDENT]
    parts = ints[o + N_PARTS]
    path = ints[o + N_PATH]
    local = ints[o + N_LOCAL]
    direct = ints[o + N_DIRECT]
    tentative = ints[o + N_TENTATIVE]
    e = ints[o + N_E]
    columns = ints[o + N_COLUMNS]
    x = ints[o + N_X]
    reduced = ints[o + N_REDUCED]
    entries = ints[H_ENTRIES]
    m = ints[o + N_M]
    n_ints = N_SIZE + bodies + bodies + bodies + nv + nc + groups * N_GROUP + steps + cells * N_CELL + rows + dependent
    n_ints += parts * N_PART + path * N_PATH_COLUMNS + local + direct * N_DIRECT_COLUMNS + tentative
    n_floats = nc + nv + nv + 1
    n_work = e + columns * 6 + x + x + reduced + MOST_ROWS * 6 + parts * 3 + entries * 9 + bodies * 6 + nv + nc + nc + m
    n_work += tentative + tentative * 6 + tentative + MOST_ROWS + nv + bodies * 21 + cells * 2 + N_NOTES
    return int(n_ints), int(n_floats), int(n_work)


@inline(always=True)
def open_cells(ints):
    """Named views of the plan."""
    o = ints[H_SOLVER]
    bodies = ints[H_BODIES]
    nv = ints[H_NV]
    nc = ints[H_NC]
    groups = ints[o + N_GROUPS]
    steps = ints[o + N_STEPS]
    cells = ints[o + N_CELLS]
    rows = ints[o + N_ROWS]
    dependent = ints[o + N_DEPENDENT]
    parts = ints[o + N_PARTS]
    path = ints[o + N_PATH]
    local = ints[o + N_LOCAL]
    direct = ints[o + N_DIRECT]
    tentative = ints[o + N_TENTATIVE]
    at_slot = o + N_SIZE
    at_start = at_slot + bodies
    at_carries = at_start + bodies
    at_e = at_carries + bodies
    at_holonomic = at_e + nv
    at_group = at_holonomic + nc
    at_step = at_group + groups * N_GROUP
    at_cell = at_step + steps
    at_row = at_cell + cells * N_CELL
    at_dependent = at_row + rows
    at_part = at_dependent + dependent
    at_path = at_part + parts * N_PART
    at_local = at_path + path * N_PATH_COLUMNS
    at_direct = at_local + local
    at_tentative = at_direct + direct * N_DIRECT_COLUMNS
    return Cells(
        window(ints, at_slot, bodies),
        window(ints, at_start, bodies),
        window(ints, at_carries, bodies),
        window(ints, at_e, nv),
        window(ints, at_holonomic, nc),
        window(ints, at_group, groups, N_GROUP),
        window(ints, at_step, steps),
        window(ints, at_cell, cells, N_CELL),
        window(ints, at_row, rows),
        window(ints, at_dependent, dependent),
        window(ints, at_part, parts, N_PART),
        window(ints, at_path, path, N_PATH_COLUMNS),
        window(ints, at_local, local),
        window(ints, at_direct, direct, N_DIRECT_COLUMNS),
        window(ints, at_tentative, tentative),
    )


@inline(always=True)
def open_numbers(ints, floats, work):
    """Named views of the numbers of the plan, and of the own work."""
    o = ints[H_SOLVER]
    nc = ints[H_NC]
    nv = ints[H_NV]
    e = ints[o + N_E]
    columns = ints[o + N_COLUMNS]
    x = ints[o + N_X]
    reduced = ints[o + N_REDUCED]
    parts = ints[o + N_PARTS]
    entries = ints[H_ENTRIES]
    bodies = ints[H_BODIES]
    m = ints[o + N_M]
    tentative = ints[o + N_TENTATIVE]
    cells = ints[o + N_CELLS]
    at_row_scale = ints[o + FLOATS]
    at_unit = at_row_scale + nc
    at_candidate = at_unit + nv
    at_switch = at_candidate + nv
    at_E = ints[o + WORK]
    at_W = at_E + e
    at_X = at_W + columns * 6
    at_Y = at_X + x
    at_reduced = at_Y + x
    at_N = at_reduced + reduced
    at_point = at_N + MOST_ROWS * 6
    at_entry = at_point + parts * 3
    at_motion = at_entry + entries * 9
    at_x = at_motion + bodies * 6
    at_right = at_x + nv
    at_rate = at_right + nc
    at_M = at_rate + nc
    at_F = at_M + m
    at_H = at_F + tentative
    at_side = at_H + tentative * 6
    at_free = at_side + tentative + MOST_ROWS
    at_spread = at_free + nv
    at_chosen = at_spread + bodies * 21
    at_notes = at_chosen + cells * 2
    return Numbers(
        window(floats, at_row_scale, nc),
        window(floats, at_unit, nv),
        window(floats, at_candidate, nv),
        window(floats, at_switch, 1),
        window(work, at_E, e),
        window(work, at_W, columns, 6),
        window(work, at_X, x),
        window(work, at_Y, x),
        window(work, at_reduced, reduced),
        window(work, at_N, MOST_ROWS, 6),
        window(work, at_point, parts, 3),
        window(work, at_entry, entries, 9),
        window(work, at_motion, bodies, 6),
        window(work, at_x, nv),
        window(work, at_right, nc),
        window(work, at_rate, nc),
        window(work, at_M, m),
        window(work, at_F, tentative),
        window(work, at_H, tentative, 6),
        window(work, at_side, tentative + MOST_ROWS),
        window(work, at_free, nv),
        window(work, at_spread, bodies, 21),
        window(work, at_chosen, cells, 2),
        window(work, at_notes, N_NOTES),
    )
