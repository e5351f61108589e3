"""Steps, joints, frames and work of `closure` in the arrays of the kernels: a block behind that of `partition`."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from loopdyn.engine.jit import inline, window
from loopdyn.engine.layout import FLOATS, N_ADDRESSES, WORK, Block, Opener
from loopdyn.engine.records import H_CLOSING, H_NC, H_NV

# Header: steps, poses (of bodies and of frames on lines), joints, groups, length of the lists, most speeds of a block
# that is iterated, rows of the Jacobian for these (all, or none where nothing is iterated).
C_STEPS, C_POSES, C_JOINTS, C_GROUPS, C_LISTS, C_BLOCK, C_ROWS, C_SIZE = range(N_ADDRESSES, N_ADDRESSES + 8)

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
    """Named views of the block."""

    step: Annotated[Any, "ints", "steps, N_STEP"]
    joint: Annotated[Any, "ints", "joints, N_JOINT"]
    lists: Annotated[Any, "ints", "lists"]  # bodies that move; speeds and rows of blocks
    frame: Annotated[Any, "floats", "joints, N_FRAME"]
    sign: Annotated[Any, "floats", "groups"]  # +1 or -1
    row_unit: Annotated[Any, "floats", "nc"]
    unit: Annotated[Any, "floats", "nv"]  # natural unit of each speed
    pose: Annotated[Any, "work", "poses, N_POSE"]
    margin: Annotated[Any, "work", "groups"]
    notes: Annotated[Any, "work", "N_OWN_NOTES"]
    J: Annotated[Any, "work", "rows, nv"]  # of blocks alone, as all below
    rate: Annotated[Any, "work", "rows"]
    motion: Annotated[Any, "work", "nv"]
    change: Annotated[Any, "work", "block"]  # of the speeds of a block
    normal: Annotated[Any, "work", "block * block"]


BLOCK = Block(
    sizes="closing_sizes",
    header="C_",
    openers=(Opener("open_closing", Closing),),
    address="H_CLOSING",
)

# Written by tools/openers.py from the classes above; change these and run it.


def closing_sizes(ints: Any) -> tuple[int, int, int]:
    """Lengths that the block adds to the arrays, from the headers in `ints`."""
    o = ints[H_CLOSING]
    steps = ints[o + C_STEPS]
    joints = ints[o + C_JOINTS]
    lists = ints[o + C_LISTS]
    groups = ints[o + C_GROUPS]
    nc = ints[H_NC]
    nv = ints[H_NV]
    poses = ints[o + C_POSES]
    rows = ints[o + C_ROWS]
    block = ints[o + C_BLOCK]
    n_ints = C_SIZE + steps * N_STEP + joints * N_JOINT + lists
    n_floats = joints * N_FRAME + groups + nc + nv
    n_work = poses * N_POSE + groups + N_OWN_NOTES + rows * nv + rows + nv + block + block * block
    return int(n_ints), int(n_floats), int(n_work)


@inline(always=True)
def open_closing(ints, floats, work):
    """Named views of the block."""
    o = ints[H_CLOSING]
    steps = ints[o + C_STEPS]
    joints = ints[o + C_JOINTS]
    lists = ints[o + C_LISTS]
    groups = ints[o + C_GROUPS]
    nc = ints[H_NC]
    nv = ints[H_NV]
    poses = ints[o + C_POSES]
    rows = ints[o + C_ROWS]
    block = ints[o + C_BLOCK]
    at_step = o + C_SIZE
    at_joint = at_step + steps * N_STEP
    at_lists = at_joint + joints * N_JOINT
    at_frame = ints[o + FLOATS]
    at_sign = at_frame + joints * N_FRAME
    at_row_unit = at_sign + groups
    at_unit = at_row_unit + nc
    at_pose = ints[o + WORK]
    at_margin = at_pose + poses * N_POSE
    at_notes = at_margin + groups
    at_J = at_notes + N_OWN_NOTES
    at_rate = at_J + rows * nv
    at_motion = at_rate + rows
    at_change = at_motion + nv
    at_normal = at_change + block
    return Closing(
        window(ints, at_step, steps, N_STEP),
        window(ints, at_joint, joints, N_JOINT),
        window(ints, at_lists, lists),
        window(floats, at_frame, joints, N_FRAME),
        window(floats, at_sign, groups),
        window(floats, at_row_unit, nc),
        window(floats, at_unit, nv),
        window(work, at_pose, poses, N_POSE),
        window(work, at_margin, groups),
        window(work, at_notes, N_OWN_NOTES),
        window(work, at_J, rows, nv),
        window(work, at_rate, rows),
        window(work, at_motion, nv),
        window(work, at_change, block),
        window(work, at_normal, block * block),
    )
