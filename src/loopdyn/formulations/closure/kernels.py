"""Dependent coordinates from independent ones by inverse kinematics: q_D = g(q_I, t), step by step.

Blajer, Schiehlen, Schirm 1993, "Dynamic analysis of constrained multibody systems using inverse kinematics", eqs. (5),
(15)-(18). Bodies whose relative poses are known form a *part*; it has a frame of its own. A joint whose coordinates are
known joins two parts; a *group*, three parts joined in a ring by three joints, is solved in closed form and makes one
part of them; then coordinates of joints inside a part are read from the poses of the two bodies. What has no closed
form is iterated, in blocks that are as small as they can be. The order of these steps is found in advance by
:mod:`loopdyn.formulations.closure.plan`; here they are done.

====================  ====================  ==========================================================
paper, specification  code                  meaning
====================  ====================  ==========================================================
a, b                  ``r1``, ``r2``        sides of the triangle of a group of three pins
d                     ``w``                 from its first to its last pin, in the part that stands still
s                     ``sign``              which of the two closures: sign of the determinant of the group
discriminant          ``margin``            of a group, in natural units: zero where it is singular, negative if open
====================  ====================  ==========================================================

Deviations: the paper and the specification name groups by the two unknown joints that remain when a third one is cut
(RR, RP, PR, PP). What is solved does not depend on which of the three is cut, so there are three planar groups only:
three pins, two pins and a slide, one pin and two slides. In space, three hinges whose axes meet in a point are a
triangle on a sphere; a rod with a ball at each end closes a pin or a slide (RSSR, RSSP): the rod turns the shortest way
from where its tree joint has it, so its idle spin is left as it is. With a universal joint in the place of one ball the
rod is placed by a step of its own, which points it from one to the other.
Angles are nowhere computed by arccos: bodies are turned by sines and cosines, and joint angles are read at the end by
atan2, with as many turns as bring them nearest to what they were.
"""

from typing import Any, NamedTuple

import numpy as np

from loopdyn.constraints import motion_in_time
from loopdyn.engine.jit import inline, kernel, window
from loopdyn.engine.records import H_NC, H_NV, L_COUNT, L_FIRST, L_PROGRAM, open_model, open_work
from loopdyn.engine.status import CANNOT_CLOSE, FINE, NOT_CLOSED, NOT_THERE, SINGULAR_SET
from loopdyn.formulations.closure.torus import (
    NONE,
    along_circle,
    angles,
    at_point,
    real_roots,
    sharpened,
    torus_of,
    value_at,
)
from loopdyn.formulations.partition import kernels as blajer
from loopdyn.formulations.partition.kernels import CLOSED, CLOSING_STEPS, STILL_CLOSED, cholesky, move, solve_cholesky
from loopdyn.joints.base import (
    CYLINDRICAL,
    FREE,
    HELICAL,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    TRANSLATIONAL,
    UNIVERSAL,
)
from loopdyn.loops.elimination.layout import plan_start, work_start
from loopdyn.spatial.plucker import add, cross, dot, get3, get9, mul, neg, put3, put9, rot, rot_t, scale, sub, transpose
from loopdyn.spatial.rotations import atan2, axis_rotation, matrix_quaternion, quaternion_matrix
from loopdyn.tree.jacobian import closure

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

# Of the discriminant, in natural units: rounding, where a group is stretched. Below it there is no closure.
ROUNDING = 1e-12
# ... below which a motion is at the limit of its coordinates: A is larger than 1e4 there, and its rounding errors would
# make steps creep. The pose is then within 1e-4 rad of the limit, the independent coordinate within 1e-8.
AT_LIMIT = 1e-8
# ... and below which the end of a step ends the motion: nearer, steps are too short to move the coordinate at all.
ENDS = 4.0 * AT_LIMIT
TURNED = 1e-300  # share of a squared length: a rod that is turned by less than rounding is left as it is
# Share of the fastest speed by which dependent speeds may be off at the end of a step that is taken: measured were 2e-3
# at rtol 1e-2, less below it, and 1 where a step went over to another branch (docs/decisions/0007-other-branches.md).
LANDED = 0.05
ZERO, IDENTITY = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
X_AXIS, Y_AXIS, Z_AXIS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


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


# ------------------------------------------------------------------------------------------------ one joint


