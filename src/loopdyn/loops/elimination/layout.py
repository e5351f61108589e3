"""How a plan and its work are laid out in the arrays of the kernels, behind those of the system."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.jit import inline, window
from loopdyn.engine.records import (
    H_BASES,
    H_BODIES,
    H_CODE,
    H_COUNTED,
    H_CUTS,
    H_DEPTH,
    H_ENTRIES,
    H_FORCES,
    H_JETS,
    H_LINEAR,
    H_NC,
    H_NQ,
    H_NV,
    H_PATH,
    H_PROGRAMS,
    H_SIZE,
    N_BASE_PROGRAMS,
    N_COUNTED,
    N_CUT,
    N_DOF,
    N_ENTRY,
    N_FORCE_INTS,
    N_LINEAR,
    N_READER,
    N_STEP,
    N_TREE,
    N_WORK,
    system_sizes,
)

# Header of the plan: lengths of its tables.
P_ROWS, P_SLOTS, P_RESPONSES, P_OPEN, P_NODES, P_LATER, P_BLOCKS, P_MATRIX = range(8)
P_SEVERED, P_DROPPED, P_WAVES, P_SIZE = range(8, 12)

# node[k]: of the node at place k of the order: its first row, its rows, where its blocks begin in the array of the
# matrix, its part of `later`, its part of `block` (ordering.Pattern).
FIRST_ROW, ROWS, START, LATER_BEGIN, LATER_END, BLOCK_BEGIN, N_NODE = range(7)
# at[i]: of body i, its part of `open`, where S^T K begins in `response` (column by column, one per freedom), where its
# blocks begin in `block` (pairs a >= b of its open nodes), and its number among the severed bodies or -1.
OPEN_BEGIN, OPEN_END, RESPONSE, BLOCKS, SEVERED, N_AT = range(6)
# open[m]: rows that are open at a body: their node; where their columns from bodies further out are kept, or -1 if
# there are none; where the parent finds those that this body hands on, or -1; whether it is the first that does, when
# nothing is there yet; the cut joint or pair constraint that they are of, if it acts on this very body, or -1.
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
    """Tables of a plan; `rows` are those of the matrix of multipliers."""

    at: Any  # (bodies, N_AT) where what belongs to each body is; it is laid out in the order of elimination
    open: Any  # (open, N_OPEN)
    node: Any  # (nodes, N_NODE) pattern of the matrix, see ordering.Pattern
    later: Any
    block: Any
    index: Any  # (nc,) row of the matrix that each row of the tables is, or -1; rows that are dropped are numbered
    # after those of the matrix: they are looked at, not solved for
    relation_entry: Any  # (entries, N_RELATION_ENTRY)
    severed_joint: Any  # (severed, 2) body, cut; by waves
    kept: Any  # (rows,) row of the tables that each row is
    sequence: Any  # (bodies less bases,) in which they are placed: parents before children
    order: Any  # (bodies less bases,) in which they are eliminated: by waves, children before parents
    cut_order: Any  # (cuts,) by waves
    wave: Any  # (waves + 1, N_WAVE)


class EliminationWork(NamedTuple):
    """Views of the work of an elimination."""

    column: Any  # (slots, 6) K: torque about the body's reference point and force, for a unit multiplier. The first,
    # of relations, are kept; others are used again by the next body once theirs is eliminated
    point: Any  # (cuts, 3) origin of M, world axes
    response: Any  # (responses,) S^T K
    matrix: Any  # (matrix,) blocks of the matrix of multipliers, then of its factor
    diagonal: Any  # (rows,) of the matrix
    pivot: Any  # (rows,)
    inverse: Any  # (rows,)
    floor: Any  # (rows,) below which a pivot is dropped
    lam: Any  # (rows,) multipliers
    right: Any  # (rows + dropped,) right side of the rows, for bodies without acceleration
    step: Any  # (rows + dropped,) right side of the matrix, then its solution; or what is missing in each row
    free: Any  # (6 * severed, N_FREE) motions of severed bodies in space, translations first, whose pivots are masses
    motion: Any  # (bodies, 6) what a step adds to the motion of each body
    rates: Any  # (nv,) ... and to that of each freedom
    multipliers: Any  # (nc,) lam by rows of the tables; zero for rows that were dropped
    diagnostics: Any  # (N_DIAGNOSTICS,)


def pack_plan(p: PlanArrays, slots: int, responses: int, matrix: int) -> NDArray[np.int64]:
    """One array: header, then all tables; the others are lengths: of the columns, the responses and the matrix."""
    header = np.zeros(P_SIZE, np.int64)
    header[[P_ROWS, P_SLOTS, P_RESPONSES, P_OPEN, P_NODES, P_LATER, P_BLOCKS, P_MATRIX, P_SEVERED]] = [
        len(p.kept), slots, responses, len(p.open), len(p.node), len(p.later), len(p.block), matrix,
        len(p.severed_joint),
    ]  # fmt: skip
    header[P_WAVES] = len(p.wave) - 1
    header[P_DROPPED] = np.count_nonzero(np.asarray(p.index) >= len(p.kept))
    return np.concatenate([header, *(np.asarray(x, np.int64).ravel() for x in p)])


def work_size(ints: NDArray[np.int64]) -> int:
    """Length of the whole work array: of the system and of the elimination."""
    header = ints[system_sizes(ints)[0] :]
    n, slots, responses, matrix = (int(header[k]) for k in (P_ROWS, P_SLOTS, P_RESPONSES, P_MATRIX))
    size = 6 * slots + 3 * int(ints[H_CUTS]) + responses + matrix + 7 * n + 2 * int(header[P_DROPPED])
    size += 6 * int(header[P_SEVERED]) * N_FREE
    size += 6 * int(ints[H_BODIES]) + int(ints[H_NV]) + int(ints[H_NC]) + N_DIAGNOSTICS
    return system_sizes(ints)[2] + size


@inline
def plan_start(ints):
    """Where the plan begins in the int array."""
    a = H_SIZE + ints[H_BODIES] * N_TREE + ints[H_CUTS] * N_CUT + ints[H_FORCES] * N_FORCE_INTS + ints[H_CODE]
    a += ints[H_PROGRAMS] + 1 + ints[H_BASES] * N_BASE_PROGRAMS
    a += ints[H_LINEAR] * N_LINEAR + ints[H_ENTRIES] * N_ENTRY + (ints[H_FORCES] + ints[H_ENTRIES]) * N_READER
    return a + ints[H_PATH] * N_STEP + ints[H_COUNTED] * N_COUNTED


@inline
def work_start(ints):
    """Where the work of the elimination begins in the work array."""
    nv, nc = ints[H_NV], ints[H_NC]
    a = 1 + ints[H_NQ] + 4 * nv + ints[H_BODIES] * N_WORK + nv * N_DOF + 9 * nc + 2 * ints[H_ENTRIES]
    return a + ints[H_FORCES] + 3 * ints[H_JETS] + 3 * N_BASE_PROGRAMS + 3 * ints[H_DEPTH]


@inline(always=True)
def open_plan(ints, o):
    """Named views of the plan, which begins at o in the int array."""
    bodies, related, rows = ints[H_BODIES], ints[H_ENTRIES], ints[H_NC]
    n, opened, nodes, later = ints[o + P_ROWS], ints[o + P_OPEN], ints[o + P_NODES], ints[o + P_LATER]
    blocks, severed = ints[o + P_BLOCKS], ints[o + P_SEVERED]
    moving, cuts = bodies - ints[H_BASES], ints[H_CUTS]
    a = o + P_SIZE
    b = a + bodies * N_AT
    c = b + opened * N_OPEN
    d = c + nodes * N_NODE
    e = d + later
    f = e + blocks
    g = f + rows
    h = g + related * N_RELATION_ENTRY
    i = h + severed * 2
    j = i + n
    k = j + 2 * moving
    return PlanArrays(
        window(ints, a, bodies, N_AT),
        window(ints, b, opened, N_OPEN),
        window(ints, c, nodes, N_NODE),
        window(ints, d, later),
        window(ints, e, blocks),
        window(ints, f, rows),
        window(ints, g, related, N_RELATION_ENTRY),
        window(ints, h, severed, 2),
        window(ints, i, n),
        window(ints, j, moving),
        window(ints, j + moving, moving),
        window(ints, k, cuts),
        window(ints, k + cuts, ints[o + P_WAVES] + 1, N_WAVE),
    )


@inline(always=True)
def open_elimination(ints, o, work, a):
    """Named views of the work of the elimination, which begins at a in the work array."""
    n, slots, responses, matrix = ints[o + P_ROWS], ints[o + P_SLOTS], ints[o + P_RESPONSES], ints[o + P_MATRIX]
    severed, bodies, cuts = ints[o + P_SEVERED], ints[H_BODIES], ints[H_CUTS]
    nv, nc, all_rows = ints[H_NV], ints[H_NC], n + ints[o + P_DROPPED]
    b = a + 6 * slots
    c = b + 3 * cuts
    d = c + responses
    e = d + matrix
    f = e + 5 * n
    g = f + 2 * all_rows
    h = g + 6 * severed * N_FREE
    i = h + 6 * bodies
    j = i + nv
    k = j + nc
    return EliminationWork(
        window(work, a, slots, 6),
        window(work, b, cuts, 3),
        window(work, c, responses),
        window(work, d, matrix),
        window(work, e, n),
        window(work, e + n, n),
        window(work, e + 2 * n, n),
        window(work, e + 3 * n, n),
        window(work, e + 4 * n, n),
        window(work, f, all_rows),
        window(work, f + all_rows, all_rows),
        window(work, g, 6 * severed, N_FREE),
        window(work, h, bodies, 6),
        window(work, i, nv),
        window(work, j, nc),
        window(work, k, N_DIAGNOSTICS),
    )


def view_work(ints: NDArray[np.int64], work: NDArray[Any]) -> EliminationWork:
    """The same for Python."""
    python = getattr(open_elimination, "py_func", open_elimination)
    opened: EliminationWork = python(ints, system_sizes(ints)[0], work, system_sizes(ints)[2])
    return opened
