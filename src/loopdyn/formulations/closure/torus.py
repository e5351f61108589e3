"""Intersection of a circle with the torus that a point reaches by two skew hinges in series: a quartic equation.

A point on the last of three parts, joined by hinges with the axes n1 and n2, moves on a torus. With a the distance of
the axes and f1, f2 the feet of their common normal, w from f1 to the point, z = n1.w its height, and the point at the
distance L from f2 and at the height H along n2, it is on the torus where

    F(w) = sin^2 E^2 + a^2 K^2 - a^2 sin^2 (w.w - z^2) = 0,    E = (w.w + a^2 - L^2) / 2,    K = H - cos z

with sin and cos of the angle between the axes (Pieper's equation of robots with three hinges and a wrist). E / a and
-K / sin are the components of w, seen from the part in the middle, along the common normal x and along n1 x x; so the
angles of both hinges follow from w. On a circle w.w and z are of first degree in cos and sin of the angle, F is of
second degree and has up to four roots; at every other one of them F grows.

A *series* is (a0, a1, b1, a2, b2): a0 + a1 cos + b1 sin + a2 cos of the double angle + b2 sin of it.
"""

from typing import Any, NamedTuple

import numpy as np

from loopdyn.engine.jit import inline
from loopdyn.spatial.plucker import add, cross, dot, scale, sub
from loopdyn.spatial.rotations import atan2

NONE = 100.0  # rad: no root; roots are within two turns
SHARP = 4  # Newton steps that refine a root of Ferrari's formulas, 1e-8 off near a double root, to rounding
LONGEST = 0.1  # rad: a longer step would leave the root


class Torus(NamedTuple):
    """Two skew hinges in series and a point behind them."""

    foot: Any  # of the common normal, on the first axis
    first: Any  # axes
    second: Any
    normal: Any  # unit vector along the common normal
    apart: Any  # distance of the axes along it
    sine: Any  # of their angle
    cosine: Any
    arm: Any  # from the foot on the second axis to the point
    foot2: Any


@inline
def torus_of(a1, n1, a2, n2, b):
    """Torus from points and directions of the axes, and a position of the point."""
    N, d = cross(n1, n2), sub(a2, a1)
    ss = dot(N, N)
    sine = np.sqrt(ss)
    f1 = add(a1, scale(dot(cross(d, n2), N) / ss, n1))
    f2 = add(a2, scale(dot(cross(d, n1), N) / ss, n2))
    x = scale(1.0 / sine, N)
    return Torus(f1, n1, n2, x, dot(sub(f2, f1), x), sine, dot(n1, n2), sub(b, f2), f2)


@inline
def squared(u0, u1, u2):
    """Series of (u0 + u1 cos + u2 sin)^2."""
    return u0 * u0 + 0.5 * (u1 * u1 + u2 * u2), 2.0 * u0 * u1, 2.0 * u0 * u2, 0.5 * (u1 * u1 - u2 * u2), u1 * u2


@inline
def along_circle(T, centre, u, v):
    """Series of F at centre + u cos + v sin; u and v are perpendicular and as long as each other."""
    w = sub(centre, T.foot)
    aa, ss, LL, H = T.apart * T.apart, T.sine * T.sine, dot(T.arm, T.arm), dot(T.arm, T.second)
    E = 0.5 * (dot(w, w) + dot(u, u) + aa - LL), dot(w, u), dot(w, v)
    z = dot(w, T.first), dot(u, T.first), dot(v, T.first)
    e, h = squared(*E), squared(*z)
    k = squared(H - T.cosine * z[0], -T.cosine * z[1], -T.cosine * z[2])
    f0 = ss * e[0] + aa * k[0] + aa * ss * (h[0] - 2.0 * E[0] + aa - LL)
    f1 = ss * e[1] + aa * k[1] + aa * ss * (h[1] - 2.0 * E[1])
    f2 = ss * e[2] + aa * k[2] + aa * ss * (h[2] - 2.0 * E[2])
    return f0, f1, f2, ss * e[3] + aa * k[3] + aa * ss * h[3], ss * e[4] + aa * k[4] + aa * ss * h[4]


@inline
def at_point(T, p):
    """F at a point, and half of its gradient."""
    w = sub(p, T.foot)
    aa, ss, z, ww = T.apart * T.apart, T.sine * T.sine, dot(w, T.first), dot(w, w)
    E, K = 0.5 * (ww + aa - dot(T.arm, T.arm)), dot(T.arm, T.second) - T.cosine * z
    N = add(scale(ss * (E - aa), w), scale(aa * (ss * z - T.cosine * K), T.first))
    return ss * E * E + aa * (K * K - ss * (ww - z * z)), N