@inline
def joint_pose(kind, par, q, i):
    """Displacement and rotation of M against F, in F axes, at the coordinates q[i:]."""
    d, E = ZERO, IDENTITY
    if kind == REVOLUTE:
        E = axis_rotation(Z_AXIS, q[i])
    elif kind == PRISMATIC:
        d = (0.0, 0.0, q[i])
    elif kind == HELICAL:
        d, E = (0.0, 0.0, par[0] * q[i]), axis_rotation(Z_AXIS, q[i])
    elif kind == CYLINDRICAL:
        d, E = (0.0, 0.0, q[i + 1]), axis_rotation(Z_AXIS, q[i])
    elif kind == PLANAR:
        d, E = (q[i], q[i + 1], 0.0), axis_rotation(Z_AXIS, q[i + 2])
    elif kind == TRANSLATIONAL:
        d = (q[i], q[i + 1], q[i + 2])
    elif kind == UNIVERSAL:
        E = mul(axis_rotation(X_AXIS, q[i]), axis_rotation((par[0], par[1], 0.0), q[i + 1]))
    elif kind == SPHERICAL:
        E = quaternion_matrix((q[i], q[i + 1], q[i + 2], q[i + 3]))
    elif kind == FREE:
        d = (q[i], q[i + 1], q[i + 2])
        E = quaternion_matrix((q[i + 3], q[i + 4], q[i + 5], q[i + 6]))
    return d, E


@inline
def about_z(E):
    """Angle of a rotation about z."""
    return atan2(E[3] - E[1], E[0] + E[4])


@inline
def near(x, before):
    """The angle x with as many turns as bring it nearest to what it was."""
    return x + 2.0 * np.pi * np.floor((before.real - x.real) / (2.0 * np.pi) + 0.5)


@inline
def put_quaternion(q, i, E):
    """q[i:i+4] of the rotation E, of the two the one nearer to what it was."""
    w, x, y, z = matrix_quaternion(E)
    s = -1.0 if (w * q[i] + x * q[i + 1] + y * q[i + 2] + z * q[i + 3]).real < 0.0 else 1.0
    q[i], q[i + 1], q[i + 2], q[i + 3] = s * w, s * x, s * y, s * z


@inline
def read_joint(kind, par, d, E, q, i):
    """Coordinates q[i:] of the displacement d and the rotation E of M against F, in F axes."""
    if kind == REVOLUTE:
        q[i] = near(about_z(E), q[i])
    elif kind == PRISMATIC:
        q[i] = d[2]
    elif kind == HELICAL:
        q[i] = near(about_z(E), d[2] / par[0])
    elif kind == CYLINDRICAL:
        q[i], q[i + 1] = near(about_z(E), q[i]), d[2]
    elif kind == PLANAR:
        q[i], q[i + 1], q[i + 2] = d[0], d[1], near(about_z(E), q[i + 2])
    elif kind == TRANSLATIONAL:
        q[i], q[i + 1], q[i + 2] = d
    elif kind == UNIVERSAL:
        a2 = (par[0], par[1], 0.0)
        turned = rot(E, a2)
        first = atan2(turned[2], turned[1])
        R2 = mul(axis_rotation(X_AXIS, -first), E)
        sine = 0.5 * dot(a2, (R2[7] - R2[5], R2[2] - R2[6], R2[3] - R2[1]))
        second = atan2(sine, 0.5 * (R2[0] + R2[4] + R2[8] - 1.0))
        q[i], q[i + 1] = near(first, q[i]), near(second, q[i + 1])
    elif kind == SPHERICAL:
        put_quaternion(q, i, E)
    elif kind == FREE:
        q[i], q[i + 1], q[i + 2] = d
        put_quaternion(q, i + 3, E)


@inline
def frame_at(C, j, end):
    """Origin and axes (columns) of the frame of joint j on its parent (end 0) or child (end 1), in that body's part."""
    b, k = C.joint[j, J_PARENT + end], M_POINT * end
    R = get9(C.pose, b, AXES)
    return add(get3(C.pose, b, POINT), rot(R, get3(C.frame, j, k))), mul(R, get9(C.frame, j, k + F_AXES))


@inline
def column(R, k):
    """Column k of a matrix."""
    return (R[k], R[3 + k], R[6 + k])


@inline
def within(n, u):
    """The part of u perpendicular to the unit vector n."""
    return sub(u, scale(dot(n, u), n))


@inline
def move_part(C, start, stop, p, R):
    """Bodies of a list: x -> p + R x."""
    for n in range(start, stop):
        b = C.lists[n]
        put3(C.pose, b, POINT, add(p, rot(R, get3(C.pose, b, POINT))))
        put9(C.pose, b, AXES, mul(R, get9(C.pose, b, AXES)))


