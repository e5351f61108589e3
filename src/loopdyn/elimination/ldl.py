"""Factorisation A = L D L^T of a sparse positive semidefinite matrix by blocks whose pattern is known beforehand.

The array of A (:class:`loopdyn.elimination.ordering.Pattern`) is overwritten: with Z = L D, below the diagonal of a
node's own block and in the rows of later nodes stands Z, above the diagonal L^T. A pivot below its `floor` is dropped:
its row depends on earlier ones, its unknown becomes zero.
"""

from loopdyn._jit import inline
from loopdyn.elimination.layout import BLOCK_BEGIN, FIRST_ROW, LATER_BEGIN, LATER_END, ROWS, START


@inline(always=True)
def add_products(A, at, w, Z, begin, rows, n):
    """A[at + r] += w . Z_r for the rows r of Z, of length n > 0, which begin at `begin`."""
    first = w[0]
    for r in range(rows):
        x = first * Z[begin]
        for k in range(1, n):
            x += w[k] * Z[begin + k]
        A[at + r] += x
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
def factor_node(P, A, k, m, floor, pivot, inverse, w):
    """Eliminate the m rows of node k; where m is a literal the compiler unrolls it. Returns the rows dropped."""
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
    at = below
    for x in range(begin, end):
        for r in range(P.node[P.later[x], ROWS]):
            for b in range(m):
                w[b] = -A[at + b] * inverse[row + b]
            other = below
            for y in range(begin, x + 1):  # of its own block the upper half is superfluous
                columns = P.node[P.later[y], ROWS]
                add_products(A, P.block[block + y - begin] + r * columns, w, A, other, columns, m)
                other += columns * m
            at += m
        block += x - begin + 1
    return dropped


@inline(always=True)
def factor(P, A, floor, pivot, inverse, w):
    """Overwrite A, fill pivot and inverse (1/pivot, or 0 where dropped); w: scratch. Returns the rows dropped."""
    dropped = 0
    for k in range(P.node.shape[0]):
        m = P.node[k, ROWS]
        if m == 3:  # a ball, or the force part of another joint
            dropped += factor_node(P, A, k, 3, floor, pivot, inverse, w)
        elif m == 2:  # a hinge in a plane
            dropped += factor_node(P, A, k, 2, floor, pivot, inverse, w)
        elif m == 4:  # a universal joint
            dropped += factor_node(P, A, k, 4, floor, pivot, inverse, w)
        elif m > 0:
            dropped += factor_node(P, A, k, m, floor, pivot, inverse, w)
    return dropped


@inline(always=True)
def solve(P, A, inverse, b):
    """b <- A^-1 b with the factor in A, with zeros for the rows that were dropped."""
    for k in range(P.node.shape[0]):
        row, m, place = P.node[k, FIRST_ROW], P.node[k, ROWS], P.node[k, START]
        for a in range(m):
            y = b[row + a]
            for c in range(a):
                y -= A[place + a * m + c] * b[row + c]
            b[row + a] = y * inverse[row + a]
        at = place + m * m
        for x in range(P.node[k, LATER_BEGIN], P.node[k, LATER_END]):
            first = P.node[P.later[x], FIRST_ROW]
            for r in range(first, first + P.node[P.later[x], ROWS]):
                y = b[r]
                for c in range(m):
                    y -= A[at + c] * b[row + c]
                b[r] = y
                at += m
    for k in range(P.node.shape[0] - 1, -1, -1):
        row, m, place = P.node[k, FIRST_ROW], P.node[k, ROWS], P.node[k, START]
        at = place + m * m
        for x in range(P.node[k, LATER_BEGIN], P.node[k, LATER_END]):
            first = P.node[P.later[x], FIRST_ROW]
            for r in range(first, first + P.node[P.later[x], ROWS]):
                y = b[r]
                for c in range(m):
                    b[row + c] -= A[at + c] * inverse[row + c] * y
                at += m
        for a in range(m - 1, -1, -1):
            y = b[row + a]
            for c in range(a + 1, m):
                y -= A[place + a * m + c] * b[row + c]
            b[row + a] = y
