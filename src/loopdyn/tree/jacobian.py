"""Jacobians of bodies and of the rows of cut joints, along the paths to the root."""

from loopdyn.constraints.base import FIRST_CONSTRAINT, put_motion
from loopdyn.constraints.dispatch import pair_rows, relation_terms
from loopdyn.engine.jit import inline, kernel
from loopdyn.engine.records import (
    AV,
    AW,
    C_CHILD,
    C_KIND,
    C_PAR,
    C_PARENT,
    C_PROGRAM,
    C_ROW,
    C_ROWS,
    C_SKIPPED,
    E_COORDINATE,
    E_CUT,
    E_FREEDOM,
    F_AXES,
    F_POINT,
    L_COUNT,
    L_FIRST,
    L_KIND,
    L_PROGRAM,
    L_ROW,
    M_AXES,
    M_POINT,
    NV,
    ORIGIN,
    PARENT,
    SV,
    SW,
    V0,
    R,
    W,
    X,
    open_model,
    open_work,
)
from loopdyn.forces.loading import body_frame, body_point
from loopdyn.joints.dispatch import counted_angle, joint_coordinate, joint_rows, joint_wrench, joint_wrench_rate
from loopdyn.spatial.plucker import add, centripetal, cross, dot, get3, get9, neg, rot, scale, sub
from loopdyn.tree.kinematics import accelerations, kinematics


@inline(always=True)
def add_power(model, work, i, x, torque, force, row):
    """Add the power per unit speed of a torque, and a force at the world point x of body i, to row (nv)."""
    B, D = work.body, work.dof
    while i >= model.n_bases:
        about = add(torque, cross(sub(x, get3(B, i, X)), force))
        for k in range(model.tree[i, V0], model.tree[i, V0] + model.tree[i, NV]):
            row[k] += dot(get3(D, k, SW), about) + dot(get3(D, k, SV), force)
        i = model.tree[i, PARENT]


@inline(always=True)
def pair(model, work, n):
    """Frames, arm and motion of the two bodies of cut joint or pair constraint n."""
    B = work.body
    i, j = model.cut[n, C_PARENT], model.cut[n, C_CHILD]
    xF, vF = body_point(B, i, get3(model.cut_frames, n, F_POINT))
    xM, vM = body_point(B, j, get3(model.cut_frames, n, M_POINT))
    F = body_frame(B, i, get9(model.cut_frames, n, F_AXES))
    M = body_frame(B, j, get9(model.cut_frames, n, M_AXES))
    par = (model.cut_frames[n, C_PAR], model.cut_frames[n, C_PAR + 1])
    wF, wM = get3(B, i, W), get3(B, j, W)
    d = sub(xM, xF)
    return F, M, par, d, wF, wM, sub(sub(vM, vF), cross(wF, d)), xM


@inline
def skip_rows(work, first, count, skipped):
    """Set the rows to zero whose bits are set: they constrain nothing."""
    for m in range(count):
        if (skipped >> m) & 1 == 1:
            k = first + m
            work.phi[k] = 0.0
            work.gamma[k] = 0.0
            work.phi_t[k] = 0.0
            work.rows[k, :] = 0.0


@inline(always=True)
def rows_of_pair(model, work, n):
    """phi, direction and gamma of the rows of cut joint or pair constraint n, for the motion in `work`."""
    F, M, par, d, wF, wM, v, _ = pair(model, work, n)
    kind, k = model.cut[n, C_KIND], model.cut[n, C_ROW]
    for m in range(k, k + model.cut[n, C_ROWS]):
        work.phi_t[m] = 0.0
    if kind < FIRST_CONSTRAINT:
        joint_rows(kind, F, M, par, d, wF, wM, v, work.phi, work.rows, work.gamma, k)
    else:
        pair_rows(model, work, kind, model.cut[n, C_PROGRAM], F, M, par, d, wF, wM, v, k)
    if model.cut[n, C_SKIPPED] != 0:
        skip_rows(work, k, model.cut[n, C_ROWS], model.cut[n, C_SKIPPED])


@inline(always=True)
def constraint_rows(model, work):
    """phi, direction and gamma of the rows of all cut joints and pair constraints."""
    for n in range(model.cut.shape[0]):
        rows_of_pair(model, work, n)


