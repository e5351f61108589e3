"""Small fixed-size algebra over tuples: 3-vectors, rotation matrices, symmetric matrices, 6x6 inertias.

Everything here is inlined into the kernels, which then read like the theory and run without a temporary
array. Conventions: a rotation matrix is 9 numbers by rows; a symmetric 3x3 matrix is ``(xx, yy, zz, xy,
xz, yz)``; a 6x6 inertia is the triple ``(J, H, M)`` of the blocks ``[[J, H], [H^T, M]]``, angular part
first, `J` and `M` symmetric and `H` by rows. Vectors that belong together are kept as rows of a 2-D array
``a[i, k:k+3]``, read by :func:`get3` and written by :func:`put3`.

Products are written so that they also hold in complex arithmetic (no conjugation): a complex step through
any kernel gives exact derivatives.
"""

from __future__ import annotations

from loopdyn.engine.jit import inline

# ---------------------------------------------------------------------------------- reading and writing


@inline
def get3(a, i, k):
    return (a[i, k], a[i, k + 1], a[i, k + 2])


@inline
def put3(a, i, k, v):
    a[i, k] = v[0]
    a[i, k + 1] = v[1]
    a[i, k + 2] = v[2]


@inline
def add3(a, i, k, v):
    a[i, k] += v[0]
    a[i, k + 1] += v[1]
    a[i, k + 2] += v[2]


@inline
def get6(a, i, k):
    return (a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3], a[i, k + 4], a[i, k + 5])


@inline
def put6(a, i, k, v):
    a[i, k] = v[0]
    a[i, k + 1] = v[1]
    a[i, k + 2] = v[2]
    a[i, k + 3] = v[3]
    a[i, k + 4] = v[4]
    a[i, k + 5] = v[5]


@inline
def add6(a, i, k, v):
    a[i, k] += v[0]
    a[i, k + 1] += v[1]
    a[i, k + 2] += v[2]
    a[i, k + 3] += v[3]
    a[i, k + 4] += v[4]
    a[i, k + 5] += v[5]


@inline
def get9(a, i, k):
    return (
        a[i, k],
        a[i, k + 1],
        a[i, k + 2],
        a[i, k + 3],
        a[i, k + 4],
        a[i, k + 5],
        a[i, k + 6],
        a[i, k + 7],
        a[i, k + 8],
    )


@inline
def put9(a, i, k, v):
    a[i, k] = v[0]
    a[i, k + 1] = v[1]
    a[i, k + 2] = v[2]
    a[i, k + 3] = v[3]
    a[i, k + 4] = v[4]
    a[i, k + 5] = v[5]
    a[i, k + 6] = v[6]
    a[i, k + 7] = v[7]
    a[i, k + 8] = v[8]


@inline
def add9(a, i, k, v):
    a[i, k] += v[0]
    a[i, k + 1] += v[1]
    a[i, k + 2] += v[2]
    a[i, k + 3] += v[3]
    a[i, k + 4] += v[4]
    a[i, k + 5] += v[5]
    a[i, k + 6] += v[6]
    a[i, k + 7] += v[7]
    a[i, k + 8] += v[8]


# ---------------------------------------------------------------------------------------------- vectors


@inline
def add(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@inline
def sub(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@inline
def neg(a):
    return (-a[0], -a[1], -a[2])


@inline
def scale(s, a):
    return (s * a[0], s * a[1], s * a[2])


@inline
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@inline
def centripetal(w, r):
    """w x (w x r)."""
    return cross(w, cross(w, r))


# ------------------------------------------------------------------------------------ rotation matrices


@inline
def rot(R, a):
    """R a."""
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@inline
def rot_t(R, a):
    """R^T a."""
    return (
        R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@inline
def mul(A, B):
    """A B."""
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6],
        A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
        A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6],
        A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
        A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6],
        A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
        A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )


@inline
def transpose(A):
    return (A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8])


@inline
def row(A, k):
    """Row k of a 3x3 matrix as a vector; k is a literal 0, 1 or 2."""
    return (A[3 * k], A[3 * k + 1], A[3 * k + 2])


# ----------------------------------------------------------------------------------- symmetric matrices