@inline
def turning(n, u, r):
    """Rotation about the unit vector n that brings u into the half-plane of r."""
    u, r = within(n, u), within(n, r)
    return axis_rotation(n, atan2(dot(n, cross(u, r)), dot(u, r)))


@inline
def turn_part(C, start, stop, centre, n, u, r):
    """Turn a part about the axis n through `centre` so that u points along r, as far as it can."""
    R = turning(n, u, r)
    move_part(C, start, stop, sub(centre, rot(R, centre)), R)


@inline
def attach(C, j, end, start, stop, d, E):
    """Move the part at the other end of joint j, a list of bodies, so that M is at d, E from F; `end` stands still."""
    p, R = frame_at(C, j, end)
    p2, R2 = frame_at(C, j, 1 - end)
    if end == 0:
        goal, axes = add(p, rot(R, d)), mul(R, E)
    else:
        axes = mul(R, transpose(E))
        goal = sub(p, rot(axes, d))
    turn = mul(axes, transpose(R2))
    move_part(C, start, stop, sub(goal, rot(turn, p2)), turn)


@inline
def ring(C, s):
    """Joints of a step, their ends on the part that comes first, and where its lists begin."""
    step = C.step[s]
    return (
        (step[S_JOINT], step[S_JOINT + 1], step[S_JOINT + 2]),
        (step[S_END], step[S_END + 1], step[S_END + 2]),
        (step[S_MOVED], step[S_MOVED + 1], step[S_MOVED + 2]),
    )


@inline
def hang_both(C, s):
    """The two parts that move, at the zero of their joints with the one that stands still."""
    (j1, _, j3), (e1, _, e3), (m1, m2, m3) = ring(C, s)
    attach(C, j1, e1, m1, m2, ZERO, IDENTITY)
    attach(C, j3, 1 - e3, m2, m3, ZERO, IDENTITY)


# --------------------------------------------------------------------------------------------- planar groups


@inline
def close_pins(C, s, g):
    """Three pins: a triangle of three known sides, R(f)(a + R(p) b) = d [Blajer1993 eqs. (15)-(18)]."""
    (j1, j2, j3), (e1, e2, e3), (m1, m2, m3) = ring(C, s)
    hang_both(C, s)
    a, A = frame_at(C, j1, e1)
    n = column(A, 2)
    b1, _ = frame_at(C, j2, e2)
    b2, _ = frame_at(C, j2, 1 - e2)
    c, _ = frame_at(C, j3, 1 - e3)
    u1, u2, w = within(n, sub(b1, a)), within(n, sub(b2, c)), within(n, sub(c, a))
    l1, l2, dd = np.sqrt(dot(u1, u1)), np.sqrt(dot(u2, u2)), dot(w, w)
    area = ((l1 + l2) * (l1 + l2) - dd) * (dd - (l1 - l2) * (l1 - l2))  # 16 times its square
    margin = area / (4.0 * l1 * l1 * l2 * l2)
    C.margin[g] = margin
    if not margin.real > -ROUNDING:
        return False
    root = np.sqrt(area) if area.real > 0.0 else 0.0 * area
    x, y = 0.5 * (1.0 + (l1 * l1 - l2 * l2) / dd), -0.5 * C.sign[g] * root / dd
    r1 = add(scale(x, w), scale(y, cross(n, w)))
    turn_part(C, m1, m2, a, n, u1, r1)
    turn_part(C, m2, m3, c, n, u2, sub(r1, w))
    return True


@inline
def direction(C, j, end):
    """Way that the part at the other end of the slide j goes as its coordinate grows; `end` stands still."""
    _, R = frame_at(C, j, end)
    return column(R, 2) if end == 0 else neg(column(R, 2))


@inline
def close_slide(C, s, g):
    """Two pins and a slide: x e + R(p) b = d, the slide between the parts that stand still and that slides."""
    (j1, j2, j3), (e1, e2, e3), (m1, m2, m3) = ring(C, s)
    hang_both(C, s)
    a, A = frame_at(C, j1, e1)
    n, e = column(A, 2), direction(C, j3, 1 - e3)
    b1, _ = frame_at(C, j2, e2)
    b2, _ = frame_at(C, j2, 1 - e2)
    u1, w = within(n, sub(b1, a)), within(n, sub(b2, a))
    ll, along = dot(u1, u1), dot(w, e)
    across = within(e, w)
    square = ll - dot(across, across)
    margin = square / ll
    C.margin[g] = margin
    if not margin.real > -ROUNDING:
        return False
    root = np.sqrt(square) if square.real > 0.0 else 0.0 * square
    x = -along + C.sign[g] * root
    move_part(C, m2, m3, scale(x, e), IDENTITY)
    turn_part(C, m1, m2, a, n, u1, add(w, scale(x, e)))
    return True