@inline(always=True)
def constraint_jacobian(model, work, J):
    """J (nc, nv) with J v + phi_t = d phi/dt for bases at rest: the power of each row's wrench pair."""
    B = work.body
    J[: model.nc - model.n_user, :] = 0.0
    for n in range(model.cut.shape[0]):
        i, j = model.cut[n, C_PARENT], model.cut[n, C_CHILD]
        xM, _ = body_point(B, j, get3(model.cut_frames, n, M_POINT))
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            torque, force = get3(work.rows, k, 0), get3(work.rows, k, 3)
            add_power(model, work, j, xM, torque, force, J[k])
            # the reaction on the parent acts along the same line, so at M's origin too
            add_power(model, work, i, xM, neg(torque), neg(force), J[k])


@inline
def body_point_acceleration(B, i, p):
    """World acceleration of the point p of body i (own axes, from its reference point)."""
    arm, w = rot(get9(B, i, R), p), get3(B, i, W)
    return add(get3(B, i, AV), add(cross(get3(B, i, AW), arm), centripetal(w, arm)))


@inline(always=True)
def reduce_rows(model, work, rate):
    """From bodies to coordinates: `rate` (nc) becomes d phi/dt, and `gamma` the right side of J a = gamma.

    The rows were written for the motion of the two bodies. The accelerations of the bodies at zero joint accelerations
    (velocity terms, moving bases) go to the right side.
    """
    B = work.body
    for n in range(model.cut.shape[0]):
        i, j = model.cut[n, C_PARENT], model.cut[n, C_CHILD]
        pF, pM = get3(model.cut_frames, n, F_POINT), get3(model.cut_frames, n, M_POINT)
        xF, vF = body_point(B, i, pF)
        xM, vM = body_point(B, j, pM)
        d, wF, alpha = sub(xM, xF), get3(B, i, W), get3(B, i, AW)
        w, v = sub(get3(B, j, W), wF), sub(sub(vM, vF), cross(wF, d))
        aw = sub(get3(B, j, AW), alpha)
        av = sub(sub(body_point_acceleration(B, j, pM), body_point_acceleration(B, i, pF)), cross(alpha, d))
        for k in range(model.cut[n, C_ROW], model.cut[n, C_ROW] + model.cut[n, C_ROWS]):
            torque, force = get3(work.rows, k, 0), get3(work.rows, k, 3)
            rate[k] = dot(torque, w) + dot(force, v) + work.phi_t[k]
            work.gamma[k] -= dot(torque, aw) + dot(force, av)


@inline
def freedom_of_cut(model, work, n, k):
    """Coordinate k of cut joint n, its rate, its acceleration for the motion in `work`, and its load direction."""
    B = work.body
    i, j = model.cut[n, C_PARENT], model.cut[n, C_CHILD]
    F, M, par, d, wF, wM, v, xM = pair(model, work, n)
    kind = model.cut[n, C_KIND]
    x = joint_coordinate(kind, k, F, M, par, d)
    torque, force = joint_wrench(kind, k, F, M, par)
    torque_rate, force_rate = joint_wrench_rate(kind, k, F, M, par, wF, wM, torque, force)
    omega, alpha = sub(wM, wF), get3(B, i, AW)
    aF = body_point_acceleration(B, i, get3(model.cut_frames, n, F_POINT))
    aM = body_point_acceleration(B, j, get3(model.cut_frames, n, M_POINT))
    dx = dot(torque, omega) + dot(force, v)
    seen = sub(sub(sub(aM, aF), cross(alpha, d)), add(scale(2.0, cross(wF, v)), centripetal(wF, d)))
    ddx = dot(torque, sub(get3(B, j, AW), alpha)) + dot(torque_rate, omega) + dot(force, seen) + dot(force_rate, v)
    return x, dx, ddx, torque, force, xM


@inline
def entry_motion(model, work, e):
    """Coordinate, rate and acceleration at zero joint accelerations of entry e of the linear records."""
    cut, index, coordinate = model.entry[e, E_CUT], model.entry[e, E_FREEDOM], model.entry[e, E_COORDINATE]
    if cut < 0:
        dx = work.v[index]
        x, ddx = 0.0 * dx, 0.0 * dx
        if coordinate >= 0:
            x = work.q[coordinate]
    else:
        x, dx, ddx, _, _, _ = freedom_of_cut(model, work, cut, index)
        x = counted_angle(model, work, model.force.shape[0] + e, model.cut[cut, C_KIND], index, x)
    return x, dx, ddx


