"""Factorisation A = L D L^T of a sparse positive semidefinite matrix by blocks whose pattern is known beforehand.

The array of A (:class:`loopdyn.loops.elimination.ordering.Pattern`) is overwritten: with Z = L D, below the diagonal of
a node's own block and in the rows of later nodes is Z, above the diagonal L^T. A pivot below its `floor` is dropped:
its row depends on earlier ones, and its unknown becomes zero.
"""

from loopdyn.engine.jit import inline
from loopdyn.loops.elimination.layout import BLOCK_BEGIN, FIRST_ROW, LATER_BEGIN, LATER_END, ROWS, START

# A node has at most six rows, a body at most six freedoms. A factor that is used again and again is held in a tuple of
# six numbers, in registers: an array would be read again after every number that is written.
NONE, MINUS = (0.0,) * 6, (-1.0,) * 6


@inline(always=True)
def read_six(A, at, n):
    """A[at] ... A[at + n - 1], 0 < n < 7, then zeros."""
    return (
        A[at],
        A[at + 1] if n > 1 else 0.0,
        A[at + 2] if n > 2 else 0.0,
        A[at + 3] if n > 3 else 0.0,
        A[at + 4] if n > 4 else 0.0,
        A[at + 5] if n > 5 else 0.0,
    )


@inline(always=True)
def dot_six(w, A, at, n):
    """Scalar product of w and n numbers of A."""
    x = w[0] * A[at]
    if n > 1:
        x += w[1] * A[at + 1]
    if n > 2:
        x += w[2] * A[at + 2]
    if n > 3:
        x += w[3] * A[at + 3]
    if n > 4:
        x += w[4] * A[at + 4]
    if n > 5:
        x += w[5] * A[at + 5]
    return x


@inline(always=True)
def add_scaled(w, f, A, at, n):
    """w plus f times n numbers of A."""
    return (
        w[0] + f * A[at],
        w[1] + f * A[at + 1] if n > 1 else w[1],
        w[2] + f * A[at + 2] if n > 2 else w[2],
        w[3] + f * A[at + 3] if n > 3 else w[3],
        w[4] + f * A[at + 4] if n > 4 else w[4],
        w[5] + f * A[at + 5] if n > 5 else w[5],
    )


@inline(always=True)
def multiply_six(w, f, n):
    """The first n numbers of w times those of f, one by one."""
    return (
        w[0] * f[0],
        w[1] * f[1] if n > 1 else w[1],
        w[2] * f[2] if n > 2 else w[2],
        w[3] * f[3] if n > 3 else w[3],
        w[4] * f[4] if n > 4 else w[4],
        w[5] * f[5] if n > 5 else w[5],
    )


@inline(always=True)
def subtract_six(A, at, w, n):
    """Subtract the first n numbers of w from those of A."""
    A[at] -= w[0]
    if n > 1:
        A[at + 1] -= w[1]
    if n > 2:
        A[at + 2] -= w[2]
    if n > 3:
        A[at + 3] -= w[3]
    if n > 4:
        A[at + 4] -= w[4]
    if n > 5:
        A[at + 5] -= w[5]


@inline(always=True)
def add_products(A, at, w, Z, begin, rows, n):
    """A[at + r] += w . Z_r for the rows r of Z, of length n > 0, which begin at `begin`; w: six numbers."""
    for r in range(rows):
        A[at + r] += dot_six(w, Z, begin, n)
        begin += n


@inline(always=True)
def factor_own_block(A, place, m, row, floor, pivot, inverse):
    """Z and L^T of the diagonal block of a node; returns how many rows were dropped."""
    dropped = 0
    for a in range(m):
        at = place + a * m
        for b in range(a):
            z = A[at + b]
            for c in range(b):
                z -= A[at + c] * A[place + c * m + b]
            A[at + b] = z
        d = A[at + a]
        for b in range(a):
            entry = A[at + b] * inverse[row + b]
            d -= entry * A[at + b]
            A[place + b * m + a] = entry
        pivot[row + a] = d
        if d.real > floor[row + a]:
            inverse[row + a] = 1.0 / d
        else:
            inverse[row + a] = 0.0
            dropped += 1
    return dropped


