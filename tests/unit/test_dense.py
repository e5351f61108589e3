"""Small dense matrices in kernels, against NumPy; tolerances are rounding times the condition of these matrices."""

from __future__ import annotations

import numpy as np
import pytest

from loopdyn.engine import dense
from loopdyn.engine.jit import kernel, window

pytestmark = pytest.mark.jit_off
SIZES = pytest.mark.parametrize("n", [0, 1, 2, 5])


@kernel
def solved_by_lu(A, order, X):
    found = dense.factorise(A, order)
    dense.solve(A, order, X)
    return found


@kernel
def inverted(A, B, o, n):
    return dense.invert(A, B, o, n)


@kernel
def solved_by_cholesky(A, b, o, n):
    S = window(A, o, n, n)
    sound = dense.cholesky(S)
    if sound:
        dense.solve_cholesky(S, b)
    return sound


def matrix(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, n))


@SIZES
def test_lu_solves_and_tells_the_sign_of_the_determinant(n):
    A, b = matrix(n), np.random.default_rng(9).normal(size=(n, 2))
    X = b.copy()
    sign, least = solved_by_lu(A.copy(), np.zeros(n), X)
    np.testing.assert_allclose(X, np.linalg.solve(A, b), rtol=1e-11)
    assert sign == (np.sign(np.linalg.det(A)) if n else 1.0)
    assert least > 0.0


@SIZES
def test_inverse_stands_where_it_is_asked_for(n):
    A = matrix(n)
    given, found = np.concatenate([[7.0], A.ravel()]), np.zeros(1 + n * n)
    sign, _ = inverted(given, found, 1, n)
    np.testing.assert_allclose(found[1:].reshape(n, n), np.linalg.inv(A), rtol=1e-11)
    assert found[0] == 0.0
    assert sign == (np.sign(np.linalg.det(A)) if n else 1.0)


@SIZES
def test_cholesky_reads_the_lower_half_alone(n):
    A, b = matrix(n), np.random.default_rng(9).normal(size=n)
    S = A @ A.T + np.eye(n)
    x = b.copy()
    assert solved_by_cholesky(np.tril(S).ravel(), x, 0, n)
    np.testing.assert_allclose(x, np.linalg.solve(S, b), rtol=1e-11)


def test_cholesky_refuses_what_is_not_positive_definite():
    assert not solved_by_cholesky(np.array([1.0, 0.0, 2.0, 1.0]), np.ones(2), 0, 2)
