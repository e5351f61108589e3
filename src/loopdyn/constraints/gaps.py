"""Gap of two planar profiles, its common normal, and its first and second derivatives.

A gap belongs to a *surface* (line, circle, chain of a polyline, curve) of one body S and a *round* of the other body:
a circle, a point, or a corner, which are circles of radius 0. With p the centre of the round, seen from S,

    g = s(p) - radius,    dg/dt = n . dp/dt,    g'' = n . d2p/dt2 + b (t . dp/dt)^2

where s is the distance of p from the surface, negative inside, n its normal away from the material, t = N x n the
tangent, N the normal of the plane, and b = k/(1 + k s) the curvature of the line of equal distance through p, where k
is that of the surface, positive if it is convex. Nothing has to be known of the speeds of the contact points: s is the
least distance, and b has their motion.

The case left over is a straight edge that touches a curve c(u). With e the edge's normal away from its material, seen
from the curve,

    g = min over u of e . c(u) - height,    g'' = (with u held) - (e . (w x c'))^2 / (e . c'')

where w is the angular velocity of the curve's body relative to the edge's. Bodies may move in space: all derivatives
are exact for what is computed, a round whose centre is projected on the plane of S along N.

Data of a gap: normal N, then the numbers named below, then the surface.
"""

from __future__ import annotations

import numpy as np

from loopdyn.constraints.point_on_curve import FIRST, IS_CLOSED, LAST, curve_at, foot, nearest_sample
from loopdyn.constraints.point_on_curve import SAMPLE as CURVE_SAMPLE
from loopdyn.engine.jit import inline
from loopdyn.joints.rows import rot_f
from loopdyn.quantities.expressions import data_place
from loopdyn.spatial.plucker import add, centripetal, cross, dot, neg, put3, rot_t, scale, sub

# Layout of the data: normal; whether the surface is that of the second body, its kind, then radius and centre of the
# round, or distance from the origin and normal of an edge; the surface.
ON_SECOND, SURFACE, RADIUS, CENTRE, OF_SURFACE = 3, 4, 5, 6, 9

# Surfaces: a line (normal, distance), a circle (centre, radius, 1 or -1 if it is hollow, any direction), a chain
# (number of corners, distances to which the first and the last edge go on in a pocket, corners, depth behind each
# edge), a curve (in the programs after that of the data), an edge (normal, distance) that touches such a curve.
ON_LINE, ON_CIRCLE, ON_CHAIN, ON_CURVE, EDGE_ON_CURVE = range(5)

# Fraction of the size of an edge, or of the square of a radius, below which a direction between two points is rounding.
COINCIDENT = 1e-9

MOST_STEPS, SETTLED = 80, 1e-11  # of the search for the point of a curve that is nearest to an edge


@inline
def vector_at(data, at):
    return (data[at], data[at + 1], data[at + 2])


@inline
def in_plane(N, p):
    return sub(p, scale(dot(N, p), N))


@inline
def from_line(data, at, p):
    """Distance s of p from a line, normal n, and curvature b of the line of equal distance; so for all surfaces."""
    n = vector_at(data, at)
    return dot(n, p) - data[at + 3], add(n, scale(0.0, p)), 0.0 * p[0]


@inline
def from_circle(data, at, p):
    e = sub(p, vector_at(data, at))
    radius, side = data[at + 3], data[at + 4]
    square = dot(e, e)
    if square.real <= (COINCIDENT * radius) ** 2:
        # The centres coincide: no direction is nearer than others, and none is closed. Any is taken.
        n = vector_at(data, at + 5)
        return side * (dot(n, e) - radius), scale(side, add(n, scale(0.0, p))), 0.0 * p[0]
    distance = np.sqrt(square)
    return side * (distance - radius), scale(side / distance, e), side / distance


