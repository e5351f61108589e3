"""Designs of a study: a table of values of parameters, from a grid, a list, a file, samples or tolerances.

Samples are drawn for the whole table from one seed, so that a design has the same values whoever computes it, and
whichever others are computed.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import LoopdynError
from loopdyn.model.mechanism import Mechanism
from loopdyn.model.tolerances import Band, Tolerance
from loopdyn.quantities.wording import nearest
from loopdyn.studies.tables import NAME, rows_of

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]
Method = Literal["random", "latin hypercube", "sobol", "saltelli"]
METHODS = ("random", "latin hypercube", "sobol", "saltelli")
MOST_DESIGNS = 10_000_000


@dataclass(frozen=True, eq=False)
class Designs:
    """Table of designs.

    Attributes
    ----------
    names : tuple of str
        Parameters.
    values : (n, parameters) array
        In the units of the model; NaN where a design keeps the value of the model.
    labels : tuple of str
        Names of the designs; empty if they are numbered.
    method : str
        "grid", "table", "array", or the method of the samples.
    bands : mapping
        Bands of the parameters that were sampled.
    """

    names: tuple[str, ...]
    values: Array = field(repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)
    method: str = "array"
    bands: Mapping[str, Band] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        n, k = self.values.shape
        if not n:
            raise LoopdynError("there are no designs. Give at least one.")
        if n > MOST_DESIGNS:
            raise LoopdynError(f"{n:,} designs are more than {MOST_DESIGNS:,}. Split the study.")
        if k != len(self.names) or len(set(self.names)) != k:
            raise LoopdynError(f"{k} columns of values for the parameters {', '.join(self.names)}. Give one for each.")

    def __len__(self) -> int:
        return len(self.values)

    def filled(self, mechanism: Mechanism, offsets: Sequence[str] = ()) -> Designs:
        """Designs with the values of the model where they keep them; raises if they do not fit the model.

        The last columns are those of `offsets`, of pins.
        """
        known = mechanism.parameters
        own = self.names[: len(self.names) - len(offsets)]
        if list(self.names[len(own) :]) != list(offsets):
            raise LoopdynError(f"with clearances the last columns of the designs are {', '.join(offsets)}. Add them.")
        unknown = [name for name in own if name not in known]
        if unknown:
            hint = nearest(unknown[0], known) if known else "Give the model parameters first."
            raise LoopdynError(f"'{unknown[0]}' of the designs is not a parameter of '{mechanism.name}'. {hint}")
        values = self.values
        if np.isnan(values).any():
            nominal = {**mechanism.resolver().parameters, **dict.fromkeys(offsets, 0.0)}
            values = np.where(np.isnan(values), [nominal[name] for name in self.names], values)
        if not np.isfinite(values).all():
            k, j = np.argwhere(~np.isfinite(values))[0].tolist()
            raise LoopdynError(f"'{self.names[j]}' of design {k} is {values[k, j]}. Give finite numbers.")
        return Designs(self.names, values, self.labels, self.method, self.bands)


def grid(axes: Mapping[str, ArrayLike]) -> Designs:
    """All combinations of values of parameters; the last parameter changes fastest.

    Examples
    --------
    >>> grid({"crank": [0.2, 0.3], "rod": [1.0, 1.1]}).values.tolist()
    [[0.2, 1.0], [0.2, 1.1], [0.3, 1.0], [0.3, 1.1]]
    """
    columns = [np.atleast_1d(_numbers(name, x)) for name, x in axes.items()]
    for name, x in zip(axes, columns, strict=True):
        if x.ndim != 1 or not len(x):
            raise LoopdynError(f"'{name}' of the grid has no list of values. Give at least one number.")
    count = int(np.prod([len(x) for x in columns], dtype=float)) if columns else 0
    if count > MOST_DESIGNS:
        raise LoopdynError(f"the grid has {count:,} designs, more than {MOST_DESIGNS:,}. Give fewer values.")
    values = np.array(list(itertools.product(*columns)), float) if count else np.zeros((0, len(columns)))
    return Designs(tuple(axes), values, method="grid")


def table(rows: str | os.PathLike[str] | pandas.DataFrame | Sequence[Mapping[str, Any]]) -> Designs:
    """Designs from a CSV file, a data frame or a list of mappings.

    Parameters
    ----------
    rows : path, data frame or list of mappings
        A row per design, a column per parameter; an empty cell keeps the value of the model. A column `name` names the
        designs.

    Examples
    --------
    >>> table([{"name": "short", "crank": 0.2}, {"name": "long", "crank": 0.4}]).labels
    ('short', 'long')
    """
    found = rows_of(rows, "designs")
    names = tuple(dict.fromkeys(c for row in found.values() for c in row))
    for label, row in found.items():
        text = next((f"{c} = '{x}'" for c, x in row.items() if isinstance(x, str)), None)
        if text:
            raise LoopdynError(f"design '{label}': {text} is no number. Give numbers; a formula belongs in the model.")
    values = np.array([[row.get(name, np.nan) for name in names] for row in found.values()], float)
    numbered = list(found) == [str(k) for k in range(1, len(found) + 1)]
    return Designs(names, values.reshape(len(found), len(names)), () if numbered else tuple(found), "table")


def array(names: Sequence[str], values: ArrayLike) -> Designs:
    """Designs from an array, such as samples of SALib, optuna or pymoo.

    Parameters
    ----------
    names : list of str
        Parameters, one for each column.
    values : (n, parameters)

    Examples
    --------
    >>> len(array(["crank", "rod"], [[0.2, 1.0], [0.3, 1.0]]))
    2
    """
    found = _numbers("values", values)
    if found.ndim != 2:
        raise LoopdynError(f"values have the shape {found.shape}. Give (designs, parameters).")
    if not np.isfinite(found).all():
        raise LoopdynError("values have numbers that are not finite.")
    return Designs(tuple(map(str, names)), found)


def samples(
    tolerances: Mapping[str, Any], count: int, *, method: Method = "random", seed: int = 0, nominal: Any = None
) -> Designs:
    """Samples of parameters within their tolerances or ranges.

    Parameters
    ----------
    tolerances : mapping
        By parameter a :class:`Tolerance` or its text, ``"40 ± 0.05 normal"``, or a range ``(low, high)``.
    count : int
        Number of samples; "sobol" needs a power of two for its balance, "saltelli" makes count * (parameters + 2).
    method : {"random", "latin hypercube", "sobol", "saltelli"}
        "saltelli": the scheme of Saltelli et al. (2010) for Sobol indices, see :meth:`Study.sensitivity`.
    seed : int
    nominal : mapping, optional
        Nominal values of tolerances that give none.

    Examples
    --------
    >>> found = samples({"crank": "40 ± 0.05", "rod": (90, 110)}, 8, method="sobol")
    >>> found.values.shape, bool(abs(found.values[:, 0] - 40).max() < 0.05)
    ((8, 2), True)
    """
    if method not in METHODS:
        raise LoopdynError(f"there is no method of sampling '{method}'. {nearest(method, METHODS)}")
    if count < 1:
        raise LoopdynError(f"{count} samples. Give a positive number.")
    if not tolerances:
        raise LoopdynError("there are no tolerances to sample. Give at least one: {'crank': '40 ± 0.05'}.")
    bands = {name: band_of(name, given, nominal or {}) for name, given in tolerances.items()}
    chances = _probabilities(count, len(bands), method, seed)
    values = np.stack([band.at(chances[:, j]) for j, band in enumerate(bands.values())], axis=1)
    return Designs(tuple(bands), values, method=method, bands=bands)


def band_of(name: str, given: Any, nominal: Mapping[str, float]) -> Band:
    """Band of a parameter from a tolerance, its text, or a range."""
    if isinstance(given, list | tuple) and len(given) == 2:
        low, high = (float(x) for x in _numbers(name, given))
        if not (np.isfinite([low, high]).all() and low < high):
            raise LoopdynError(f"the range of '{name}' is {given}. Give two ascending numbers.")
        return Band(0.5 * (low + high), low, high, "uniform", 3.0)
    if isinstance(given, str):
        try:
            given = Tolerance(given)
        except LoopdynError as error:
            raise LoopdynError(f"'{name}': {error}") from None
    if not isinstance(given, Tolerance):
        raise LoopdynError(f"'{name}' is {given!r}. Give a tolerance such as '40 ± 0.05', or a range (low, high).")
    if given.nominal is None and name not in nominal:
        raise LoopdynError(f"the tolerance of '{name}' has no nominal value. Write e.g. '40 ± 0.05'.")
    return given.about(nominal.get(name, 0.0))


def _probabilities(count: int, size: int, method: str, seed: int) -> Array:
    """Probabilities (designs, size) in (0, 1)."""
    from scipy.stats import qmc

    if method == "random":
        found = np.random.default_rng(seed).random((count, size))
    elif method == "latin hypercube":
        found = qmc.LatinHypercube(size, seed=seed).random(count)
    elif method == "sobol":
        found = _sobol(count, size, seed)
    else:
        both = _sobol(count, 2 * size, seed)
        A, B = both[:, :size], both[:, size:]
        mixed = []
        for j in range(size):
            mixed.append(A.copy())
            mixed[-1][:, j] = B[:, j]
        found = np.concatenate([A, B, *mixed])
    return np.clip(found, 2.0**-53, 1.0 - 2.0**-53)


def _sobol(count: int, size: int, seed: int) -> Array:
    from scipy.stats import qmc

    if count & (count - 1):
        near = 2 ** round(float(np.log2(count)))
        raise LoopdynError(f"{count} samples of a Sobol sequence are not balanced. Give a power of two: {near}.")
    return np.asarray(qmc.Sobol(size, scramble=True, seed=seed).random(count))


def _numbers(name: str, given: Any) -> Array:
    try:
        return np.asarray(given, float)
    except (TypeError, ValueError):
        raise LoopdynError(f"'{name}' is {given!r}. Give numbers.") from None


# ------------------------------------------------------------------------------------- argument of a study


def designs_of(
    mechanism: Mechanism,
    given: Any,
    count: int | None,
    method: Method | None,
    seed: int | None,
    pins: tuple[str, ...] = (),
) -> Designs:
    """Designs from the argument of :func:`loopdyn.study`, complete and checked for a mechanism; `pins` have offsets."""
    given = dict(mechanism.tolerances) if given is None else given
    if isinstance(given, Mapping) and not given:
        raise LoopdynError(
            f"'{mechanism.name}' has no tolerances, and no designs are given. Give designs, or add to the model: "
            "tolerances: {crank: ± 0.05}."
        )
    if isinstance(given, Mapping) and any(isinstance(x, str | Tolerance) for x in given.values()):
        return _sampled(mechanism, given, count, method, seed)
    if count is not None or method is not None or seed is not None:
        raise LoopdynError("samples, method and seed are for tolerances, but the designs are given. Leave them out.")
    if isinstance(given, Designs):
        found = given
    elif isinstance(given, Mapping):
        found = grid(given)
    else:
        found = table(given)
    return found.filled(mechanism, [f"{pin} clearance {k}" for pin in pins for k in (1, 2)])


def _sampled(
    mechanism: Mechanism, given: Mapping[str, Any], count: int | None, method: Method | None, seed: int | None
) -> Designs:
    if count is None:
        raise LoopdynError("the number of samples is missing. Give it: samples=1000.")
    unknown = [name for name in given if name not in mechanism.parameters]
    if unknown:
        hint = nearest(unknown[0], mechanism.parameters)
        raise LoopdynError(f"'{unknown[0]}' of the designs is not a parameter of '{mechanism.name}'. {hint}")
    nominal = mechanism.resolver().parameters
    return samples(given, count, method=method or "random", seed=seed or 0, nominal=nominal).filled(mechanism)


__all__ = ["NAME", "Designs", "array", "band_of", "designs_of", "grid", "samples", "table"]
