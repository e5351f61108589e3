"""Joints whose coordinates add up: q (+) xi = q + xi, and the speeds are the rates of the coordinates.

`i` and `j` are the first of the `n` coordinates and speeds of the joint.
"""

from loopdyn.engine.jit import inline


@inline
def plus(n, q, i, xi, j, out):
    """out = q (+) xi."""
    for k in range(n):
        out[i + k] = q[i + k] + xi[j + k]


@inline
def minus(n, q, p, i, xi, j):
    """Increments xi with p = q (+) xi."""
    for k in range(n):
        xi[j + k] = p[i + k] - q[i + k]


@inline
def rate(n, xi, v, j, out):
    """Rate of xi at the speeds v, which are those at q (+) xi."""
    for k in range(j, j + n):
        out[k] = v[k]


@inline
def mean_speeds(n, xi, h, j, v):
    """Speeds half-way along a step of length h with the increments xi."""
    for k in range(j, j + n):
        v[k] = xi[k] / h
