"""How a plan and its work are laid out in the arrays of the kernels, behind those of the system."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loopdyn._jit import inline, window
from loopdyn.records import (
    H_BASES,
    H_CODE,
    H_CUTS,
    H_DEPTH,
    H_ENTRIES,
    H_FORCES,
    H_JETS,
    H_LINEAR,
    H_NC,
    H_NQ,
    H_NV,
    H_PROGRAMS,
    H_ROWS,
    H_SIZE,
    N_BASE_PROGRAMS,
    N_CUT,
    N_DOF,
    N_ENTRY,
    N_FORCE_INTS,
    N_LINEAR,
    N_TREE,
    N_WORK,
    model_sizes,
)
from loopdyn.records import work_size as system_work_size

# Header of the plan: lengths of its tables.
P_ROWS, P_SLOTS, P_RESPONSES, P_PAIRS, P_SOURCES, P_ENTRIES, P_SEVERED, P_DROPPED, P_SIZE = range(9)

# source[m]: a row of a cut joint: row of the tables, row of the matrix, its column at the child, at the parent. Rows
# that are dropped have no columns and are numbered after those of the matrix: they are looked at, not solved for.
S_ROW, S_INDEX, S_CHILD, S_PARENT, N_SOURCE = range(5)
# relation_entry[e]: place of the response of a freedom, or columns at the child and the parent of a cut joint.
R_RESPONSE, R_CHILD, R_PARENT, N_RELATION_ENTRY = range(4)

# diagnostics[k]; the last one is given: a smallest pivot below it is reported as WEAK.
SMALLEST_PIVOT, RESIDUAL, REFINEMENTS, DROPPED, WEAKEST_PIVOT, N_DIAGNOSTICS = range(6)


class PlanArrays(NamedTuple):
    """Tables of a plan; `rows` are those of the matrix of multipliers."""

    severed: Any  # (bodies,) number of the severed joint, or -1
    slot: Any  # (bodies + 1,) where the open columns of each body begin
    response: Any  # (bodies + 1,) where S^T K of each body begins: freedom by freedom, one per column
    pair_start: Any  # (bodies + 1,)
    column_row: Any  # (slots,) row that each column belongs to
    up: Any  # (slots,) place of the same column at the parent, or -1
    pair: Any  # (pairs,) place in the matrix of each pair of columns of a body
    source_start: Any  # (cuts + 1,)
    source: Any  # (sources, N_SOURCE)
    relation: Any  # (linear,) row of each relation of coordinates, numbered like those of sources
    relation_entry: Any  # (entries, N_RELATION_ENTRY)
    severed_joint: Any  # (severed, 2) body, cut
    row_start: Any  # pattern of the factor, see ordering.Pattern
    row_columns: Any
    row_places: Any
    column_start: Any
    column_rows: Any
    kept: Any  # (rows,) row of the tables that each row is


class EliminationWork(NamedTuple):
    """Views of the work of an elimination."""

    column: Any  # (slots, 6) K: torque about the body's reference point and force, for a unit multiplier
    response: Any  # (responses,) S^T K
    matrix: Any  # (rows + entries,) diagonal, then rows of the pattern
    factor: Any  # (entries,) L
    pivot: Any  # (rows,)
    inverse: Any  # (rows,)
    floor: Any  # (rows,) below which a pivot is dropped
    right: Any  # (rows + dropped,) right side of the rows, for bodies without acceleration
    step: Any  # (rows + dropped,) right side of the matrix, then its solution; or what is missing in each row
    lam: Any  # (rows,) multipliers
    scratch: Any  # (rows,)
    size: Any  # (rows + dropped,) sizes of the terms of each row
    free: Any  # (6 * severed, N_DOF) like work.dof, for the motions of severed bodies in space
    motion: Any  # (bodies, 6) what a step adds to the motion of each body
    rates: Any  # (nv,) ... and to that of each freedom
    multipliers: Any  # (nc,) lam by rows of the tables; zero for rows that were dropped
    diagnostics: Any  # (N_DIAGNOSTICS,)


def pack_plan(p: PlanArrays) -> NDArray[np.int64]:
    """One array: header, then all tables."""
    header = np.zeros(P_SIZE, np.int64)
    header[[P_ROWS, P_SLOTS, P_PAIRS, P_SOURCES, P_SEVERED]] = [
        len(p.kept), len(p.column_row), len(p.pair), len(p.source), len(p.severed_joint),
    ]  # fmt: skip
    header[P_RESPONSES], header[P_ENTRIES] = p.response[-1], len(p.row_columns)
    header[P_DROPPED] = len(p.source) + len(p.relation) - len(p.kept)
    return np.concatenate([header, *(np.asarray(x, np.int64).ravel() for x in p)])


def work_size(ints: NDArray[np.int64]) -> int:
    """Length of the whole work array: of the system and of the elimination."""
    header = ints[model_sizes(ints)[0] :]
    n, slots, responses = (int(header[k]) for k in (P_ROWS, P_SLOTS, P_RESPONSES))
    entries, severed = int(header[P_ENTRIES]), int(header[P_SEVERED])
    size = 6 * slots + responses + 9 * n + 3 * int(header[P_DROPPED]) + 2 * entries + 6 * severed * N_DOF
    size += 6 * int(ints[H_ROWS]) + int(ints[H_NV]) + int(ints[H_NC]) + N_DIAGNOSTICS
    return system_work_size(ints) + size


@inline
def plan_start(ints):
    """Where the plan begins in the int array."""
    a = H_SIZE + ints[H_ROWS] * N_TREE + ints[H_CUTS] * N_CUT + ints[H_FORCES] * N_FORCE_INTS + ints[H_CODE]
    a += ints[H_PROGRAMS] + 1 + ints[H_BASES] * N_BASE_PROGRAMS
    return a + ints[H_LINEAR] * N_LINEAR + ints[H_ENTRIES] * N_ENTRY


@inline
def work_start(ints):
    """Where the work of the elimination begins in the work array."""
    nv, nc = ints[H_NV], ints[H_NC]
    a = 1 + ints[H_NQ] + 4 * nv + ints[H_ROWS] * N_WORK + nv * N_DOF + 9 * nc + 2 * ints[H_ENTRIES]
    return a + 3 * ints[H_JETS] + 3 * N_BASE_PROGRAMS + 3 * ints[H_DEPTH]


@inline(always=True)
def open_plan(ints, o):
    """Named views of the plan, which begins at o in the int array."""
    bodies, cuts, linear, related = ints[H_ROWS], ints[H_CUTS], ints[H_LINEAR], ints[H_ENTRIES]
    n, slots, pairs = ints[o + P_ROWS], ints[o + P_SLOTS], ints[o + P_PAIRS]
    sources, entries, severed = ints[o + P_SOURCES], ints[o + P_ENTRIES], ints[o + P_SEVERED]
    a = o + P_SIZE
    b = a + bodies
    c = b + bodies + 1
    d = c + bodies + 1
    e = d + bodies + 1
    f = e + slots
    g = f + slots
    h = g + pairs
    i = h + cuts + 1
    j = i + sources * N_SOURCE
    k = j + linear
    m = k + related * N_RELATION_ENTRY
    p = m + severed * 2
    q = p + n + 1
    r = q + entries
    s = r + entries
    t = s + n + 1
    u = t + entries
    return PlanArrays(
        window(ints, a, bodies),
        window(ints, b, bodies + 1),
        window(ints, c, bodies + 1),
        window(ints, d, bodies + 1),
        window(ints, e, slots),
        window(ints, f, slots),
        window(ints, g, pairs),
        window(ints, h, cuts + 1),
        window(ints, i, sources, N_SOURCE),
        window(ints, j, linear),
        window(ints, k, related, N_RELATION_ENTRY),
        window(ints, m, severed, 2),
        window(ints, p, n + 1),
        window(ints, q, entries),
        window(ints, r, entries),
        window(ints, s, n + 1),
        window(ints, t, entries),
        window(ints, u, n),
    )


@inline(always=True)
def open_elimination(ints, o, work, a):
    """Named views of the work of the elimination, which begins at a in the work array."""
    n, slots, responses = ints[o + P_ROWS], ints[o + P_SLOTS], ints[o + P_RESPONSES]
    entries, severed, bodies = ints[o + P_ENTRIES], ints[o + P_SEVERED], ints[H_ROWS]
    nv, nc, all_rows = ints[H_NV], ints[H_NC], n + ints[o + P_DROPPED]
    b = a + 6 * slots
    c = b + responses
    d = c + n + entries
    e = d + entries
    m = e + 5 * n
    f = m + 3 * all_rows
    g = f + 6 * severed * N_DOF
    h = g + 6 * bodies
    i = h + nv
    j = i + nc
    return EliminationWork(
        window(work, a, slots, 6),
        window(work, b, responses),
        window(work, c, n + entries),
        window(work, d, entries),
        window(work, e, n),
        window(work, e + n, n),
        window(work, e + 2 * n, n),
        window(work, m, all_rows),
        window(work, m + all_rows, all_rows),
        window(work, e + 3 * n, n),
        window(work, e + 4 * n, n),
        window(work, m + 2 * all_rows, all_rows),
        window(work, f, 6 * severed, N_DOF),
        window(work, g, bodies, 6),
        window(work, h, nv),
        window(work, i, nc),
        window(work, j, N_DIAGNOSTICS),
    )


def view_work(ints: NDArray[np.int64], work: NDArray[Any]) -> EliminationWork:
    """The same for Python."""
    python = getattr(open_elimination, "py_func", open_elimination)
    opened: EliminationWork = python(ints, model_sizes(ints)[0], work, system_work_size(ints))
    return opened
