"""Factorisation A = L D L^T of a sparse positive semidefinite matrix whose pattern is known beforehand.

Row by row: row k of L follows from the rows above it, which are held by columns (see
:class:`loopdyn.elimination.ordering.Pattern`). `A` holds the diagonal and then the rows of the pattern of L. A pivot
below its `floor` is dropped: its row depends on earlier ones, its unknown becomes zero.
"""

from loopdyn._jit import inline


@inline(always=True)
def factor(P, A, floor, L, pivot, inverse, y):
    """Fill L, pivot and inverse (1/pivot, or 0 where dropped); y: scratch, one per row. Returns the rows dropped."""
    n = pivot.shape[0]
    dropped = 0
    for k in range(n):
        begin, end = P.row_start[k], P.row_start[k + 1]
        for j in range(begin, end):
            y[P.row_columns[j]] = A[n + j]
        d = A[k]
        for j in range(begin, end):
            i, place = P.row_columns[j], P.row_places[j]
            yi = y[i]
            for p in range(P.column_start[i], place):
                y[P.column_rows[p]] -= L[p] * yi
            entry = yi * inverse[i]
            d -= entry * yi
            L[place] = entry
        pivot[k] = d
        if d.real > floor[k]:
            inverse[k] = 1.0 / d
        else:
            inverse[k] = 0.0
            dropped += 1
    return dropped


@inline(always=True)
def solve(P, L, inverse, b):
    """b <- A^-1 b, with zeros for the rows that were dropped."""
    n = inverse.shape[0]
    for k in range(n):
        bk = b[k]
        for p in range(P.column_start[k], P.column_start[k + 1]):
            b[P.column_rows[p]] -= L[p] * bk
    for k in range(n - 1, -1, -1):
        x = b[k] * inverse[k]
        if inverse[k] != 0.0:
            for p in range(P.column_start[k], P.column_start[k + 1]):
                x -= L[p] * b[P.column_rows[p]]
        b[k] = x
