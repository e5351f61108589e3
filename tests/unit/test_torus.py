"""Where a circle meets the torus of two skew hinges."""

from __future__ import annotations

import numpy as np
import pytest

from loopdyn.formulations.closure import torus
from loopdyn.spatial.rotations import about_axis

pytestmark = pytest.mark.jit_off


@pytest.fixture(autouse=True)
def plain() -> None:
    if hasattr(torus.real_roots, "overloads"):
        pytest.skip("compiled into its callers; the same source is checked with the JIT off")


def on_unit_circle(f: tuple[float, ...]) -> np.ndarray:
    """Roots of a series as those of a polynomial in exp(i x), by the eigenvalues of its companion matrix."""
    a0, a1, b1, a2, b2 = f
    z = np.roots([(a2 - 1j * b2) / 2, (a1 - 1j * b1) / 2, a0, (a1 + 1j * b1) / 2, (a2 + 1j * b2) / 2])
    return z[np.abs(np.abs(z) - 1.0) < 1e-7]


def test_real_roots_of_a_series_are_those_of_its_polynomial():
    rng = np.random.default_rng(0)
    counts = set()
    for _ in range(500):
        f = tuple(rng.normal(size=5))
        expected = on_unit_circle(f)
        found = [np.exp(1j * torus.sharpened(f, x)) for x in torus.real_roots(f) if x < torus.NONE]
        counts.add(len(found))
        assert len(found) == len(expected)
        for z in expected:
            assert min(abs(z - x) for x in found) < 1e-7  # of the companion matrix
    assert counts == {0, 2, 4}


@pytest.mark.parametrize(("f", "count"), [((0.3, 0, 0, 1, 0), 4), ((0, 1, 0, 0, 0), 2), ((3, 1, 1, 0, 0), 0)])
def test_series_without_some_terms_have_their_roots_too(f, count):
    f = tuple(float(x) for x in f)
    roots = [x for x in torus.real_roots(f) if x < torus.NONE]
    assert len(roots) == count
    assert all(abs(torus.value_at(f, torus.sharpened(f, x))[0]) < 1e-15 for x in roots)


@pytest.mark.parametrize("seed", range(5))
def test_a_point_that_two_hinges_have_turned_is_on_their_torus_and_gives_their_angles(seed):
    """Turned by rotation matrices, the last part first; F is zero there, its gradient that of differences."""
    rng = np.random.default_rng(seed)
    a1, a2, b = rng.normal(size=(3, 3))
    n1, n2 = (x / np.linalg.norm(x) for x in rng.normal(size=(2, 3)))
    first, second = rng.uniform(-3.0, 3.0, 2)
    p = a2 + about_axis(n2, second) @ (b - a2)
    p = a1 + about_axis(n1, first) @ (p - a1)
    T = torus.torus_of(*(tuple(x) for x in (a1, n1, a2, n2, b)))
    F, N = torus.at_point(T, tuple(p))
    assert abs(F) < 1e-12
    slopes = [
        (torus.at_point(T, tuple(p + h))[0] - torus.at_point(T, tuple(p - h))[0]) / 2e-6 for h in 1e-6 * np.eye(3)
    ]
    np.testing.assert_allclose(2.0 * np.array(N), slopes, rtol=1e-6, atol=1e-6)
    found = torus.angles(T, tuple(p))
    np.testing.assert_allclose(np.exp(1j * np.array(found[:2])), np.exp(1j * np.array([first, second])), atol=1e-10)
    u = rng.normal(size=3)
    v = np.cross(u, rng.normal(size=3))
    v *= np.linalg.norm(u) / np.linalg.norm(v)
    f = torus.along_circle(T, tuple(p), tuple(u), tuple(v))
    x = 0.7
    at = p + np.cos(x) * u + np.sin(x) * v
    np.testing.assert_allclose(torus.value_at(f, x)[0], torus.at_point(T, tuple(at))[0], rtol=1e-10)
