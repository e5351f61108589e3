"""Contributions of parameters to the variance of a measure: linear, and Sobol indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]
RESAMPLED = 200  # bootstrap samples for standard errors


def linear_contributions(names: Sequence[str], x: Array, y: Array) -> pandas.DataFrame:
    """Contributions by a least-squares fit of y (n,) over x (n, parameters).

    Examples
    --------
    >>> x = np.random.default_rng(0).random((50, 2))
    >>> linear_contributions(["a", "b"], x, 3 * x[:, 0])["slope"].abs().round(6).tolist()[:2]
    [3.0, 0.0]
    """
    import pandas as pd

    n, k = x.shape
    if n < k + 2:
        raise LoopdynError(f"{n} finished designs are too few for the slopes of {k} parameters. Give more designs.")
    centred, scale = x - x.mean(axis=0), x.std(axis=0)
    if not np.all(scale > 0.0):
        still = names[int(np.argmin(scale))]
        raise LoopdynError(f"'{still}' is the same in all designs, so that it has no contribution. Leave it out.")
    fit, _, rank, _ = np.linalg.lstsq(centred / scale, y - y.mean(), rcond=None)
    if rank < k:
        raise LoopdynError("the parameters of the designs depend on each other, so that slopes are not unique.")
    variance = float(np.var(y))
    rest = y - y.mean() - centred / scale @ fit
    parts = fit**2 / variance if variance > 0.0 else np.zeros(k)
    left = float(np.var(rest)) / variance if variance > 0.0 else 0.0
    slopes, contributions = [*(fit / scale), np.nan], [*parts, left]
    return pd.DataFrame({"slope": slopes, "contribution": contributions}, index=[*names, "not linear"])


def sobol_indices(names: Sequence[str], values: Array) -> pandas.DataFrame:
    """First-order and total Sobol indices from values at the designs A, B, and A with column j of B.

    Estimators of Saltelli et al. (2010), table 2: (b) for first-order, (f, Jansen) for total indices; standard
    errors by bootstrap.
    """
    import pandas as pd

    k = len(names)
    f = values.reshape(k + 2, -1)
    if not np.var(f[:2]) > 0.0:
        raise LoopdynError("the measure is the same in all designs, so that it has no Sobol indices.")
    first, total = _indices(f)
    rng, n = np.random.default_rng(0), f.shape[1]
    drawn = np.array([_indices(f[:, rng.integers(n, size=n)]) for _ in range(RESAMPLED)])
    errors = drawn.std(axis=0, ddof=1)
    columns = {"first": first, "first_error": errors[0], "total": total, "total_error": errors[1]}
    return pd.DataFrame(columns, index=list(names))


def _indices(f: Array) -> tuple[Array, Array]:
    a, b, mixed = f[0], f[1], f[2:]
    centre = 0.5 * (a.mean() + b.mean())  # less noise
    variance = np.var(f[:2])
    first = np.mean((b - centre) * (mixed - a), axis=1) / variance
    total = 0.5 * np.mean((a - mixed) ** 2, axis=1) / variance
    return first, total


__all__ = ["linear_contributions", "sobol_indices"]