@inline
def close_slides(C, s, g):
    """A pin and two slides: x1 e1 + x2 e2 = d, one closure."""
    (j1, j2, j3), (e1, e2, e3), (m1, m2, m3) = ring(C, s)
    attach(C, j3, 1 - e3, m2, m3, ZERO, IDENTITY)
    attach(C, j2, 1 - e2, m1, m2, ZERO, IDENTITY)
    first, second = direction(C, j3, 1 - e3), direction(C, j2, 1 - e2)
    a, _ = frame_at(C, j1, e1)
    b, _ = frame_at(C, j1, 1 - e1)
    N, d = cross(first, second), sub(a, b)
    sine = dot(N, N)
    C.margin[g] = sine
    if not sine.real > ROUNDING:
        return False
    x, y = dot(N, cross(d, second)) / sine, dot(N, cross(first, d)) / sine
    move_part(C, m2, m3, scale(x, first), IDENTITY)
    move_part(C, m1, m2, add(scale(x, first), scale(y, second)), IDENTITY)
    return True


# ---------------------------------------------------------------------------------------- triangles on a sphere


@inline
def apex(n1, n2, c1, c2, rr, sign):
    """r with r.n1 = c1, r.n2 = c2, r.r = rr, on the side `sign` of n1 x n2; and the squared sine of its dihedral angle.

    n1 and n2 are unit vectors. The sine is zero where the two r meet, negative (its square) where there is none.
    """
    N, c = cross(n1, n2), dot(n1, n2)
    ss = dot(N, N)
    x, y = (c1 - c * c2) / ss, (c2 - c * c1) / ss
    square = rr - c1 * x - c2 * y
    margin = square * ss * rr / ((rr - c1 * c1) * (rr - c2 * c2))
    root = sign * (np.sqrt(square / ss) if square.real > 0.0 else 0.0 * square)
    return add(add(scale(x, n1), scale(y, n2)), scale(root, N)), margin


@inline
def close_sphere(C, s, g):
    """Three hinges whose axes meet in a point: the axis of the second one, r, has known angles with the other two."""
    (j1, j2, j3), (e1, e2, e3), (m1, m2, m3) = ring(C, s)
    hang_both(C, s)
    a, A1 = frame_at(C, j1, e1)
    c, A3 = frame_at(C, j3, 1 - e3)
    n1, n3 = column(A1, 2), column(A3, 2)
    _, B1 = frame_at(C, j2, e2)
    _, B3 = frame_at(C, j2, 1 - e2)
    u1, u3 = column(B1, 2), column(B3, 2)
    r, margin = apex(n1, n3, dot(n1, u1), dot(n3, u3), 1.0, C.sign[g])
    C.margin[g] = margin
    if not margin.real > -ROUNDING:
        return False
    turn_part(C, m1, m2, a, n1, u1, r)
    turn_part(C, m2, m3, c, n3, u3, r)
    return True


@inline
def close_hooked(C, s, g):
    """A hinge and a universal joint on its axis: the axis u of the joint on the part that moves turns to r."""
    (j1, j2, _), (e1, e2, _), (m1, m2, _) = ring(C, s)
    attach(C, j1, e1, m1, m2, ZERO, IDENTITY)
    a, A = frame_at(C, j1, e1)
    _, F = frame_at(C, j2, 0)
    _, M = frame_at(C, j2, 1)
    n, first = column(A, 2), column(F, 0)
    second = rot(M, (C.frame[j2, J_PAR], C.frame[j2, J_PAR + 1], 0.0))
    u, v = (first, second) if e2 == 0 else (second, first)
    r, margin = apex(n, v, dot(n, u), C.frame[j2, J_PAR], 1.0, C.sign[g])
    C.margin[g] = margin
    if not margin.real > -ROUNDING:
        return False
    turn_part(C, m1, m2, a, n, u, r)
    return True


@inline
def close_level(C, s, g):
    """A hinge that brings a ball into the plane in which the joints behind it can move: R1(f) r = w.

    Behind the hinge are hung, at any of their coordinates, two parts that move in planes with the normal n2 and end at
    the ball. So r, seen from the hinge, has the height along n2 that the ball has there.
    """
    (j1, j2, j3), (e1, _, e3), (m1, m2, _) = ring(C, s)
    a, A = frame_at(C, j1, e1)
    _, B = frame_at(C, j2, 0)
    b, _ = frame_at(C, j3, e3)
    d, _ = frame_at(C, j3, 1 - e3)
    n1, n2, w = column(A, 2), column(B, 2), sub(d, a)
    r, margin = apex(n1, n2, dot(n1, w), dot(n2, sub(b, a)), dot(w, w), C.sign[g])
    C.margin[g] = margin
    if not margin.real > -ROUNDING:
        return False
    turn_part(C, m1, m2, a, n1, r, w)
    return True


