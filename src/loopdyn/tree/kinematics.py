"""Outward pass: poses, velocities and velocity terms of all bodies, motion subspaces of all joints.

World axes; the reference point of a body is the origin of its joint frame. For body i with parent p

    omega_i = omega_p + sum S_w v            alpha_i = alpha_p + sum S_w a + c_w
    x_i     = x_p + r                        a_i     = a_p + alpha_p x r + sum S_v a + c_v

with r the arm between the reference points, a_i the acceleration of the reference point (a body point), and
c_w, c_v the velocity terms, which this pass leaves in columns CW and CV of the work rows.
"""

from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import (
    ARM,
    AV,
    AW,
    AXES,
    CV,
    CW,
    KIND,
    N_BASE_PROGRAMS,
    NV,
    OFFSET,
    PAR,
    PARENT,
    PV,
    PW,
    Q0,
    REVERSED,
    SV,
    SW,
    V0,
    R,
    V,
    W,
    X,
    open_model,
    open_work,
)
from loopdyn.joints.dispatch import is_pin, joint_minus, joint_motion, joint_plus, joint_rotation
from loopdyn.quantities.expressions import run_program
from loopdyn.spatial.plucker import (
    add,
    centripetal,
    cross,
    get3,
    get9,
    mul,
    neg,
    put3,
    put9,
    rot,
    scale,
    sub,
    transpose,
)
from loopdyn.spatial.rotations import axis_rotation
from loopdyn.tree.rigid import rigid_body

ZERO = (0.0, 0.0, 0.0)
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
EX, EY, EZ = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@inline
def rest_base(model, work, i):
    """Place a base that does not move at its reference pose."""
    B = work.body
    put9(B, i, R, get9(model.base_pose, i, 3))
    put3(B, i, X, get3(model.base_pose, i, 0))
    put3(B, i, W, ZERO)
    put3(B, i, V, ZERO)
    put3(B, i, AW, ZERO)
    put3(B, i, AV, ZERO)


@inline
def move_base(model, work, i):
    """Pose, velocity and acceleration of a base with given motion [Mufti1983 Remark 3]."""
    B = work.body
    work.jets[:, :] = 0.0
    work.jets[0, 0] = work.t[0]
    work.jets[0, 1] = 1.0
    # rows of `motion`: x, y, z, rx, ry, rz with their first and second derivatives
    for k in range(N_BASE_PROGRAMS):
        n = model.base_programs[i, k]
        put3(work.motion, k, 0, ZERO)
        if n >= 0:
            begin, end = model.program[n], model.program[n + 1]
            put3(work.motion, k, 0, run_program(model.code, begin, end, model.constants, work.jets, work.stack))
    p = get3(model.base_pose, i, 0)
    x, dx, ddx = get3(work.motion, 0, 0)
    y, dy, ddy = get3(work.motion, 1, 0)
    z, dz, ddz = get3(work.motion, 2, 0)
    a, da, dda = get3(work.motion, 3, 0)
    b, db, ddb = get3(work.motion, 4, 0)
    c, dc, ddc = get3(work.motion, 5, 0)
    # R = Rz(c) Ry(b) Rx(a): turn about z, about the turned y, about the twice turned x
    Rz = axis_rotation(EZ, c)
    Rzy = mul(Rz, axis_rotation(EY, b))
    ey, ex = rot(Rz, EY), rot(Rzy, EX)
    w1 = scale(dc, EZ)
    w2 = add(w1, scale(db, ey))
    alpha = add(add(scale(ddc, EZ), scale(ddb, ey)), scale(dda, ex))
    alpha = add(alpha, add(scale(db, cross(w1, ey)), scale(da, cross(w2, ex))))
    put9(B, i, R, mul(mul(Rzy, axis_rotation(EX, a)), get9(model.base_pose, i, 3)))
    put3(B, i, W, add(w2, scale(da, ex)))
    put3(B, i, X, (p[0] + x, p[1] + y, p[2] + z))
    put3(B, i, V, (dx, dy, dz))
    put3(B, i, AW, alpha)
    put3(B, i, AV, (ddx, ddy, ddz))


@inline(always=True)
def place_bases(model, work):
    """Pose, velocity and acceleration of the ground and of roots with given motion."""
    for i in range(model.n_bases):
        moves = False
        for k in range(N_BASE_PROGRAMS):
            moves = moves or model.base_programs[i, k] >= 0
        if moves:
            move_base(model, work, i)
        else:
            rest_base(model, work, i)
        put3(work.body, i, PW, ZERO)
        put3(work.body, i, PV, ZERO)


@inline(always=True)
def place_on_pin(model, work, i, RP, wP, iq, iv):
    """Place a body on a revolute joint, the most frequent case: no displacement, one axis."""
    B = work.body
    u = get3(model.body, i, AXES + 6)
    a = rot(RP, u)
    put3(work.dof, iv, SW, a)
    put3(work.dof, iv, SV, ZERO)
    w = scale(work.v[iv], a)
    r = rot(RP, get3(model.body, i, OFFSET))
    put9(B, i, R, mul(RP, axis_rotation(u, work.q[iq])))
    put3(B, i, W, add(wP, w))
    put3(B, i, ARM, r)
    put3(B, i, CW, cross(wP, w))
    put3(B, i, CV, centripetal(wP, r))
    return r


