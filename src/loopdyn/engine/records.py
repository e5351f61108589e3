"""The frozen arrays of a system and the work array, as kernels see them.

A system is one int64 and one float64 array; everything a kernel writes is in one work array whose type
(float64, or complex128 for a complex step) is that of the state. Kernels open them as named tuples of views:
:func:`open_model`, :func:`open_work`. Rows 0 .. n_bases-1 of the body tables are the bases (ground first,
then roots whose motion is given); the bodies follow, parents before children.

Each body has its own axes, which coincide with those of its parent when the coordinates of its joint are
zero, and a reference point: the origin of its joint frame. All vectors in work rows are in world axes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from loopdyn.engine.jit import inline, window

# Header of the int array.
H_ROWS, H_BASES, H_NQ, H_NV, H_CUTS, H_NC, H_FORCES, H_CODE, H_PROGRAMS, H_CONSTANTS = range(10)
H_LINEAR, H_ENTRIES, H_DEPTH, H_JETS, H_USER, H_PATH, H_COUNTED, H_SIZE = range(10, 18)

# tree[i]: integers of body i.
PARENT, KIND, Q0, V0, NV, REVERSED, N_TREE = range(7)

# body[i]: constants of body i, in its own axes, seen from its reference point.
MASS = 0
COM = 1  # 3  centre of mass
INERTIA = 4  # 6  about the centre of mass: xx yy zz xy xz yz
OFFSET = 10  # 3  where the joint sits on the parent, seen from the parent's reference point in its axes
AXES = 13  # 9  axes of the joint frame as rows (turned about for reversed joints, where that is all)
PAR = 22  # 2  constants of the joint
ORIGIN = 24  # 3  origin of the user's body frame
BODY_AXES = 27  # 9  axes of the user's body frame as columns
N_BODY = 36

# cut[k]: integers of cut joint or pair constraint k; cut_frames[k]: frames on the two bodies, axes as rows.
# C_SKIPPED: bit k set if row k of it is zero, since other rows repeat it but for rounded dimensions (`tolerated`).
C_PARENT, C_CHILD, C_KIND, C_ROW, C_ROWS, C_PROGRAM, C_SKIPPED, N_CUT = range(8)
F_POINT = 0  # 3  on the parent, body axes
F_AXES = 3  # 9
M_POINT = 12  # 3  on the child
M_AXES = 15  # 9
C_PAR = 24  # 2
N_CUT_FRAMES = 26

# linear[k]: relation of joint coordinates; entry[j]: one coordinate of it (cut joint or -1, freedom, q index).
# Its row of J is the sum over the entries of a factor times the direction of the entry's freedom. The factors are
# constant (`factor` of the model) or computed at the state, as its type L_KIND has it; those of the present state are
# left in `factor` of the work array.
L_ROW, L_FIRST, L_COUNT, L_PROGRAM, L_KIND, N_LINEAR = range(6)
E_CUT, E_FREEDOM, E_COORDINATE, N_ENTRY = range(4)

# reader[k]: first step and number of steps on the path of what force k, or entry k - forces, reads of a cut angle. The
# angle is read within half a turn of `reader_angle` plus the sum of sign * coordinate over these steps: where all axes
# on the path are parallel, the tree joints on it; else the counted coordinate. Without a path: of `near`.
# counted[k]: cut joint and freedom of an angle that is a coordinate of its own, behind those of the tree.
N_READER, N_STEP, N_COUNTED = 2, 2, 2

# force[k]: integers of force k, -1 where they do not apply; force_data[k]: floats, named in the file of the type.
# FORCE_ON: whether it acts along the line through two points, on one freedom of a joint (in the tree or cut), on other
# coordinates of the tree, or on bodies in a way of its own. FORCE_TORQUE: 1 if its load is a torque.
FORCE_CODE, FORCE_ON, FORCE_BODY1, FORCE_BODY2, FORCE_CUT, FORCE_FREEDOM, FORCE_COORDINATE = range(7)
FORCE_PROGRAM, FORCE_TORQUE, FORCE_OWN, N_FORCE_INTS = range(7, 11)  # first of its programs; an integer of the type
ON_LINE, ON_FREEDOM, ON_COORDINATES, ON_BODIES = range(4)
N_FORCE_FLOATS = 40
N_BASE_PROGRAMS = 6  # x, y, z, rx, ry, rz; -1 for none

# Work row of a body.
R = 0  # 9  rotation body -> world
W = 9  # 3  angular velocity
X = 12  # 3  position of the reference point
V = 15  # 3  its velocity
ARM = 18  # 3  from the parent's reference point to the own one
CW = 21  # 3  velocity terms of the joint in the angular acceleration
CV = 24  # 3  ... and in the acceleration of the reference point
AW = 27  # 3  angular acceleration
AV = 30  # 3  acceleration of the reference point; what accelerations are found with stands together, from X to here
ARM_COM = 33  # 3  from the reference point to the centre of mass
IJ = 36  # 6  6x6 inertia about the reference point: rigid, composite or articulated
IH = 42  # 9
IM = 51  # 6
PW = 57  # 3  bias wrench about the reference point: velocity terms less gravity and applied loads
PV = 60  # 3
N_WORK = 63

# Work row of a freedom: motion subspace S, U = I S, 1 / (S . U), reduced load.
SW = 0  # 3
SV = 3  # 3
UW = 6  # 3
UV = 9  # 3
DINV = 12
LOAD = 13
N_DOF = 14


class Model(NamedTuple):
    """Views of the frozen arrays."""

    tree: Any  # (rows, N_TREE) int
    body: Any  # (rows, N_BODY)
    cut: Any  # (cuts, N_CUT) int
    cut_frames: Any  # (cuts, N_CUT_FRAMES)
    force: Any  # (forces, N_FORCE_INTS) int
    force_data: Any  # (forces, N_FORCE_FLOATS)
    code: Any  # (code,) int, all programs
    program: Any  # (programs + 1,) int, where each begins
    constants: Any  # (constants,)
    base_programs: Any  # (bases, N_BASE_PROGRAMS) int
    base_pose: Any  # (bases, 12) position and rotation of each base at rest
    linear: Any  # (linear, N_LINEAR) int
    entry: Any  # (entries, N_ENTRY) int
    factor: Any  # (entries,)
    gravity: Any  # (3,)
    reader: Any  # (forces + entries, N_READER) int
    path: Any  # (steps, N_STEP) int: coordinate, sign
    counted: Any  # (counted, N_COUNTED) int
    reader_angle: Any  # (forces + entries,)
    armature: Any  # (nv,) inertia of rotors that turn with a freedom, kg m^2 or kg
    n_bases: int
    nq: int
    nv: int
    nc: int
    n_user: int  # the last rows: of user constraints, whose phi, gamma, rate and J the caller has written


class Work(NamedTuple):
    """Views of the work array."""

    t: Any  # (1,) time
    q: Any  # (nq,)
    v: Any  # (nv,)
    tau: Any  # (nv,) generalised forces given from outside
    a: Any  # (nv,) accelerations
    load: Any  # (nv,) generalised forces of motors, springs and friction, and tau
    body: Any  # (rows, N_WORK)
    dof: Any  # (nv, N_DOF)
    phi: Any  # (nc,)
    gamma: Any  # (nc,)
    explicit: Any  # (nc,) rate of phi that is not due to motion
    rows: Any  # (nc, 6) direction of each constraint row: torque and force on the child at M's origin
    factor: Any  # (entries,) factors of the entries of linear records at this state
    near: Any  # (forces + entries,) in: angles of cut joints without a path are read within half a turn of these
    jets: Any  # (jets, 3) variables of a program with two derivatives
    motion: Any  # (6, 3) motion of a base with two derivatives
    stack: Any  # (depth, 3)


def model_sizes(header: Any) -> tuple[int, int]:
    """Lengths of the int and the float array."""
    rows, bases, cuts, forces = (int(header[k]) for k in (H_ROWS, H_BASES, H_CUTS, H_FORCES))
    code, programs, constants = (int(header[k]) for k in (H_CODE, H_PROGRAMS, H_CONSTANTS))
    linear, entries = int(header[H_LINEAR]), int(header[H_ENTRIES])
    ints = H_SIZE + rows * N_TREE + cuts * N_CUT + forces * N_FORCE_INTS + code + programs + 1
    ints += bases * N_BASE_PROGRAMS + linear * N_LINEAR + entries * N_ENTRY
    ints += (forces + entries) * N_READER + int(header[H_PATH]) * N_STEP + int(header[H_COUNTED]) * N_COUNTED
    floats = rows * N_BODY + cuts * N_CUT_FRAMES + forces * N_FORCE_FLOATS + constants + bases * 12 + entries + 3
    floats += forces + entries + int(header[H_NV])
    return ints, floats


def work_size(header: Any) -> int:
    """Length of the work array."""
    rows, nq, nv, nc, depth = (int(header[k]) for k in (H_ROWS, H_NQ, H_NV, H_NC, H_DEPTH))
    forces, entries, jets = (int(header[k]) for k in (H_FORCES, H_ENTRIES, H_JETS))
    tables = rows * N_WORK + nv * N_DOF + 9 * nc + forces + 2 * entries + 3 * jets + 3 * N_BASE_PROGRAMS + 3 * depth
    return 1 + nq + 4 * nv + tables


@inline(always=True)
def open_model(ints, floats):
    """Named views of the frozen arrays."""
    rows, bases, cuts, forces = ints[H_ROWS], ints[H_BASES], ints[H_CUTS], ints[H_FORCES]
    linear, entries = ints[H_LINEAR], ints[H_ENTRIES]
    a = H_SIZE
    b = a + rows * N_TREE
    c = b + cuts * N_CUT
    d = c + forces * N_FORCE_INTS
    e = d + ints[H_CODE]
    f = e + ints[H_PROGRAMS] + 1
    g = f + bases * N_BASE_PROGRAMS
    h = g + linear * N_LINEAR
    r = h + entries * N_ENTRY
    s = r + (forces + entries) * N_READER
    t = s + ints[H_PATH] * N_STEP
    k = rows * N_BODY
    m = k + cuts * N_CUT_FRAMES
    n = m + forces * N_FORCE_FLOATS
    o = n + ints[H_CONSTANTS]
    p = o + bases * 12
    q = p + entries
    return Model(
        window(ints, a, rows, N_TREE),
        window(floats, 0, rows, N_BODY),
        window(ints, b, cuts, N_CUT),
        window(floats, k, cuts, N_CUT_FRAMES),
        window(ints, c, forces, N_FORCE_INTS),
        window(floats, m, forces, N_FORCE_FLOATS),
        window(ints, d, ints[H_CODE]),
        window(ints, e, ints[H_PROGRAMS] + 1),
        window(floats, n, ints[H_CONSTANTS]),
        window(ints, f, bases, N_BASE_PROGRAMS),
        window(floats, o, bases, 12),
        window(ints, g, linear, N_LINEAR),
        window(ints, h, entries, N_ENTRY),
        window(floats, p, entries),
        window(floats, q, 3),
        window(ints, r, forces + entries, N_READER),
        window(ints, s, ints[H_PATH], N_STEP),
        window(ints, t, ints[H_COUNTED], N_COUNTED),
        window(floats, q + 3, forces + entries),
        window(floats, q + 3 + forces + entries, ints[H_NV]),
        bases,
        ints[H_NQ],
        ints[H_NV],
        ints[H_NC],
        ints[H_USER],
    )


@inline(always=True)
def open_work(ints, work):
    """Named views of the work array."""
    rows, nq, nv, nc, depth = ints[H_ROWS], ints[H_NQ], ints[H_NV], ints[H_NC], ints[H_DEPTH]
    forces, entries, jets = ints[H_FORCES], ints[H_ENTRIES], ints[H_JETS]
    a = 1 + nq
    b = a + nv
    c = b + nv
    d = c + nv
    e = d + nv
    f = e + rows * N_WORK
    g = f + nv * N_DOF
    h = g + nc
    i = h + nc
    j = i + nc
    k = j + 6 * nc
    m = k + entries
    n = m + forces + entries
    o = n + 3 * jets
    p = o + 3 * N_BASE_PROGRAMS
    return Work(
        window(work, 0, 1),
        window(work, 1, nq),
        window(work, a, nv),
        window(work, b, nv),
        window(work, c, nv),
        window(work, d, nv),
        window(work, e, rows, N_WORK),
        window(work, f, nv, N_DOF),
        window(work, g, nc),
        window(work, h, nc),
        window(work, i, nc),
        window(work, j, nc, 6),
        window(work, k, entries),
        window(work, m, forces + entries),
        window(work, n, jets, 3),
        window(work, o, N_BASE_PROGRAMS, 3),
        window(work, p, depth, 3),
    )


class Head(NamedTuple):
    """The leading views of the work array."""

    t: Any
    q: Any
    v: Any
    tau: Any
    a: Any


@inline(always=True)
def open_head(ints, work):
    """State, generalised forces and accelerations alone: what integrators need."""
    nq, nv = ints[H_NQ], ints[H_NV]
    a = 1 + nq
    return Head(
        window(work, 0, 1),
        window(work, 1, nq),
        window(work, a, nv),
        window(work, a + nv, nv),
        window(work, a + 2 * nv, nv),
    )


@inline(always=True)
def open_tree(ints):
    """The table of the tree alone."""
    return window(ints, H_SIZE, ints[H_ROWS], N_TREE)