@inline(always=True)
def factor_node(P, A, k, m, floor, pivot, inverse):
    """Eliminate the m rows of node k; the compiler unrolls the loops if m is a literal. Returns the rows dropped."""
    row, place = P.node[k, FIRST_ROW], P.node[k, START]
    dropped = factor_own_block(A, place, m, row, floor, pivot, inverse)
    begin, end, block = P.node[k, LATER_BEGIN], P.node[k, LATER_END], P.node[k, BLOCK_BEGIN]
    below = place + m * m
    at = below
    for x in range(begin, end):
        for _ in range(P.node[P.later[x], ROWS]):
            for b in range(m):  # Z of one row
                z = A[at + b]
                for c in range(b):
                    z -= A[at + c] * A[place + c * m + b]
                A[at + b] = z
            at += m
    at, shares = below, multiply_six(read_six(inverse, row, m), MINUS, m)
    for x in range(begin, end):
        for r in range(P.node[P.later[x], ROWS]):
            w = multiply_six(read_six(A, at, m), shares, m)
            other = below
            for y in range(begin, x + 1):  # the upper half of its own block is not needed
                columns = P.node[P.later[y], ROWS]
                add_products(A, P.block[block + y - begin] + r * columns, w, A, other, columns, m)
                other += columns * m
            at += m
        block += x - begin + 1
    return dropped


@inline(always=True)
def factor(P, A, floor, pivot, inverse):
    """Overwrite A, fill pivot and inverse (1/pivot, or 0 where dropped). Returns the rows dropped."""
    dropped = 0
    for k in range(P.node.shape[0]):
        m = P.node[k, ROWS]
        if m == 3:  # a ball, or the force part of another joint
            dropped += factor_node(P, A, k, 3, floor, pivot, inverse)
        elif m == 2:  # a hinge in a plane
            dropped += factor_node(P, A, k, 2, floor, pivot, inverse)
        elif m == 4:  # a universal joint
            dropped += factor_node(P, A, k, 4, floor, pivot, inverse)
        elif m > 0:
            dropped += factor_node(P, A, k, m, floor, pivot, inverse)
    return dropped


@inline(always=True)
def solve(P, A, inverse, b):
    """b <- A^-1 b with the factor in A, with zeros for the rows that were dropped."""
    for k in range(P.node.shape[0]):
        row, m, place = P.node[k, FIRST_ROW], P.node[k, ROWS], P.node[k, START]
        if m == 0:
            continue
        for a in range(m):
            y = b[row + a]
            for c in range(a):
                y -= A[place + a * m + c] * b[row + c]
            b[row + a] = y * inverse[row + a]
        known, at = read_six(b, row, m), place + m * m
        for x in range(P.node[k, LATER_BEGIN], P.node[k, LATER_END]):
            first = P.node[P.later[x], FIRST_ROW]
            for r in range(first, first + P.node[P.later[x], ROWS]):
                b[r] -= dot_six(known, A, at, m)
                at += m
    for k in range(P.node.shape[0] - 1, -1, -1):
        row, m, place = P.node[k, FIRST_ROW], P.node[k, ROWS], P.node[k, START]
        if m == 0:
            continue
        w, at = NONE, place + m * m
        for x in range(P.node[k, LATER_BEGIN], P.node[k, LATER_END]):
            first = P.node[P.later[x], FIRST_ROW]
            for r in range(first, first + P.node[P.later[x], ROWS]):
                w = add_scaled(w, b[r], A, at, m)
                at += m
        subtract_six(b, row, multiply_six(w, read_six(inverse, row, m), m), m)
        for a in range(m - 2, -1, -1):
            y = b[row + a]
            for c in range(a + 1, m):
                y -= A[place + a * m + c] * b[row + c]
            b[row + a] = y