@inline
def symv(S, v):
    """S v."""
    return (
        S[0] * v[0] + S[3] * v[1] + S[4] * v[2],
        S[3] * v[0] + S[1] * v[1] + S[5] * v[2],
        S[4] * v[0] + S[5] * v[1] + S[2] * v[2],
    )


@inline
def symrot(R, S):
    """R S R^T."""
    a = rot(R, (S[0], S[3], S[4]))
    b = rot(R, (S[3], S[1], S[5]))
    c = rot(R, (S[4], S[5], S[2]))
    p = (a[0], b[0], c[0])
    q = (a[1], b[1], c[1])
    r = (a[2], b[2], c[2])
    x = (R[0], R[1], R[2])
    y = (R[3], R[4], R[5])
    z = (R[6], R[7], R[8])
    return (dot(p, x), dot(q, y), dot(r, z), dot(p, y), dot(p, z), dot(q, z))


@inline
def parallel_axis(S, m, c):
    """Inertia about a point at distance c from the mass centre: S - m c~ c~."""
    x, y, z = c
    return (
        S[0] + m * (y * y + z * z),
        S[1] + m * (x * x + z * z),
        S[2] + m * (x * x + y * y),
        S[3] - m * x * y,
        S[4] - m * x * z,
        S[5] - m * y * z,
    )


# ------------------------------------------------------------------------------------ 6x6 inertias (J, H, M)


@inline
def inertia_times(J, H, M, w, v):
    """[[J, H], [H^T, M]] [w; v]."""
    return add(symv(J, w), rot(H, v)), add(rot_t(H, w), symv(M, v))


@inline
def subtract_dyad(J, H, M, d, uw, uv):
    """(J, H, M) - d u u^T with u = [uw; uv]."""
    kw = scale(d, uw)
    kv = scale(d, uv)
    return (
        (
            J[0] - kw[0] * uw[0],
            J[1] - kw[1] * uw[1],
            J[2] - kw[2] * uw[2],
            J[3] - kw[0] * uw[1],
            J[4] - kw[0] * uw[2],
            J[5] - kw[1] * uw[2],
        ),
        (
            H[0] - kw[0] * uv[0],
            H[1] - kw[0] * uv[1],
            H[2] - kw[0] * uv[2],
            H[3] - kw[1] * uv[0],
            H[4] - kw[1] * uv[1],
            H[5] - kw[1] * uv[2],
            H[6] - kw[2] * uv[0],
            H[7] - kw[2] * uv[1],
            H[8] - kw[2] * uv[2],
        ),
        (
            M[0] - kv[0] * uv[0],
            M[1] - kv[1] * uv[1],
            M[2] - kv[2] * uv[2],
            M[3] - kv[0] * uv[1],
            M[4] - kv[0] * uv[2],
            M[5] - kv[1] * uv[2],
        ),
    )


@inline
def shift_inertia(J, H, M, r):
    """Inertia about a point at -r from the present one: H' = H + r~ M, J' = J + r~ H^T - H' r~."""
    c0 = cross(r, (M[0], M[3], M[4]))
    c1 = cross(r, (M[3], M[1], M[5]))
    c2 = cross(r, (M[4], M[5], M[2]))
    K = (
        H[0] + c0[0],
        H[1] + c1[0],
        H[2] + c2[0],
        H[3] + c0[1],
        H[4] + c1[1],
        H[5] + c2[1],
        H[6] + c0[2],
        H[7] + c1[2],
        H[8] + c2[2],
    )
    a0 = cross(r, (H[0], H[1], H[2]))  # columns of r~ H^T
    a1 = cross(r, (H[3], H[4], H[5]))
    a2 = cross(r, (H[6], H[7], H[8]))
    b0 = cross((K[0], K[1], K[2]), r)  # rows of K r~
    b1 = cross((K[3], K[4], K[5]), r)
    b2 = cross((K[6], K[7], K[8]), r)
    return (
        (
            J[0] + a0[0] - b0[0],
            J[1] + a1[1] - b1[1],
            J[2] + a2[2] - b2[2],
            J[3] + a1[0] - b0[1],
            J[4] + a2[0] - b0[2],
            J[5] + a2[1] - b1[2],
        ),
        K,
        M,
    )
