"""Steps, joints, frames and numbers of `closure` behind the arrays of `partition`, as the kernels read them."""

from __future__ import annotations

from typing import Any, NamedTuple

from loopdyn.engine.jit import inline, window
from loopdyn.engine.records import H_NC, H_NV

# Header, at the place that the last int names: steps, bodies (and frames on lines), joints, groups, length of the
# lists, most speeds of a block, where floats and work begin.
C_STEPS, C_BODIES, C_JOINTS, C_GROUPS, C_LISTS, C_BLOCK, C_FLOATS, C_WORK, C_SIZE = range(9)

# step[i]: what is done; joints with the end (0 parent, 1 child) that is on the part that comes first; the group; where
# the lists of bodies that move begin and end. Of a line: its balls, then the two frames on it. Of a block: where in the
# lists its speeds and its rows begin and end.
S_KIND, S_JOINT, S_END, S_GROUP, S_MOVED, N_STEP = 0, 1, 5, 9, 10, 13
JOIN, HANG, READ, LINEAR, ITERATE, LINE = range(6)
PINS, SLIDE, SLIDES, SPHERE, HOOKED, LEVEL, TORUS, SKEW, HINGES, ROD_PIN, ROD_SLIDE, POINTED = range(6, 18)

# joint[j]: type, parent, child, first coordinate or -1; frame[j]: F in the parent, M in the child, constants.
J_KIND, J_PARENT, J_CHILD, J_Q0, N_JOINT = range(5)
F_POINT, F_AXES, M_POINT, M_AXES, J_PAR, N_FRAME = 0, 3, 12, 15, 24, 26

POINT, AXES, N_POSE = 0, 3, 12  # pose[b]: of a body in its part; axes are columns, the matrix by rows
WHICH, N_OWN_NOTES = 0, 1  # the group that cannot be closed


class Closing(NamedTuple):
    """Views of the own part of the arrays."""

    step: Any  # (steps, N_STEP) int
    joint: Any  # (joints, N_JOINT) int
    lists: Any  # (lists,) int: bodies that move; speeds and rows of blocks
    frame: Any  # (joints, N_FRAME)
    sign: Any  # (groups,) +1 or -1
    row_unit: Any  # (nc,)
    unit: Any  # (nv,) natural unit of each speed
    pose: Any  # (bodies and frames on lines, N_POSE)
    margin: Any  # (groups,)
    notes: Any  # (N_OWN_NOTES,)
    J: Any  # (nc, nv), of blocks alone, as all below
    rate: Any  # (nc,)
    motion: Any  # (nv,)
    change: Any  # (block,) of the speeds of a block
    normal: Any  # (block * block,)


@inline(always=True)
def open_closing(ints, floats, work):
    """Named views."""
    o = ints[ints.shape[0] - 1]
    steps, bodies, joints, groups = ints[o + C_STEPS], ints[o + C_BODIES], ints[o + C_JOINTS], ints[o + C_GROUPS]
    lists, block, f, w = ints[o + C_LISTS], ints[o + C_BLOCK], ints[o + C_FLOATS], ints[o + C_WORK]
    nv, nc = ints[H_NV], ints[H_NC]
    rows = nc if block > 0 else 0
    a = o + C_SIZE
    b = a + steps * N_STEP
    c = b + joints * N_JOINT
    g = f + joints * N_FRAME
    h = w + bodies * N_POSE
    i = h + groups + N_OWN_NOTES
    j = i + rows * nv
    return Closing(
        window(ints, a, steps, N_STEP),
        window(ints, b, joints, N_JOINT),
        window(ints, c, lists),
        window(floats, f, joints, N_FRAME),
        window(floats, g, groups),
        window(floats, g + groups, nc),
        window(floats, g + groups + nc, nv),
        window(work, w, bodies, N_POSE),
        window(work, h, groups),
        window(work, h + groups, N_OWN_NOTES),
        window(work, i, rows, nv),
        window(work, j, rows),
        window(work, j + rows, nv),
        window(work, j + rows + nv, block),
        window(work, j + rows + nv + block, block * block),
    )


def own_work(bodies: int, groups: int, block: int, nv: int, nc: int) -> int:
    """Length of the own part of the work array."""
    rows = nc if block else 0
    return bodies * N_POSE + groups + N_OWN_NOTES + rows * nv + rows + nv + block + block * block