@inline
def close_pointed(C, s, g):
    """A part held by a universal joint and a ball: R1(f) R2(p) w = d, with w and d from one to the other.

    w is seen from the child of the universal joint, d from its parent. r = R2(p) w has the component of w along the
    second axis and, since R1 turns it into d, that of d along the first.
    """
    (j1, j2, _), (e1, e2, _), (m1, m2, _) = ring(C, s)
    p, F = frame_at(C, j1, 0)
    p2, M = frame_at(C, j1, 1)
    near_end = 1 - e2 if e1 == 0 else e2  # of the ball, on the side of the parent of the universal joint
    b, _ = frame_at(C, j2, near_end)
    b2, _ = frame_at(C, j2, 1 - near_end)
    d, w = rot_t(F, sub(b, p)), rot_t(M, sub(b2, p2))
    second = (C.frame[j1, J_PAR], C.frame[j1, J_PAR + 1], 0.0)
    r, margin = apex(X_AXIS, second, d[0], dot(second, w), dot(w, w), C.sign[g])
    C.margin[g] = margin
    if not margin.real > -ROUNDING:
        return False
    attach(C, j1, e1, m1, m2, ZERO, mul(turning(X_AXIS, r, d), turning(second, w, r)))
    return True


# ----------------------------------------------------------------------------------------- two skew hinges, a ball


@inline
def put_line(C, s):
    """Frames of the hinge that two balls between the same parts are: at the first ball, z towards the second."""
    step = C.step[s]
    j1, j2 = step[S_JOINT], step[S_JOINT + 1]
    for side in range(2):
        e1, e2 = step[S_END], step[S_END + 1]
        p, _ = frame_at(C, j1, e1 if side == 0 else 1 - e1)
        p2, _ = frame_at(C, j2, e2 if side == 0 else 1 - e2)
        d = sub(p2, p)
        z = scale(1.0 / np.sqrt(dot(d, d)), d)
        aside = cross(z, X_AXIS if (z[0] * z[0]).real < 0.5 else Y_AXIS)
        x = scale(1.0 / np.sqrt(dot(aside, aside)), aside)
        y = cross(z, x)
        put3(C.pose, step[S_JOINT + 2 + side], POINT, p)
        put9(C.pose, step[S_JOINT + 2 + side], AXES, (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]))


@inline
def torus_behind(C, j1, e1, j2, e2, ball, e3):
    """The torus on which two hinges, hung at their zeros, let the end of the last part at a ball move."""
    a1, A1 = frame_at(C, j1, e1)
    a2, A2 = frame_at(C, j2, e2)
    b, _ = frame_at(C, ball, e3)
    return torus_of(a1, column(A1, 2), a2, column(A2, 2), b)


@inline
def off(C, j, end, angle, q):
    """How far (1 - cos) a hinge that is turned by an angle from its zero, `end` standing still, is from what it was."""
    i = C.joint[j, J_Q0]
    return 0.0 if i < 0 else 1.0 - np.cos((angle if end == 0 else -angle) - q[i].real)


@inline
def on_circle(centre, u, v, x):
    """The point at an angle."""
    return add(centre, add(scale(np.cos(x), u), scale(np.sin(x), v)))


@inline
def short_of(f, T, centre, u, v):
    """The squared sine of `close_torus`, negative, where the circle comes nearest to the torus and does not meet it."""
    extremes = real_roots((0.0, f[2], -f[1], 2.0 * f[4], -2.0 * f[3]))
    best = -1.0
    for k in range(4):
        x = extremes[k]
        if x < NONE:
            F, _, curvature = value_at(f, x)
            _, N = at_point(T, on_circle(centre, u, v, x))
            best = max(best, -2.0 * abs(F * curvature) / (4.0 * dot(N, N) * dot(u, u)).real)
    return best