@inline(always=True)
def place_on_joint(model, work, i, RP, wP, iq, iv):
    """Place a body on a joint of any type, from its declared parent or, reversed, from its declared child."""
    B, S = work.body, work.dof
    kind = model.tree[i, KIND]
    A = get9(model.body, i, AXES)
    par = (model.body[i, PAR], model.body[i, PAR + 1])
    E = joint_rotation(kind, A, par, work.q, iq)
    arm = rot(RP, get3(model.body, i, OFFSET))
    if model.tree[i, REVERSED] == 0:
        Ri = mul(RP, E)
        RF, RM = RP, Ri
    else:  # the parent carries M, the new body carries F
        Ri = mul(RP, transpose(E))
        RF, RM = Ri, RP
    d, w, dd, cj, cl = joint_motion(kind, RF, RM, A, par, work.q, iq, work.v, iv, S)
    put9(B, i, R, Ri)
    if model.tree[i, REVERSED] == 0:
        r = add(arm, d)
        put3(B, i, W, add(wP, w))
        put3(B, i, CW, add(cross(wP, w), cj))
        put3(B, i, CV, add(add(centripetal(wP, r), scale(2.0, cross(wP, dd))), cl))
    else:  # invert the motion of M seen from F
        wF = sub(wP, w)
        for k in range(iv, iv + model.tree[i, NV]):
            sw, sv = get3(S, k, SW), get3(S, k, SV)
            put3(S, k, SW, neg(sw))
            put3(S, k, SV, sub(cross(sw, d), sv))
        cw = add(cross(wF, w), cj)
        r = sub(arm, d)
        put3(B, i, W, wF)
        put3(B, i, CW, neg(cw))
        bias = add(add(centripetal(wF, d), scale(2.0, cross(wF, dd))), cl)
        put3(B, i, CV, sub(add(centripetal(wP, arm), cross(cw, d)), bias))
    put3(B, i, ARM, r)
    return r


@inline(always=True)
def place_body(model, work, i, with_inertia):
    """Place a body whose parent is placed; `with_inertia` adds its rigid inertia and bias (:mod:`loopdyn.tree.rigid`).

    One pass for both reads memory only once, which matters from some ten thousand bodies on (`benchmarks/tree.py`).
    """
    B = work.body
    p, iq, iv = model.tree[i, PARENT], model.tree[i, Q0], model.tree[i, V0]
    RP, wP = get9(B, p, R), get3(B, p, W)
    if is_pin(model.tree[i, KIND]):
        r = place_on_pin(model, work, i, RP, wP, iq, iv)
    else:
        r = place_on_joint(model, work, i, RP, wP, iq, iv)
    put3(B, i, X, add(get3(B, p, X), r))
    v = add(get3(B, p, V), cross(wP, r))
    if not is_pin(model.tree[i, KIND]):
        for k in range(iv, iv + model.tree[i, NV]):
            v = add(v, scale(work.v[k], get3(work.dof, k, SV)))
    put3(B, i, V, v)
    if with_inertia:
        rigid_body(model, work, i, (model.gravity[0], model.gravity[1], model.gravity[2]))


@inline(always=True)
def place_bodies(model, work, with_inertia):
    """Outward pass: place all bases and bodies."""
    place_bases(model, work)
    for i in range(model.n_bases, model.tree.shape[0]):
        place_body(model, work, i, with_inertia)


@inline(always=True)
def kinematics(model, work):
    """Poses, velocities and velocity terms of all bodies at (t, q, v)."""
    place_bodies(model, work, False)


@inline(always=True)
def rigid_bodies(model, work):
    """Kinematics, rigid inertias and bias wrenches of all bodies at (t, q, v)."""
    place_bodies(model, work, True)


@inline(always=True)
def accelerations(model, work):
    """Accelerations AW, AV of all bodies for the joint accelerations in `work.a`; bases keep theirs."""
    B = work.body
    for i in range(model.n_bases, model.tree.shape[0]):
        p, iv = model.tree[i, PARENT], model.tree[i, V0]
        alpha = get3(B, p, AW)
        aw = add(alpha, get3(B, i, CW))
        av = add(add(get3(B, p, AV), cross(alpha, get3(B, i, ARM))), get3(B, i, CV))
        for k in range(iv, iv + model.tree[i, NV]):
            aw = add(aw, scale(work.a[k], get3(work.dof, k, SW)))
            av = add(av, scale(work.a[k], get3(work.dof, k, SV)))
        put3(B, i, AW, aw)
        put3(B, i, AV, av)


@kernel
def place(ints, floats, work, with_inertia):
    """Poses and velocities of all bodies at (t, q, v) in `work`, and, `with_inertia`, inertias and bias wrenches."""
    place_bodies(open_model(ints, floats), open_work(ints, work), with_inertia)


@kernel
def move(ints, floats, work):
    """Poses, velocities and accelerations of all bodies at (t, q, v, a) in `work`."""
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    accelerations(model, data)


@kernel
def plus(ints, floats, q, xi, out):
    """out = q (+) xi: move every joint along its manifold by xi (nv); counted angles are left unchanged."""
    model = open_model(ints, floats)
    for i in range(model.n_bases, model.tree.shape[0]):
        joint_plus(model.tree[i, KIND], model.tree[i, NV], q, model.tree[i, Q0], xi, model.tree[i, V0], out)
    for k in range(model.nq - model.counted.shape[0], model.nq):
        out[k] = q[k]


@kernel
def minus(ints, floats, q, p, xi):
    """Increments xi (nv) with p = q (+) xi."""
    model = open_model(ints, floats)
    for i in range(model.n_bases, model.tree.shape[0]):
        joint_minus(model.tree[i, KIND], model.tree[i, NV], q, p, model.tree[i, Q0], xi, model.tree[i, V0])
