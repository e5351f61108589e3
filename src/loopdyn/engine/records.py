"""The frozen arrays of a system and the work array, as kernels see them.

A system is one int64 and one float64 array; everything a kernel writes is in one work array whose type
(float64, or complex128 for a complex step) is that of the state. Kernels open them as named tuples of views:
:func:`open_model`, :func:`open_work`. Rows 0 .. n_bases-1 of the body tables are the bases (ground first,
then roots whose motion is given); the bodies follow, parents before children.

Each body has its own axes, which coincide with those of its parent when the coordinates of its joint are
zero, and a reference point: the origin of its joint frame. All vectors in work rows are in world axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

from loopdyn.engine.jit import inline, window
from loopdyn.engine.layout import Block, Floats, Ints, Opener, fill, opened

# Header of the int array: lengths, that of bodies with the bases; addresses of blocks (`engine.layout`), 0 for none.
H_BODIES, H_BASES, H_NQ, H_NV, H_CUTS, H_NC, H_FORCES, H_CODE, H_PROGRAMS, H_CONSTANTS = range(10)
H_LINEAR, H_ENTRIES, H_DEPTH, H_JETS, H_USER, H_PATH, H_COUNTED, H_TERMS = range(10, 18)
H_SOLVER, H_CLOSING, H_MONITOR, H_SIZE = range(18, 22)

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
# C_SKIPPED: bit k set if row k of it is zero, since it depends on other rows up to rounded dimensions (`tolerated`).
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

# term[k]: what laws of forces read through measures: a point of a body (row, and `term_point` in its axes) or, where
# the row is -1, a joint coordinate: cut joint or -1, freedom, q index or -1.
T_BODY, T_CUT, T_FREEDOM, T_COORDINATE, N_TERM = range(5)

# reader[k]: first step and number of steps on the path of what force k, entry k - forces, or term k - forces - entries
# reads of a cut angle. The angle is read within half a turn of `reader_angle` plus the sum of sign * coordinate over
# these steps: where all axes on the path are parallel, the tree joints on it; else the counted coordinate. Without a
# path: of `near`.
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
    """Named views of the frozen arrays."""

    tree: Annotated[Any, "ints", "bodies, N_TREE"]
    body: Annotated[Any, "floats", "bodies, N_BODY"]
    cut: Annotated[Any, "ints", "cuts, N_CUT"]
    cut_frames: Annotated[Any, "floats", "cuts, N_CUT_FRAMES"]
    force: Annotated[Any, "ints", "forces, N_FORCE_INTS"]
    force_data: Annotated[Any, "floats", "forces, N_FORCE_FLOATS"]
    code: Annotated[Any, "ints", "code"]  # all programs
    program: Annotated[Any, "ints", "programs + 1"]  # where each begins
    constants: Annotated[Any, "floats", "constants"]
    base_programs: Annotated[Any, "ints", "bases, N_BASE_PROGRAMS"]
    base_pose: Annotated[Any, "floats", "bases, 12"]  # position and rotation of each base at rest
    linear: Annotated[Any, "ints", "linear, N_LINEAR"]
    entry: Annotated[Any, "ints", "entries, N_ENTRY"]
    factor: Annotated[Any, "floats", "entries"]
    gravity: Annotated[Any, "floats", "3"]
    term: Annotated[Any, "ints", "terms, N_TERM"]
    term_point: Annotated[Any, "floats", "terms, 3"]
    reader: Annotated[Any, "ints", "forces + entries + terms, N_READER"]
    path: Annotated[Any, "ints", "path, N_STEP"]  # coordinate, sign
    counted: Annotated[Any, "ints", "counted, N_COUNTED"]
    reader_angle: Annotated[Any, "floats", "forces + entries + terms"]
    armature: Annotated[Any, "floats", "nv"]  # inertia of rotors that turn with a freedom, kg m^2 or kg
    n_bases: Annotated[int, "bases"]
    nq: Annotated[int, "nq"]
    nv: Annotated[int, "nv"]
    nc: Annotated[int, "nc"]
    n_user: Annotated[int, "user"]  # the last rows: of user constraints; the caller has written phi, gamma, rate and J


class Work(NamedTuple):
    """Named views of the work array."""

    t: Annotated[Any, "work", "1"]  # time
    q: Annotated[Any, "work", "nq"]
    v: Annotated[Any, "work", "nv"]
    tau: Annotated[Any, "work", "nv"]  # generalised forces given from outside
    a: Annotated[Any, "work", "nv"]  # accelerations
    load: Annotated[Any, "work", "nv"]  # generalised forces of motors, springs and friction, and tau
    body: Annotated[Any, "work", "bodies, N_WORK"]
    dof: Annotated[Any, "work", "nv, N_DOF"]
    phi: Annotated[Any, "work", "nc"]
    gamma: Annotated[Any, "work", "nc"]
    phi_t: Annotated[Any, "work", "nc"]  # rate of phi that is not due to motion
    rows: Annotated[Any, "work", "nc, 6"]  # direction of each row: torque and force on the child at M's origin
    factor: Annotated[Any, "work", "entries"]  # factors of the entries of linear records at this state
    near: Annotated[Any, "work", "forces + entries + terms"]  # in: angles of cut joints without a path are read within
    # half a turn of these
    jets: Annotated[Any, "work", "jets, 3"]  # variables of a program with two derivatives
    motion: Annotated[Any, "work", "N_BASE_PROGRAMS, 3"]  # motion of a base with two derivatives
    stack: Annotated[Any, "work", "depth, 3"]


class Head(NamedTuple):
    """State, generalised forces and accelerations alone: what integrators need."""

    t: Any
    q: Any
    v: Any
    tau: Any
    a: Any


BLOCK = Block(
    sizes="system_sizes",
    header="H_",
    openers=(
        Opener("open_model", Model),
        Opener("open_work", Work),
        Opener("open_head", Work, Head),
        Opener("open_tree", Model, "tree"),
    ),
)


def pack_model(header: Mapping[int, int], **tables: Any) -> tuple[Ints, Floats]:
    """The frozen arrays of the lengths in a header, by place, and all tables of :class:`Model`, by name."""
    ints = np.zeros(H_SIZE, np.int64)
    ints[list(header)] = list(header.values())
    n_ints, n_floats, _ = system_sizes(ints)
    ints, floats = np.concatenate([ints, np.zeros(n_ints - H_SIZE, np.int64)]), np.zeros(n_floats)
    fill(opened(open_model, ints, floats), **tables)
    return ints, floats


# Written by tools/openers.py from the classes above; change these and run it.


def system_sizes(ints: Any) -> tuple[int, int, int]:
    """Lengths of the arrays, from the headers in `ints`."""
    bodies = ints[H_BODIES]
    cuts = ints[H_CUTS]
    forces = ints[H_FORCES]
    code = ints[H_CODE]
    programs = ints[H_PROGRAMS]
    bases = ints[H_BASES]
    linear = ints[H_LINEAR]
    entries = ints[H_ENTRIES]
    terms = ints[H_TERMS]
    path = ints[H_PATH]
    counted = ints[H_COUNTED]
    constants = ints[H_CONSTANTS]
    nv = ints[H_NV]
    nq = ints[H_NQ]
    nc = ints[H_NC]
    jets = ints[H_JETS]
    depth = ints[H_DEPTH]
    n_ints = H_SIZE + bodies * N_TREE + cuts * N_CUT + forces * N_FORCE_INTS + code + programs + 1
    n_ints += bases * N_BASE_PROGRAMS + linear * N_LINEAR + entries * N_ENTRY + terms * N_TERM
    n_ints += (forces + entries + terms) * N_READER + path * N_STEP + counted * N_COUNTED
    n_floats = bodies * N_BODY + cuts * N_CUT_FRAMES + forces * N_FORCE_FLOATS + constants + bases * 12 + entries + 3
    n_floats += terms * 3 + forces + entries + terms + nv
    n_work = 1 + nq + nv + nv + nv + nv + bodies * N_WORK + nv * N_DOF + nc + nc + nc + nc * 6 + entries
    n_work += forces + entries + terms + jets * 3 + N_BASE_PROGRAMS * 3 + depth * 3
    return int(n_ints), int(n_floats), int(n_work)


@inline(always=True)
def open_model(ints, floats):
    """Named views of the frozen arrays."""
    bodies = ints[H_BODIES]
    cuts = ints[H_CUTS]
    forces = ints[H_FORCES]
    code = ints[H_CODE]
    programs = ints[H_PROGRAMS]
    bases = ints[H_BASES]
    linear = ints[H_LINEAR]
    entries = ints[H_ENTRIES]
    terms = ints[H_TERMS]
    path = ints[H_PATH]
    counted = ints[H_COUNTED]
    constants = ints[H_CONSTANTS]
    nv = ints[H_NV]
    nq = ints[H_NQ]
    nc = ints[H_NC]
    user = ints[H_USER]
    at_tree = H_SIZE
    at_cut = at_tree + bodies * N_TREE
    at_force = at_cut + cuts * N_CUT
    at_code = at_force + forces * N_FORCE_INTS
    at_program = at_code + code
    at_base_programs = at_program + programs + 1
    at_linear = at_base_programs + bases * N_BASE_PROGRAMS
    at_entry = at_linear + linear * N_LINEAR
    at_term = at_entry + entries * N_ENTRY
    at_reader = at_term + terms * N_TERM
    at_path = at_reader + (forces + entries + terms) * N_READER
    at_counted = at_path + path * N_STEP
    at_body = 0
    at_cut_frames = at_body + bodies * N_BODY
    at_force_data = at_cut_frames + cuts * N_CUT_FRAMES
    at_constants = at_force_data + forces * N_FORCE_FLOATS
    at_base_pose = at_constants + constants
    at_factor = at_base_pose + bases * 12
    at_gravity = at_factor + entries
    at_term_point = at_gravity + 3
    at_reader_angle = at_term_point + terms * 3
    at_armature = at_reader_angle + forces + entries + terms
    return Model(
        window(ints, at_tree, bodies, N_TREE),
        window(floats, at_body, bodies, N_BODY),
        window(ints, at_cut, cuts, N_CUT),
        window(floats, at_cut_frames, cuts, N_CUT_FRAMES),
        window(ints, at_force, forces, N_FORCE_INTS),
        window(floats, at_force_data, forces, N_FORCE_FLOATS),
        window(ints, at_code, code),
        window(ints, at_program, programs + 1),
        window(floats, at_constants, constants),
        window(ints, at_base_programs, bases, N_BASE_PROGRAMS),
        window(floats, at_base_pose, bases, 12),
        window(ints, at_linear, linear, N_LINEAR),
        window(ints, at_entry, entries, N_ENTRY),
        window(floats, at_factor, entries),
        window(floats, at_gravity, 3),
        window(ints, at_term, terms, N_TERM),
        window(floats, at_term_point, terms, 3),
        window(ints, at_reader, forces + entries + terms, N_READER),
        window(ints, at_path, path, N_STEP),
        window(ints, at_counted, counted, N_COUNTED),
        window(floats, at_reader_angle, forces + entries + terms),
        window(floats, at_armature, nv),
        bases,
        nq,
        nv,
        nc,
        user,
    )


@inline(always=True)
def open_work(ints, work):
    """Named views of the work array."""
    nq = ints[H_NQ]
    nv = ints[H_NV]
    bodies = ints[H_BODIES]
    nc = ints[H_NC]
    entries = ints[H_ENTRIES]
    terms = ints[H_TERMS]
    forces = ints[H_FORCES]
    jets = ints[H_JETS]
    depth = ints[H_DEPTH]
    at_t = 0
    at_q = at_t + 1
    at_v = at_q + nq
    at_tau = at_v + nv
    at_a = at_tau + nv
    at_load = at_a + nv
    at_body = at_load + nv
    at_dof = at_body + bodies * N_WORK
    at_phi = at_dof + nv * N_DOF
    at_gamma = at_phi + nc
    at_phi_t = at_gamma + nc
    at_rows = at_phi_t + nc
    at_factor = at_rows + nc * 6
    at_near = at_factor + entries
    at_jets = at_near + forces + entries + terms
    at_motion = at_jets + jets * 3
    at_stack = at_motion + N_BASE_PROGRAMS * 3
    return Work(
        window(work, at_t, 1),
        window(work, at_q, nq),
        window(work, at_v, nv),
        window(work, at_tau, nv),
        window(work, at_a, nv),
        window(work, at_load, nv),
        window(work, at_body, bodies, N_WORK),
        window(work, at_dof, nv, N_DOF),
        window(work, at_phi, nc),
        window(work, at_gamma, nc),
        window(work, at_phi_t, nc),
        window(work, at_rows, nc, 6),
        window(work, at_factor, entries),
        window(work, at_near, forces + entries + terms),
        window(work, at_jets, jets, 3),
        window(work, at_motion, N_BASE_PROGRAMS, 3),
        window(work, at_stack, depth, 3),
    )


@inline(always=True)
def open_head(ints, work):
    """State, generalised forces and accelerations alone: what integrators need."""
    nq = ints[H_NQ]
    nv = ints[H_NV]
    at_t = 0
    at_q = at_t + 1
    at_v = at_q + nq
    at_tau = at_v + nv
    at_a = at_tau + nv
    return Head(
        window(work, at_t, 1),
        window(work, at_q, nq),
        window(work, at_v, nv),
        window(work, at_tau, nv),
        window(work, at_a, nv),
    )


@inline(always=True)
def open_tree(ints):
    """The segment `tree` alone."""
    bodies = ints[H_BODIES]
    at_tree = H_SIZE
    return window(ints, at_tree, bodies, N_TREE)