@inline
def close_torus(C, s, g, q):
    """A hinge that brings a ball to the torus on which two skew hinges behind it can move it: of degree four.

    Seen from the part behind the hinge the ball moves on a circle. Of the two roots with the same sign the nearer one
    to what the coordinates of the three hinges were is taken, or (sign 2) the other one. C.margin is the squared sine
    of the angle between the circle and the torus.
    """
    step = C.step[s]
    j1, j2, j3, ball = step[S_JOINT], step[S_JOINT + 1], step[S_JOINT + 2], step[S_JOINT + 3]
    e1, e2, e3, e4 = step[S_END], step[S_END + 1], step[S_END + 2], step[S_END + 3]
    a, A = frame_at(C, j1, e1)
    T = torus_behind(C, j2, e2, j3, e3, ball, e4)
    d, _ = frame_at(C, ball, 1 - e4)
    n, w = column(A, 2), sub(d, a)
    u, v = within(n, w), cross(n, w)
    centre = sub(d, u)
    f = along_circle(T, centre, u, v)
    real = (f[0].real, f[1].real, f[2].real, f[3].real, f[4].real)
    roots = real_roots(real)
    wanted, count = C.sign[g].real, 0
    x, nearest, other = NONE, 0.0, NONE
    for k in range(4):
        if roots[k] < NONE:
            y = sharpened(real, roots[k])
            _, slope, _ = value_at(real, y)
            if slope * wanted > 0.0:
                first, second, _ = angles(T, on_circle(centre, u, v, y))
                far = off(C, j1, e1, -y, q) + off(C, j2, e2, first.real, q) + off(C, j3, e3, second.real, q)
                count += 1
                if count == 1 or far < nearest:
                    x, nearest, other = y, far, x
                else:
                    other = y
    if wanted * wanted > 1.0:
        x = other
    if not x < NONE:
        C.margin[g] = -1.0
        if count == 0:
            C.margin[g] = short_of(real, T, centre, u, v)
        return False
    x = sharpened(f, x + 0.0 * f[0])
    _, slope, _ = value_at(f, x)
    F, N = at_point(T, on_circle(centre, u, v, x))
    C.margin[g] = slope * slope / (4.0 * dot(N, N) * dot(u, u))
    if C.margin[g].real > AT_LIMIT:
        x = x - F / slope  # F itself is more accurate than its series where the axes nearly meet
    turn_part(C, step[S_MOVED], step[S_MOVED + 1], a, n, sub(on_circle(centre, u, v, x), centre), u)
    return True


@inline
def close_skew(C, s, g):
    """Two skew hinges and a ball whose place is known, a leg RRS of a platform: both angles follow."""
    (j1, j2, ball), (e1, e2, e3), (m1, m2, m3) = ring(C, s)
    attach(C, j1, e1, m1, m2, ZERO, IDENTITY)
    attach(C, j2, e2, m2, m3, ZERO, IDENTITY)
    T = torus_behind(C, j1, e1, j2, e2, ball, e3)
    d, _ = frame_at(C, ball, 1 - e3)
    first, second, margin = angles(T, d)
    C.margin[g] = margin
    if not margin.real > ROUNDING:
        return False
    R2 = axis_rotation(T.second, second)
    move_part(C, m2, m3, sub(T.foot2, rot(R2, T.foot2)), R2)
    R1 = axis_rotation(T.first, first)
    move_part(C, m1, m3, sub(T.foot, rot(R1, T.foot)), R1)
    return True


@inline
def close_hinges(C, s, g):
    """A part between two hinges whose axes meet, at parts that are placed: turned so that the second axis fits."""
    (j1, j2, _), (e1, e2, _), (m1, m2, _) = ring(C, s)
    attach(C, j1, e1, m1, m2, ZERO, IDENTITY)
    a, A = frame_at(C, j1, e1)
    _, B = frame_at(C, j2, e2)
    _, B2 = frame_at(C, j2, 1 - e2)
    n, r, u = column(A, 2), column(B2, 2), column(B, 2)
    N = cross(n, r)
    C.margin[g] = dot(N, N)
    turn_part(C, m1, m2, a, n, u, r)
    return True


# ------------------------------------------------------------------------------------------- rods with balls


@inline
def rod_length(C, j2, e2, j3, e3):
    """Squared distance of the two balls of the rod."""
    first, _ = frame_at(C, j2, 1 - e2)
    second, _ = frame_at(C, j3, e3)
    d = sub(second, first)
    return dot(d, d)


