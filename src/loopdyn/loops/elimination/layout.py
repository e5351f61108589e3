"""The plan of an elimination and its work in the arrays of the kernels: a block behind what the system needs."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from loopdyn.engine.jit import inline, window
from loopdyn.engine.layout import N_ADDRESSES, WORK, Block, Opener
from loopdyn.engine.records import (
    H_BASES,
    H_BODIES,
    H_CUTS,
    H_ENTRIES,
    H_NC,
    H_NV,
    H_SOLVER,
)

# Header of the plan: lengths of its tables.
P_ROWS, P_SLOTS, P_RESPONSES, P_OPEN, P_NODES, P_LATER, P_BLOCKS, P_MATRIX = range(N_ADDRESSES, N_ADDRESSES + 8)
P_SEVERED, P_DROPPED, P_WAVES, P_SIZE = range(P_MATRIX + 1, P_MATRIX + 5)

# node[k]: of the node at place k of the order: its first row, its rows, where its blocks begin in the array of the
# matrix, its part of `later`, its part of `block` (ordering.Pattern).
FIRST_ROW, ROWS, START, LATER_BEGIN, LATER_END, BLOCK_BEGIN, N_NODE = range(7)
# at[i]: of body i, its part of `open`, where S^T K begins in `response` (column by column, one per freedom), where its
# blocks begin in `block` (pairs a >= b of its open nodes), and its number among the severed bodies or -1.
OPEN_BEGIN, OPEN_END, RESPONSE, BLOCKS, SEVERED, N_AT = range(6)
# open[m]: rows that are open at a body: their node; where their columns from bodies further out are kept, or -1 if
# there are none; where the parent finds those that this body propagates, or -1; whether it is the first that does,
# when nothing is there yet; the cut joint or pair constraint that they are of, if it acts on this very body, or -1.
O_NODE, O_SLOT, O_UP, O_FIRST, O_CUT, N_OPEN = range(6)
# relation_entry[e]: place of the response of a freedom, or columns at the child and the parent of a cut joint.
R_RESPONSE, R_CHILD, R_PARENT, N_RELATION_ENTRY = range(4)
# wave[w]: where wave w begins in the sequence of bodies, in the order of cuts, in that of elimination, and among
# severed joints.
W_BODY, W_CUT, W_ORDER, W_SEVERED, N_WAVE = range(5)
# Row of `free`, one for each motion of a severed body: U = I S, 1 / (S . U), reduced load; S is a unit vector.
FREE_UW, FREE_UV, FREE_DINV, FREE_LOAD, N_FREE = 0, 3, 6, 7, 8

# diagnostics[k]; the last two are given: a smallest pivot below WEAKEST_PIVOT is reported as AGAIN; with MATRIX_ONLY
# above zero the matrix is made and left as it is.
SMALLEST_PIVOT, RESIDUAL, REFINEMENTS, DROPPED, WEAKEST_PIVOT, MATRIX_ONLY, N_DIAGNOSTICS = range(7)


class PlanArrays(NamedTuple):
    """Named views of the plan; `rows` are those of the matrix of multipliers."""

    at: Annotated[Any, "ints", "bodies, N_AT"]  # where what belongs to each body is, in the order of elimination
    open: Annotated[Any, "ints", "open, N_OPEN"]
    node: Annotated[Any, "ints", "nodes, N_NODE"]  # pattern of the matrix, see ordering.Pattern
    later: Annotated[Any, "ints", "later"]
    block: Annotated[Any, "ints", "blocks"]
    index: Annotated[Any, "ints", "nc"]  # row of the matrix that each row of the tables is, or -1; rows that are
    # dropped are numbered after those of the matrix: they are looked at, not solved for
    relation_entry: Annotated[Any, "ints", "entries, N_RELATION_ENTRY"]
    severed_joint: Annotated[Any, "ints", "severed, 2"]  # body, cut; by waves
    kept: Annotated[Any, "ints", "rows"]  # row of the tables that each row is
    sequence: Annotated[Any, "ints", "bodies - bases"]  # in which bodies are placed: parents before children
    order: Annotated[Any, "ints", "bodies - bases"]  # in which they are eliminated: by waves, children before parents
    cut_order: Annotated[Any, "ints", "cuts"]  # by waves
    wave: Annotated[Any, "ints", "waves + 1, N_WAVE"]


class EliminationWork(NamedTuple):
    """Named views of the work of the elimination."""

    column: Annotated[Any, "work", "slots, 6"]  # K: torque about the body's reference point and force, for a unit
    # multiplier. The first, of relations, are kept; others are used again by the next body once theirs is eliminated
    point: Annotated[Any, "work", "cuts, 3"]  # origin of M, world axes
    response: Annotated[Any, "work", "responses"]  # S^T K
    matrix: Annotated[Any, "work", "matrix"]  # blocks of the matrix of multipliers, then of its factor
    diagonal: Annotated[Any, "work", "rows"]  # of the matrix
    pivot: Annotated[Any, "work", "rows"]
    inverse: Annotated[Any, "work", "rows"]
    floor: Annotated[Any, "work", "rows"]  # below which a pivot is dropped
    lam: Annotated[Any, "work", "rows"]  # multipliers
    right: Annotated[Any, "work", "rows + dropped"]  # right side of the rows, for bodies without acceleration
    step: Annotated[Any, "work", "rows + dropped"]  # right side of the matrix, then its solution; or what is missing in
    # each row
    free: Annotated[Any, "work", "6 * severed, N_FREE"]  # motions of severed bodies in space, translations first, whose
    # pivots are masses
    motion: Annotated[Any, "work", "bodies, 6"]  # what a step adds to the motion of each body
    rates: Annotated[Any, "work", "nv"]  # ... and to that of each freedom
    multipliers: Annotated[Any, "work", "nc"]  # lam by rows of the tables; zero for rows that were dropped
    diagnostics: Annotated[Any, "work", "N_DIAGNOSTICS"]


BLOCK = Block(
    sizes="plan_sizes",
    header="P_",
    openers=(Opener("open_plan", PlanArrays), Opener("open_elimination", EliminationWork)),
    address="H_SOLVER",
)

# Written by tools/openers.py from the classes above; change these and run it.


def plan_sizes(ints: Any) -> tuple[int, int, int]:
    """Lengths that the block adds to the arrays, from the headers in `ints`."""
    o = ints[H_SOLVER]
    bodies = ints[H_BODIES]
    open = ints[o + P_OPEN]
    nodes = ints[o + P_NODES]
    later = ints[o + P_LATER]
    blocks = ints[o + P_BLOCKS]
    nc = ints[H_NC]
    entries = ints[H_ENTRIES]
    severed = ints[o + P_SEVERED]
    rows = ints[o + P_ROWS]
    bases = ints[H_BASES]
    cuts = ints[H_CUTS]
    waves = ints[o + P_WAVES]
    slots = ints[o + P_SLOTS]
    responses = ints[o + P_RESPONSES]
    matrix = ints[o + P_MATRIX]
    dropped = ints[o + P_DROPPED]
    nv = ints[H_NV]
    n_ints = P_SIZE + bodies * N_AT + open * N_OPEN + nodes * N_NODE + later + blocks + nc + entries * N_RELATION_ENTRY
    n_ints += severed * 2 + rows + bodies - bases + bodies - bases + cuts + (waves + 1) * N_WAVE
    n_floats = 0
    n_work = slots * 6 + cuts * 3 + responses + matrix + rows + rows + rows + rows + rows + rows + dropped
    n_work += rows + dropped + 6 * severed * N_FREE + bodies * 6 + nv + nc + N_DIAGNOSTICS
    return int(n_ints), int(n_floats), int(n_work)


@inline(always=True)
def open_plan(ints):
    """Named views of the plan; `rows` are those of the matrix of multipliers."""
    o = ints[H_SOLVER]
    bodies = ints[H_BODIES]
    open = ints[o + P_OPEN]
    nodes = ints[o + P_NODES]
    later = ints[o + P_LATER]
    blocks = ints[o + P_BLOCKS]
    nc = ints[H_NC]
    entries = ints[H_ENTRIES]
    severed = ints[o + P_SEVERED]
    rows = ints[o + P_ROWS]
    bases = ints[H_BASES]
    cuts = ints[H_CUTS]
    waves = ints[o + P_WAVES]
    at_at = o + P_SIZE
    at_open = at_at + bodies * N_AT
    at_node = at_open + open * N_OPEN
    at_later = at_node + nodes * N_NODE
    at_block = at_later + later
    at_index = at_block + blocks
    at_relation_entry = at_index + nc
    at_severed_joint = at_relation_entry + entries * N_RELATION_ENTRY
    at_kept = at_severed_joint + severed * 2
    at_sequence = at_kept + rows
    at_order = at_sequence + bodies - bases
    at_cut_order = at_order + bodies - bases
    at_wave = at_cut_order + cuts
    return PlanArrays(
        window(ints, at_at, bodies, N_AT),
        window(ints, at_open, open, N_OPEN),
        window(ints, at_node, nodes, N_NODE),
        window(ints, at_later, later),
        window(ints, at_block, blocks),
        window(ints, at_index, nc),
        window(ints, at_relation_entry, entries, N_RELATION_ENTRY),
        window(ints, at_severed_joint, severed, 2),
        window(ints, at_kept, rows),
        window(ints, at_sequence, bodies - bases),
        window(ints, at_order, bodies - bases),
        window(ints, at_cut_order, cuts),
        window(ints, at_wave, waves + 1, N_WAVE),
    )


@inline(always=True)
def open_elimination(ints, work):
    """Named views of the work of the elimination."""
    o = ints[H_SOLVER]
    slots = ints[o + P_SLOTS]
    cuts = ints[H_CUTS]
    responses = ints[o + P_RESPONSES]
    matrix = ints[o + P_MATRIX]
    rows = ints[o + P_ROWS]
    dropped = ints[o + P_DROPPED]
    severed = ints[o + P_SEVERED]
    bodies = ints[H_BODIES]
    nv = ints[H_NV]
    nc = ints[H_NC]
    at_column = ints[o + WORK]
    at_point = at_column + slots * 6
    at_response = at_point + cuts * 3
    at_matrix = at_response + responses
    at_diagonal = at_matrix + matrix
    at_pivot = at_diagonal + rows
    at_inverse = at_pivot + rows
    at_floor = at_inverse + rows
    at_lam = at_floor + rows
    at_right = at_lam + rows
    at_step = at_right + rows + dropped
    at_free = at_step + rows + dropped
    at_motion = at_free + 6 * severed * N_FREE
    at_rates = at_motion + bodies * 6
    at_multipliers = at_rates + nv
    at_diagnostics = at_multipliers + nc
    return EliminationWork(
        window(work, at_column, slots, 6),
        window(work, at_point, cuts, 3),
        window(work, at_response, responses),
        window(work, at_matrix, matrix),
        window(work, at_diagonal, rows),
        window(work, at_pivot, rows),
        window(work, at_inverse, rows),
        window(work, at_floor, rows),
        window(work, at_lam, rows),
        window(work, at_right, rows + dropped),
        window(work, at_step, rows + dropped),
        window(work, at_free, 6 * severed, N_FREE),
        window(work, at_motion, bodies, 6),
        window(work, at_rates, nv),
        window(work, at_multipliers, nc),
        window(work, at_diagnostics, N_DIAGNOSTICS),
    )