@inline
def angles(T, p):
    """Angles by which the two hinges must turn so that the point comes to p, and the share of p off the first axis.

    First the last part turns about the second axis, then both about the first one. x is inaccurate if the axes nearly
    intersect, y if they are nearly parallel: the less accurate one is found from the other and x^2 + y^2.
    """
    w, y_axis = sub(p, T.foot), cross(T.first, T.normal)
    ww, z = dot(w, w), dot(w, T.first)
    square = ww - z * z
    x = 0.5 * (ww + T.apart * T.apart - dot(T.arm, T.arm)) / T.apart
    y = (T.cosine * z - dot(T.arm, T.second)) / T.sine
    xx, yy = (x * x * square * T.sine * T.sine).real, (y * y * T.apart * T.apart).real
    if xx > yy and (square - y * y).real > 0.0:
        x = np.sqrt(square - y * y) * (1.0 if x.real > 0.0 else -1.0)
    elif yy > xx and (square - x * x).real > 0.0:
        y = np.sqrt(square - x * x) * (1.0 if y.real > 0.0 else -1.0)
    first = atan2(dot(w, y_axis), dot(w, T.normal)) - atan2(y, x)
    r = add(add(scale(x - T.apart, T.normal), scale(y, y_axis)), scale(z, T.first))
    n, u = T.second, T.arm
    second = atan2(dot(n, cross(u, r)), dot(u, r) - dot(n, u) * dot(n, r))
    return first, second, square / ww


@inline
def value_at(f, x):
    """A series, its slope and its curvature."""
    c, s = np.cos(x), np.sin(x)
    c2, s2 = c * c - s * s, 2.0 * s * c
    F = f[0] + f[1] * c + f[2] * s + f[3] * c2 + f[4] * s2
    slope = f[2] * c - f[1] * s + 2.0 * (f[4] * c2 - f[3] * s2)
    return F, slope, -f[1] * c - f[2] * s - 4.0 * (f[3] * c2 + f[4] * s2)


@inline
def sharpened(f, x):
    """Refine a root by Newton's method."""
    for _ in range(SHARP):
        F, slope, _ = value_at(f, x)
        step = F / slope
        if not (step * step).real < LONGEST * LONGEST:  # a double root: as near as it can be
            break
        x = x - step
    return x


@inline
def resolvent(p, q, r):
    """The largest root of m^3 + p m^2 + (p^2 / 4 - r) m - q^2 / 8; it is not negative."""
    c, d = 0.25 * p * p - r, -0.125 * q * q
    Q, R = (p * p - 3.0 * c) / 9.0, (p * (2.0 * p * p - 9.0 * c) + 27.0 * d) / 54.0
    if R * R < Q * Q * Q:
        m = -2.0 * np.sqrt(Q) * np.cos((np.arccos(R / np.sqrt(Q * Q * Q)) + 2.0 * np.pi) / 3.0) - p / 3.0
    else:
        A = np.cbrt(abs(R) + np.sqrt(R * R - Q * Q * Q))
        m = (-A if R > 0.0 else A) + (0.0 if A == 0.0 else (-Q / A if R > 0.0 else Q / A)) - p / 3.0
    return max(m, 0.0)


@inline
def real_roots(f):
    """Angles at which a real series vanishes: four, with NONE for missing ones.

    With t = tan of half the angle it is a polynomial of degree four; its first coefficient is the value at half a turn,
    so angles are counted from where that is largest.
    """
    at, largest = 0.0, 0.0
    for k in range(8):
        F, _, _ = value_at(f, 0.25 * np.pi * k)
        if abs(F) > largest:
            at, largest = 0.25 * np.pi * k, abs(F)
    if largest == 0.0:
        return NONE, NONE, NONE, NONE
    o = at - np.pi
    c, s, c2, s2 = np.cos(o), np.sin(o), np.cos(2.0 * o), np.sin(2.0 * o)
    a0, a1, b1 = f[0], f[1] * c + f[2] * s, f[2] * c - f[1] * s
    a2, b2 = f[3] * c2 + f[4] * s2, f[4] * c2 - f[3] * s2
    p4 = a0 - a1 + a2
    A, B = (2.0 * b1 - 4.0 * b2) / p4, (2.0 * a0 - 6.0 * a2) / p4
    C, D = (2.0 * b1 + 4.0 * b2) / p4, (a0 + a1 + a2) / p4
    p = B - 0.375 * A * A
    q = C - 0.5 * A * B + 0.125 * A * A * A
    r = D - 0.25 * A * C + 0.0625 * A * A * B - 0.01171875 * A * A * A * A
    m = resolvent(p, q, r)
    g, h = np.sqrt(2.0 * m), m + 0.5 * p
    k = np.sqrt(max(h * h - r, 0.0))
    k = -k if q < 0.0 else k
    left, right = 2.0 * m - 4.0 * (h + k), 2.0 * m - 4.0 * (h - k)
    l, i = np.sqrt(max(left, 0.0)), np.sqrt(max(right, 0.0))
    x1 = o + 2.0 * np.arctan(0.5 * (g + l) - 0.25 * A) if left >= 0.0 else NONE
    x2 = o + 2.0 * np.arctan(0.5 * (g - l) - 0.25 * A) if left >= 0.0 else NONE
    x3 = o + 2.0 * np.arctan(0.5 * (i - g) - 0.25 * A) if right >= 0.0 else NONE
    x4 = o + 2.0 * np.arctan(0.5 * (-i - g) - 0.25 * A) if right >= 0.0 else NONE
    return x1, x2, x3, x4