@inline
def put_rod(C, j2, e2, j3, e3, start, stop, q):
    """The rod between its two balls, whose places are known: turned the shortest way from where its tree joint is."""
    tree, end = (j2, e2) if C.joint[j2, J_Q0] >= 0 else (j3, 1 - e3)
    d, E = joint_pose(SPHERICAL, (0.0, 0.0), q, C.joint[tree, J_Q0])
    attach(C, tree, end, start, stop, d, E)
    b, _ = frame_at(C, j2, e2)
    b2, _ = frame_at(C, j2, 1 - e2)
    c, _ = frame_at(C, j3, 1 - e3)
    c2, _ = frame_at(C, j3, e3)
    u, r = sub(c2, b2), sub(c, b)
    N = cross(u, r)
    sine = np.sqrt(dot(N, N))
    if sine.real > TURNED * dot(r, r).real:
        turn_part(C, start, stop, b2, scale(1.0 / sine, N), u, r)
    b2, _ = frame_at(C, j2, 1 - e2)
    move_part(C, start, stop, sub(b, b2), IDENTITY)


@inline
def close_rod(C, s, g, slide, q):
    """A pin or a slide closed by a rod with two balls: A cos f + B sin f = C', or a quadratic equation.

    A rod with a universal joint in the place of a ball is not put here: its list is empty.
    """
    (j1, j2, j3), (e1, e2, e3), (m1, m2, m3) = ring(C, s)
    attach(C, j1, e1, m1, m2, ZERO, IDENTITY)
    a, A = frame_at(C, j1, e1)
    b, _ = frame_at(C, j2, e2)
    c, _ = frame_at(C, j3, 1 - e3)
    ll = rod_length(C, j2, e2, j3, e3)
    n, u, w, K, ww = column(A, 2), sub(b, a), sub(c, a), 0.0, 1.0
    e = direction(C, j1, e1)
    if slide:
        w = sub(b, c)
        across = within(e, w)
        square = ll - dot(across, across)
        margin = square / ll
    else:
        K = 0.5 * (dot(u, u) + dot(w, w) - ll) - dot(n, w) * dot(n, u)
        u, w = within(n, u), within(n, w)
        uu, ww = dot(u, u), dot(w, w)
        square = uu * ww - K * K
        margin = square / (uu * ww)
    C.margin[g] = margin
    if not margin.real > -ROUNDING:
        return False
    root = C.sign[g] * (np.sqrt(square) if square.real > 0.0 else 0.0 * square)
    if slide:
        move_part(C, m1, m2, scale(root - dot(w, e), e), IDENTITY)
    else:
        turn_part(C, m1, m2, a, n, u, add(scale(K / ww, w), scale(-root / ww, cross(n, w))))
    if m3 > m2:
        put_rod(C, j2, e2, j3, e3, m2, m3, q)
    return True


# ------------------------------------------------------------------------------------------------ all steps


@inline
def solve_linear(model, data, n, entry):
    """The coordinate of one entry from the others and the time: sum factor coordinate = program(t)."""
    line = model.linear[n]
    x = motion_in_time(model, data, line[L_PROGRAM])[0]
    for k in range(line[L_FIRST], line[L_FIRST] + line[L_COUNT]):
        if k != entry:
            x -= model.factor[k] * data.q[model.entry[k, 2]]
    data.q[model.entry[entry, 2]] = x / model.factor[entry]


@inline
def close_group(C, s, kind, g, q):
    if kind == ROD_PIN or kind == ROD_SLIDE:
        return close_rod(C, s, g, kind == ROD_SLIDE, q)
    if kind == PINS:
        return close_pins(C, s, g)
    if kind == SLIDE:
        return close_slide(C, s, g)
    if kind == SPHERE:
        return close_sphere(C, s, g)
    if kind == HOOKED:
        return close_hooked(C, s, g)
    if kind == LEVEL:
        return close_level(C, s, g)
    if kind == POINTED:
        return close_pointed(C, s, g)
    if kind == TORUS:
        return close_torus(C, s, g, q)
    if kind == SKEW:
        return close_skew(C, s, g)
    if kind == HINGES:
        return close_hinges(C, s, g)
    return close_slides(C, s, g)


# ------------------------------------------------------------------------------------------------- iteration


@inline
def normal_equations(C, phi, speeds, stop, last):
    """N x = c of a block: its speeds are lists[speeds:stop], its rows lists[stop:last], all in natural units."""
    n = stop - speeds
    N = window(C.normal, 0, n, n)
    for i in range(n):
        x = C.lists[speeds + i]
        C.change[i] = 0.0
        for m in range(stop, last):
            row = C.lists[m]
            C.change[i] -= C.J[row, x] * C.unit[x] * phi[row] / (C.row_unit[row] * C.row_unit[row])
        for j in range(i + 1):
            y = C.lists[speeds + j]
            total = 0.0 * C.J[0, 0]
            for m in range(stop, last):
                row = C.lists[m]
                total += C.J[row, x] * C.J[row, y] / (C.row_unit[row] * C.row_unit[row])
            N[i, j] = N[j, i] = total * C.unit[x] * C.unit[y]
    return N