@inline
def nearest_edge(data, at, N, p):
    """Number of the nearest edge of a chain, and on which end of it the nearest point is: -1, 1, or 0 in between.

    Material deeper than half of its thickness is behind the edge: 2.
    """
    count = int(data[at])
    best, edge, where = np.inf, 0, 0
    corners, depths = at + 3, at + 3 + 3 * count
    for i in range(count - 1):
        a, b = vector_at(data, corners + 3 * i), vector_at(data, corners + 3 * i + 3)
        along = sub(b, a)
        length2 = dot(along, along)
        e = (p[0].real - a[0], p[1].real - a[1], p[2].real - a[2])
        u = dot(e, along) / length2
        here, distance2 = 0, 0.0
        beyond = sub(e, along)
        if u < 0.0 and not (i == 0 and dot(e, e) < data[at + 1] * data[at + 1]):
            here = -1
            distance2 = dot(e, e)
        elif u > 1.0 and not (i == count - 2 and dot(beyond, beyond) < data[at + 2] * data[at + 2]):
            here = 1
            distance2 = dot(beyond, beyond)
        else:
            s = dot(cross(along, N), e) / np.sqrt(length2)
            if 0.0 <= u <= 1.0 and s < -data[depths + i]:
                here = 2
            distance2 = s * s
        if distance2 < best:
            best, edge, where = distance2, i, here
    return edge, where


@inline
def from_chain(data, at, N, p):
    edge, where = nearest_edge(data, at, N, p)
    a = vector_at(data, at + 3 + 3 * edge)
    b = vector_at(data, at + 6 + 3 * edge)
    along = sub(b, a)
    length = np.sqrt(dot(along, along))
    n = scale(1.0 / length, cross(along, N))
    e = sub(p, b) if where == 1 else sub(p, a)
    if where == 1 or where == -1:
        square = dot(e, e)
        if square.real > (COINCIDENT * length) ** 2:
            distance = np.sqrt(square)
            return distance, scale(1.0 / distance, e), 1.0 / distance
        # At the corner itself the normal is that of the edge.
    s = dot(n, e)
    side = -1.0 if where == 2 else 1.0
    return side * s, scale(side, add(n, scale(0.0, p))), 0.0 * p[0]


@inline
def from_curve(model, work, program, N, p):
    data, at = model.constants, data_place(model.code, model.program, program + 3)
    found, c, c1, c2 = False, p, p, p
    at_end = False
    if data[at + IS_CLOSED] == 0.0:
        sample = nearest_sample(data, at, p)
        first, last = sample == 0, sample == int(data[at]) - 1
        if first or last:
            u = data[at + FIRST] if first else data[at + LAST]
            c, c1, c2 = curve_at(model, work, program, u + 0.0 * p[0])
            beyond = dot(sub(p, c), c1).real
            at_end = (first and beyond < 0.0) or (last and beyond > 0.0)
            found = at_end
    if not at_end:
        found, c, c1, c2 = foot(model, work, program, p)
    size = np.sqrt(dot(c1, c1))
    n, curvature = scale(1.0 / size, cross(c1, N)), dot(cross(c1, c2), N) / (size * size * size)
    e = in_plane(N, sub(p, c))  # a curve is not projected when it is stored
    if not found:  # the search did not end: NaN, which the caller detects
        e = scale(np.nan, e)
    if at_end:
        square = dot(e, e)
        size2 = dot(c1, c1) * (data[at + LAST] - data[at + FIRST]) ** 2
        if square.real > COINCIDENT * COINCIDENT * size2.real:
            distance = np.sqrt(square)
            return distance, scale(1.0 / distance, e), 1.0 / distance
    s = dot(n, e)
    return s, n, curvature / (1.0 + curvature * s)


@inline
def lowest_sample(data, at, n):
    """Number of the sample of a curve that is lowest along n."""
    best, found = np.inf, 0
    for k in range(int(data[at])):
        c = vector_at(data, at + CURVE_SAMPLE + 3 * k)
        height = c[0] * n[0].real + c[1] * n[1].real + c[2] * n[2].real
        if height < best:
            best, found = height, k
    return found