@inline
def linear_terms(model, work, n):
    """Linear record n at the state of `work`, which holds the motion at zero joint accelerations.

    Leaves the factors of its entries in `work.factor`; returns phi, its rate (the residual at velocity level), gamma
    and the rate of phi that is not due to motion.
    """
    first, count = model.linear[n, L_FIRST], model.linear[n, L_COUNT]
    kind, program = model.linear[n, L_KIND], model.linear[n, L_PROGRAM]
    for j in range(count):
        x, dx, ddx = entry_motion(model, work, first + j)
        put_motion(work.jets, j, x, dx, ddx)
    return relation_terms(model, work, kind, program, first, count)


@inline
def linear_rows(model, work, J, rate):
    """Rows of relations between joint coordinates; `work` holds the motion at zero joint accelerations."""
    for n in range(model.linear.shape[0]):
        k, first, count = model.linear[n, L_ROW], model.linear[n, L_FIRST], model.linear[n, L_COUNT]
        work.phi[k], rate[k], work.gamma[k], work.phi_t[k] = linear_terms(model, work, n)
        for e in range(first, first + count):
            cut, index, c = model.entry[e, E_CUT], model.entry[e, E_FREEDOM], work.factor[e]
            if cut < 0:
                J[k, index] += c
            else:
                _, _, _, torque, force, xM = freedom_of_cut(model, work, cut, index)
                torque, force = scale(c, torque), scale(c, force)
                add_power(model, work, model.cut[cut, C_CHILD], xM, torque, force, J[k])
                add_power(model, work, model.cut[cut, C_PARENT], xM, neg(torque), neg(force), J[k])


@inline
def all_rows(model, work, J, rate):
    """phi, gamma, J and d phi/dt of all constraint rows; sets `work.a` and the accelerations to zero motion.

    Rows of user constraints, the last ones, are left as the caller has written them.
    """
    for k in range(model.nv):
        work.a[k] = 0.0
    accelerations(model, work)
    constraint_rows(model, work)
    constraint_jacobian(model, work, J)
    reduce_rows(model, work, rate)
    linear_rows(model, work, J, rate)


@kernel
def constraint_terms(ints, floats, work, J, rate):
    """phi and gamma of all constraint rows into `work`, their Jacobian into J (nc, nv), d phi/dt into rate (nc).

    The bodies have been placed. Overwrites `work.a` with zeros.
    """
    all_rows(open_model(ints, floats), open_work(ints, work), J, rate)


@kernel
def residuals(ints, floats, work, rate):
    """phi and gamma of all constraint rows into `work`, d phi/dt into rate (nc), without the dense Jacobian.

    The data for a sparse Jacobian are left in `work`: motion of the bodies, their freedoms, rows, factors of relations.
    """
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    for k in range(model.nv):
        data.a[k] = 0.0
    accelerations(model, data)
    constraint_rows(model, data)
    reduce_rows(model, data, rate)
    for n in range(model.linear.shape[0]):
        k = model.linear[n, L_ROW]
        data.phi[k], rate[k], data.gamma[k], data.phi_t[k] = linear_terms(model, data, n)


@kernel
def body_jacobian(ints, floats, work, body, J):
    """Jacobian (6, nv) of body row `body`: angular velocity and velocity of its own frame's origin, world axes."""
    model, data = open_model(ints, floats), open_work(ints, work)
    kinematics(model, data)
    B = data.body
    x = add(get3(B, body, X), rot(get9(B, body, R), get3(model.body, body, ORIGIN)))
    zero = (0.0, 0.0, 0.0)
    J[:, :] = 0.0
    unit_x, unit_y, unit_z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    add_power(model, data, body, x, unit_x, zero, J[0])
    add_power(model, data, body, x, unit_y, zero, J[1])
    add_power(model, data, body, x, unit_z, zero, J[2])
    add_power(model, data, body, x, zero, unit_x, J[3])
    add_power(model, data, body, x, zero, unit_y, J[4])
    add_power(model, data, body, x, zero, unit_z, J[5])