@inline
def iterate(ints, floats, work, model, data, C, s):
    """Speeds of a block so that its rows are closed, by the method of Gauss and Newton: rows may be redundant.

    That N has the square of the condition of the rows costs steps, not digits: phi is computed as it is.
    """
    speeds, stop, last = C.step[s, S_JOINT], C.step[s, S_JOINT + 1], C.step[s, S_JOINT + 2]
    before = np.inf
    for _ in range(CLOSING_STEPS):
        closure(ints, floats, work, C.J, C.rate)
        N = normal_equations(C, data.phi, speeds, stop, last)
        if not cholesky(N):
            return False
        change = window(C.change, 0, stop - speeds)
        solve_cholesky(N, change)
        largest = 0.0
        for i in range(stop - speeds):
            largest = max(largest, (change[i] * change[i]).real)
        largest = np.sqrt(largest)
        if not largest < before:
            break
        before = largest
        C.motion[:] = 0.0
        for i in range(stop - speeds):
            C.motion[C.lists[speeds + i]] = change[i] * C.unit[C.lists[speeds + i]]
        move(model, data, C.motion)
        if largest < CLOSED:
            break
    return before < STILL_CLOSED


@kernel
def close(ints, floats, work):
    """q_D in `work` from q_I and t there: all steps [Blajer1993 eq. (5)]."""
    model, data = open_model(ints, floats), open_work(ints, work)
    C = open_closing(ints, floats, work)
    for b in range(C.pose.shape[0]):
        put3(C.pose, b, POINT, ZERO)
        put9(C.pose, b, AXES, IDENTITY)
    for s in range(C.step.shape[0]):
        kind, j = C.step[s, S_KIND], C.step[s, S_JOINT]
        if kind == LINEAR:
            solve_linear(model, data, j, C.step[s, S_JOINT + 1])
        elif kind == HANG:
            attach(C, j, C.step[s, S_END], C.step[s, S_MOVED], C.step[s, S_MOVED + 1], ZERO, IDENTITY)
        elif kind == LINE:
            put_line(C, s)
        elif kind == ITERATE:
            if not iterate(ints, floats, work, model, data, C, s):
                return NOT_CLOSED
        elif kind == JOIN or kind == READ:
            i, par = C.joint[j, J_Q0], (C.frame[j, J_PAR], C.frame[j, J_PAR + 1])
            if kind == JOIN:
                d, E = joint_pose(C.joint[j, J_KIND], par, data.q, i)
                attach(C, j, C.step[s, S_END], C.step[s, S_MOVED], C.step[s, S_MOVED + 1], d, E)
            else:
                p, F = frame_at(C, j, 0)
                p2, M = frame_at(C, j, 1)
                E = mul(transpose(F), M)
                read_joint(C.joint[j, J_KIND], par, rot_t(F, sub(p2, p)), E, data.q, i)
        elif not close_group(C, s, kind, C.step[s, S_GROUP], data.q):
            C.notes[WHICH] = C.step[s, S_GROUP]
            return CANNOT_CLOSE
    return FINE


@inline
def at_limit(C, least):
    """Whether some group is nearly singular; notes which."""
    for g in range(C.margin.shape[0]):
        if not C.margin[g].real > least:
            C.notes[WHICH] = g
            return True
    return False


@kernel
def accelerate(ints, floats, work):
    """Accelerations `work.a` at the q_I, v_I and t in `work`; all else there is made to follow."""
    status = close(ints, floats, work)
    if status != FINE:
        return status
    if at_limit(open_closing(ints, floats, work), AT_LIMIT):
        return CANNOT_CLOSE
    status = blajer.accelerate(ints, floats, work)
    if status != FINE:
        return status
    P = blajer.open_partition(ints, plan_start(ints), floats, work, work_start(ints))
    phi = open_work(ints, work).phi
    for n in range(phi.shape[0]):
        if P.holonomic[n] == 1 and not (phi[n] * phi[n]).real < (STILL_CLOSED * P.row_unit[n]) ** 2:
            return NOT_THERE
    return FINE


@kernel
def accepted(ints, floats, work):
    """After an accepted step: whether it ends on another branch or at a limit, or another choice should be made."""
    P = blajer.open_partition(ints, plan_start(ints), floats, work, work_start(ints))
    if P.notes[blajer.JUMP].real > LANDED:
        return SINGULAR_SET
    status = blajer.check(ints, floats, work)
    if status == FINE and at_limit(open_closing(ints, floats, work), ENDS):
        return CANNOT_CLOSE
    return status
