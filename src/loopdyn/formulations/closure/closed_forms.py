"""Closed-form solutions of the groups of `closure`: three parts joined in a ring by three joints.

The order of steps and the symbols are in :mod:`loopdyn.formulations.closure.kernels`.
"""

from __future__ import annotations

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.formulations.closure.layout import AXES, J_PAR, J_Q0, POINT, S_END, S_JOINT, S_MOVED
from loopdyn.formulations.closure.parts import (
    IDENTITY,
    X_AXIS,
    Y_AXIS,
    ZERO,
    attach,
    attach_both,
    column,
    frame_at,
    move_part,
    ring,
    turn_part,
    turning,
    within,
)
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
from loopdyn.joints import spherical
from loopdyn.spatial.plucker import add, cross, dot, mul, neg, put3, put9, rot, rot_t, scale, sub
from loopdyn.spatial.rotations import axis_rotation

# Discriminant, in natural units, that is rounding where a group is stretched. Below it there is no closure.
ROUNDING = 1e-12
# Discriminant below which a motion is at the limit position: A is larger than 1e4 there, and its rounding errors would
# make the steps tiny. The pose is then within 1e-4 rad of the limit, the independent coordinate within 1e-8.
LEAST_DISCRIMINANT = 1e-8
TURNED = 1e-300  # fraction of a squared length: a rod that is rotated by less is left as it is


# --------------------------------------------------------------------------------------------- planar groups


@inline
def close_pins(C, s, g):
    """Three pins: a triangle of three known sides, R(f)(a + R(p) b) = d [Blajer1993 eqs. (15)-(18)]."""
    (j1, j2, j3), (e1, e2, e3), (m1, m2, m3) = ring(C, s)
    attach_both(C, s)
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
    """Direction in which the part at the other end of the slide j moves as its coordinate grows; `end` is fixed."""
    _, R = frame_at(C, j, end)
    return column(R, 2) if end == 0 else neg(column(R, 2))


@inline
def close_slide(C, s, g):
    """Two pins and a slide: x e + R(p) b = d, the slide between the fixed part and the one that slides."""
    (j1, j2, j3), (e1, e2, e3), (m1, m2, m3) = ring(C, s)
    attach_both(C, s)
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

    n1 and n2 are unit vectors. The squared sine is zero where the two solutions coincide, negative if there is none.
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
    attach_both(C, s)
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

    Behind the hinge are two parts, attached at any values of their coordinates, that move in planes with the normal n2
    and end at the ball. So r, seen from the hinge, has the height of the ball along n2.
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
    """A part held by a universal joint and a ball: R1(f) R2(p) w = d, with w and d from the former to the latter.

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
    """Frames of the hinge equivalent to two balls between the same parts: at the first, z towards the second."""
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
    """Torus on which the ball at the end of the last part moves, for two hinges attached at their zeros."""
    a1, A1 = frame_at(C, j1, e1)
    a2, A2 = frame_at(C, j2, e2)
    b, _ = frame_at(C, ball, e3)
    return torus_of(a1, column(A1, 2), a2, column(A2, 2), b)


@inline
def off(C, j, end, angle, q):
    """1 - cos of the change of a hinge against q, if it is turned by an angle from its zero with `end` fixed."""
    i = C.joint[j, J_Q0]
    return 0.0 if i < 0 else 1.0 - np.cos((angle if end == 0 else -angle) - q[i].real)


@inline
def on_circle(centre, u, v, x):
    """Point of a circle at an angle."""
    return add(centre, add(scale(np.cos(x), u), scale(np.sin(x), v)))


@inline
def short_of(f, T, centre, u, v):
    """Negative "squared sine" of `close_torus` for a circle that does not meet the torus, from its nearest point."""
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

    Seen from the part behind the hinge the ball moves on a circle. Among the two roots with the same sign the one
    nearer to the previous coordinates of the three hinges is used, or (sign 2) the other one. C.margin is the squared
    sine of the angle between the circle and the torus.
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
    if C.margin[g].real > LEAST_DISCRIMINANT:
        x = x - F / slope  # F itself is more accurate than its series where the axes nearly meet
    turn_part(C, step[S_MOVED], step[S_MOVED + 1], a, n, sub(on_circle(centre, u, v, x), centre), u)
    return True


@inline
def close_skew(C, s, g):
    """Both angles of two skew hinges and a ball at a known point, an RRS leg of a platform."""
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
    """A part between two hinges with intersecting axes on placed parts: turned so that the second axis fits."""
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
    """Place a rod between its two known balls, by the shortest rotation from the orientation of its tree joint."""
    tree, end = (j2, e2) if C.joint[j2, J_Q0] >= 0 else (j3, 1 - e3)
    d, E = spherical.pose((0.0, 0.0), q, C.joint[tree, J_Q0])
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

    A rod with a universal joint instead of a ball is not placed here: its list is empty.
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