@inline
def lowest_point(model, work, program, n):
    """Point of a curve that is lowest along n, its derivatives, whether it is an end, and whether it was found.

    Newton's method, kept between the neighbours of the lowest sample by bisection.
    """
    data, at = model.constants, data_place(model.code, model.program, program + 3)
    first, last, closed = data[at + FIRST], data[at + LAST], data[at + IS_CLOSED] > 0.0
    span = last - first
    step = span / data[at] if closed else span / (data[at] - 1.0)
    u = first + step * lowest_sample(data, at, n) + 0.0 * n[0]
    low, high = u.real - step, u.real + step
    near, done, at_end = False, False, False
    c, c1, c2 = curve_at(model, work, program, u)
    if not closed:
        low, high = max(low, first), min(high, last)
        rises = dot(n, c1).real
        at_end = (low == u.real and rises >= 0.0) or (high == u.real and rises <= 0.0)
        done = at_end
    for _ in range(MOST_STEPS):
        if done:
            break
        slope, second = dot(n, c1), dot(n, c2)
        if slope.real > 0.0:
            high = u.real
        else:
            low = u.real
        newton = u - slope / second
        if second.real > 0.0 and low - SETTLED * span <= newton.real and newton.real <= high + SETTLED * span:
            done = near  # the step before was tiny: this one is exact, in complex arithmetic too
            moved = newton.real - u.real
            near = -SETTLED * span <= moved and moved <= SETTLED * span
            u = newton
        else:
            near = False
            u = 0.5 * (low + high) + 0.0 * n[0]
        turn = span * np.floor((u.real - first) / span) if closed else 0.0
        c, c1, c2 = curve_at(model, work, program, u - turn)
    return c, c1, c2, at_end, done


@inline
def surface_at(model, work, program, surface, at, N, p):
    """Distance of p from a surface, its normal, and the curvature of the line of equal distance."""
    data = model.constants
    q = in_plane(N, p)
    if surface == ON_LINE:
        return from_line(data, at, q)
    if surface == ON_CIRCLE:
        return from_circle(data, at, q)
    if surface == ON_CHAIN:
        return from_chain(data, at, N, q)
    return from_curve(model, work, program + 1, N, p)


@inline
def edge_on_curve(model, work, program, start, S, Q, omega):
    """Point of a curve that is nearest to an edge, in axes of its body Q, and what its motion on the curve adds to g''.

    S: axes of the body with the edge; omega: relative angular velocity, in world axes.
    """
    data = model.constants
    N, n = vector_at(data, start), rot_t(S, vector_at(data, start + OF_SURFACE))
    c, c1, c2, at_end, found = lowest_point(model, work, program + 1, rot_f(Q, n))
    c = in_plane(N, c)
    if not found:  # the search did not end: NaN, which the caller detects
        c = scale(np.nan, c)
    if at_end:
        return c, 0.0 * c[0]
    turned = dot(n, cross(omega, rot_t(Q, c1)))
    return c, -turned * turned / dot(n, rot_t(Q, c2))


@inline
def gap_row(model, work, program, S, Q, r0, wS, wQ, v0):
    """Gap, normal of the surface, the velocity terms of g'', and the place of the round's centre seen from Q's origin.

    S: axes of the body with the surface; Q: those of the other, its origin at r0 and with velocity v0 seen from S; wS
    and wQ: angular velocities. All in world axes.
    """
    data, start = model.constants, data_place(model.code, model.program, program)
    N, kind, radius = vector_at(data, start), int(data[start + SURFACE]), data[start + RADIUS]
    omega = sub(wQ, wS)
    centre, moving = vector_at(data, start + CENTRE), 0.0 * r0[0]
    if kind == EDGE_ON_CURVE:
        centre, moving = edge_on_curve(model, work, program, start, S, Q, omega)
        kind = ON_LINE
    arm = rot_t(Q, centre)
    r, v = add(r0, arm), add(v0, cross(omega, arm))
    s, n, b = surface_at(model, work, program, kind, start + OF_SURFACE, N, rot_f(S, r))
    u = dot(cross(N, n), rot_f(S, v))
    n = rot_t(S, n)
    turning = sub(centripetal(wQ, arm), add(scale(2.0, cross(wS, v)), centripetal(wS, r)))
    return s - radius, n, dot(n, turning) + b * u * u + moving, arm


@inline
def rows(model, work, program, F, M, d, wF, wM, v, phi, G, gamma, k):
    """One row, the gap; its multiplier is the contact force, which pushes the second body away from the first."""
    start = data_place(model.code, model.program, program)
    if model.constants[start + ON_SECOND] == 0.0:
        g, n, terms, arm = gap_row(model, work, program, F, M, d, wF, wM, v)
    else:  # M's origin seen from F is at d; F's seen from M at -d, with velocity -(v - (wM - wF) x d)
        back = sub(cross(sub(wM, wF), d), v)
        g, n, terms, arm = gap_row(model, work, program, M, F, neg(d), wM, wF, back)
        n, arm = neg(n), sub(arm, d)
    phi[k] = g
    put3(G, k, 0, cross(arm, n))
    put3(G, k, 3, n)
    gamma[k] = -terms
    return k + 1
