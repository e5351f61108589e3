"""Small dense matrices in kernels: LU with row pivoting, inverse, Cholesky; in place, without allocation.

They compare real parts only, so that a complex step passes through them.
"""

from __future__ import annotations

import numpy as np

from loopdyn.engine.jit import inline


@inline
def factorise(B, order):
    """LU factors of B in place, with row pivoting; returns the sign of det B and the smallest pivot."""
    n = order.shape[0]
    sign, least = 1.0, np.inf
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if (B[i, j] * B[i, j]).real > (B[best, j] * B[best, j]).real:
                best = i
        order[j] = best
        if best != j:
            sign = -sign
            for m in range(n):
                B[j, m], B[best, m] = B[best, m], B[j, m]
        pivot = B[j, j].real
        if pivot < 0.0:
            sign = -sign
        least = min(least, np.sqrt(pivot * pivot))
        for i in range(j + 1, n):
            B[i, j] /= B[j, j]
            x = B[i, j]
            for m in range(j + 1, n):
                B[i, m] -= x * B[j, m]
    return sign, least


@inline
def solve(B, order, X):
    """X <- B^-1 X, all columns, with the factors of B."""
    n, columns = X.shape
    for j in range(n):
        best = int(order[j].real)
        if best != j:
            for m in range(columns):
                X[j, m], X[best, m] = X[best, m], X[j, m]
    for i in range(n):
        for j in range(i):
            x = B[i, j]
            for m in range(columns):
                X[i, m] -= x * X[j, m]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x = B[i, j]
            for m in range(columns):
                X[i, m] -= x * X[j, m]
        for m in range(columns):
            X[i, m] /= B[i, i]


@inline(always=True)
def invert(A, B, o, n):
    """B <- A^-1, both (n, n) by rows from o on; A is destroyed. Returns the sign of det A and its smallest pivot."""
    sign, least = 1.0, np.inf
    for i in range(n):
        for j in range(n):
            B[o + i * n + j] = 1.0 if i == j else 0.0
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            x, y = A[o + i * n + j].real, A[o + best * n + j].real
            if x * x > y * y:
                best = i
        if best != j:
            sign = -sign
            for m in range(n):
                A[o + j * n + m], A[o + best * n + m] = A[o + best * n + m], A[o + j * n + m]
                B[o + j * n + m], B[o + best * n + m] = B[o + best * n + m], B[o + j * n + m]
        pivot = A[o + j * n + j]
        if pivot.real < 0.0:
            sign = -sign
        least = min(least, pivot.real * pivot.real)
        inverse = 1.0 / pivot
        for m in range(j + 1, n):
            A[o + j * n + m] *= inverse
        for m in range(n):
            B[o + j * n + m] *= inverse
        for i in range(n):
            if i != j:
                x = A[o + i * n + j]
                for m in range(j + 1, n):
                    A[o + i * n + m] -= x * A[o + j * n + m]
                for m in range(n):
                    B[o + i * n + m] -= x * B[o + j * n + m]
    return sign, np.sqrt(least)


@inline(always=True)
def cholesky(S):
    """Lower factor R of S = R R^T in place; False if S is not positive definite."""
    n = S.shape[0]
    for j in range(n):
        for m in range(j):
            x = S[j, m]
            for i in range(j, n):
                S[i, j] -= S[i, m] * x
        if not S[j, j].real > 0.0:
            return False
        S[j, j] = np.sqrt(S[j, j])
        for i in range(j + 1, n):
            S[i, j] /= S[j, j]
    return True


@inline(always=True)
def solve_cholesky(R, b):
    """b <- (R R^T)^-1 b."""
    n = b.shape[0]
    for i in range(n):
        for j in range(i):
            b[i] -= R[i, j] * b[j]
        b[i] /= R[i, i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= R[j, i] * b[j]
        b[i] /= R[i, i]
