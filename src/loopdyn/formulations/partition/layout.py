"""Lists, numbers and work of `partition` in the arrays of the kernels: a block behind what the system needs.

The letters are those of the paper, see :mod:`loopdyn.formulations.partition.kernels`.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from loopdyn.engine.jit import inline, window
from loopdyn.engine.layout import FLOATS, N_ADDRESSES, WORK, Block, Opener
from loopdyn.engine.records import H_NC, H_NV, H_SOLVER

# Header: freedoms, rows kept, form of the state, whether rows are affine in the speeds, how coordinates are weighed.
P_K, P_R, P_FORM, P_AFFINE, P_WEIGHING, P_SIZE = range(N_ADDRESSES, N_ADDRESSES + 6)
# Forms of the state: all given (accelerations alone); v_D follows from v_I; q_D follows from q_I besides.
FULL, K_PLUS_N, TWO_K = range(3)
# Weighing of coordinates in the choice: by inertia, as the criterion does, or by their natural units.
BY_INERTIA, BY_GEOMETRY = range(2)
# notes: sign of det C_D, its smallest pivot, the best gain of an exchange, what the first two were at the choice;
# how far the dependent speeds were from following; the fastest speed at the ends of steps so far, in natural units.
SIGN, PIVOT, GAIN, SIGN_CHOSEN, PIVOT_CHOSEN, JUMP, FASTEST, N_NOTES = range(8)


class Partitioned(NamedTuple):
    """Named views of the block; `rows` are those of C."""

    I: Annotated[Any, "ints", "k"]
    D: Annotated[Any, "ints", "r"]
    rows: Annotated[Any, "ints", "r"]
    holonomic: Annotated[Any, "ints", "nc"]
    above: Annotated[Any, "ints", "nv"]  # the next freedom towards the root, or -1
    row_unit: Annotated[Any, "floats", "nc"]
    unit: Annotated[Any, "floats", "nv"]  # natural unit of each speed
    candidate: Annotated[Any, "floats", "nv"]  # 1 where a speed may be independent, else 0
    switch: Annotated[Any, "floats", "1"]  # gain that is worth an exchange
    J: Annotated[Any, "work", "nc, nv"]
    rate: Annotated[Any, "work", "nc"]
    M: Annotated[Any, "work", "nv, nv"]
    h: Annotated[Any, "work", "nv"]
    CD: Annotated[Any, "work", "r, r"]  # C_D, rows in natural units; then its factors
    order: Annotated[Any, "work", "r"]  # exchanges of rows in the factorisation
    A: Annotated[Any, "work", "r, k"]
    xi: Annotated[Any, "work", "r, 1"]
    MD: Annotated[Any, "work", "nv, k"]  # M D^T
    Md: Annotated[Any, "work", "k, k"]
    hd: Annotated[Any, "work", "k"]
    motion: Annotated[Any, "work", "nv"]  # a motion of all coordinates
    nothing: Annotated[Any, "work", "nv"]  # no forces
    L: Annotated[Any, "work", "nv, nv"]
    free: Annotated[Any, "work", "nv"]
    cosine: Annotated[Any, "work", "nv"]
    notes: Annotated[Any, "work", "N_NOTES"]


BLOCK = Block(
    sizes="partition_sizes",
    header="P_",
    openers=(Opener("open_partition", Partitioned),),
    address="H_SOLVER",
)

# Written by tools/openers.py from the classes above; change these and run it.


def partition_sizes(ints: Any) -> tuple[int, int, int]:
    """Lengths that the block adds to the arrays, from the headers in `ints`."""
    o = ints[H_SOLVER]
    k = ints[o + P_K]
    r = ints[o + P_R]
    nc = ints[H_NC]
    nv = ints[H_NV]
    n_ints = P_SIZE + k + r + r + nc + nv
    n_floats = nc + nv + nv + 1
    n_work = nc * nv + nc + nv * nv + nv + r * r + r + r * k + r + nv * k + k * k + k + nv + nv + nv * nv + nv + nv
    n_work += N_NOTES
    return int(n_ints), int(n_floats), int(n_work)


@inline(always=True)
def open_partition(ints, floats, work):
    """Named views of the block; `rows` are those of C."""
    o = ints[H_SOLVER]
    k = ints[o + P_K]
    r = ints[o + P_R]
    nc = ints[H_NC]
    nv = ints[H_NV]
    at_I = o + P_SIZE
    at_D = at_I + k
    at_rows = at_D + r
    at_holonomic = at_rows + r
    at_above = at_holonomic + nc
    at_row_unit = ints[o + FLOATS]
    at_unit = at_row_unit + nc
    at_candidate = at_unit + nv
    at_switch = at_candidate + nv
    at_J = ints[o + WORK]
    at_rate = at_J + nc * nv
    at_M = at_rate + nc
    at_h = at_M + nv * nv
    at_CD = at_h + nv
    at_order = at_CD + r * r
    at_A = at_order + r
    at_xi = at_A + r * k
    at_MD = at_xi + r
    at_Md = at_MD + nv * k
    at_hd = at_Md + k * k
    at_motion = at_hd + k
    at_nothing = at_motion + nv
    at_L = at_nothing + nv
    at_free = at_L + nv * nv
    at_cosine = at_free + nv
    at_notes = at_cosine + nv
    return Partitioned(
        window(ints, at_I, k),
        window(ints, at_D, r),
        window(ints, at_rows, r),
        window(ints, at_holonomic, nc),
        window(ints, at_above, nv),
        window(floats, at_row_unit, nc),
        window(floats, at_unit, nv),
        window(floats, at_candidate, nv),
        window(floats, at_switch, 1),
        window(work, at_J, nc, nv),
        window(work, at_rate, nc),
        window(work, at_M, nv, nv),
        window(work, at_h, nv),
        window(work, at_CD, r, r),
        window(work, at_order, r),
        window(work, at_A, r, k),
        window(work, at_xi, r, 1),
        window(work, at_MD, nv, k),
        window(work, at_Md, k, k),
        window(work, at_hd, k),
        window(work, at_motion, nv),
        window(work, at_nothing, nv),
        window(work, at_L, nv, nv),
        window(work, at_free, nv),
        window(work, at_cosine, nv),
        window(work, at_notes, N_NOTES),
    )
