"""`Tolerance`: the band of a parameter and how its values are distributed within it.

A file lists tolerances by parameter, ``tolerances: {crank: ± 0.05}``; studies sample them. The nominal value is that of
the parameter unless the tolerance gives one, ``40 ± 0.05``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from loopdyn.errors import LoopdynError
from loopdyn.quantities.units import Resolver, Spec
from loopdyn.quantities.wording import nearest

Array = NDArray[np.float64]
Kind = Literal["uniform", "normal", "truncated"]

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_TEXT = re.compile(
    rf"\s*(?P<nominal>{_NUMBER})?\s*(?:(?:±|\+/?-)\s*(?P<both>{_NUMBER})"
    rf"|\+\s*(?P<plus>{_NUMBER})\s*-\s*(?P<minus>{_NUMBER}))\s*(?P<kind>[a-z]+)?\s*"
)
FORM = "Write '40 ± 0.05', '± 0.05 normal', '40 +0.1 -0', or a mapping with plus and minus."


class Tolerance(Spec):
    """Band of a parameter, and the distribution of its values.

    Parameters
    ----------
    plus, minus : float
        Largest deviations above and below the nominal value, in the unit of the parameter, not negative.
    nominal : float, optional
        Nominal value; by default that of the parameter in the model.
    distribution : {"uniform", "normal", "truncated"}
        "uniform" over the band; "normal" about its middle, with half the band as `sigmas` standard deviations;
        "truncated": the normal distribution restricted to the band.
    sigmas : float
        Standard deviations in half the band.

    Examples
    --------
    >>> Tolerance("40 ± 0.05 normal").plus, Tolerance("± 0.1").nominal, Tolerance("5 +0.2 -0.1").minus
    (0.05, None, 0.1)
    """

    label: ClassVar[str] = "tolerance"

    plus: float = Field(ge=0.0, allow_inf_nan=False)
    minus: float = Field(ge=0.0, allow_inf_nan=False)
    nominal: float | None = Field(default=None, allow_inf_nan=False)
    distribution: Kind = "uniform"
    sigmas: float = Field(default=3.0, gt=0.0, allow_inf_nan=False)

    def __init__(self, text: str | None = None, **data: Any) -> None:
        super().__init__(**{**({} if text is None else read_tolerance(text)), **data})

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def about(self, nominal: float) -> Band:
        """Band about the nominal value of a parameter."""
        at = nominal if self.nominal is None else self.nominal
        return Band(at, at - self.minus, at + self.plus, self.distribution, self.sigmas)


def read_tolerance(text: str) -> dict[str, Any]:
    """Fields of a tolerance from its text; raises LoopdynError if it has another form."""
    found = _TEXT.fullmatch(text)
    kind = found["kind"] or "uniform" if found else ""
    if found is None or kind not in ("uniform", "normal", "truncated"):
        raise LoopdynError(f"'{text}' is no tolerance. {FORM}")
    both = found["both"]
    plus, minus = (both, both) if both is not None else (found["plus"], found["minus"])
    given = {"plus": float(plus), "minus": float(minus), "distribution": kind}
    return given if found["nominal"] is None else {**given, "nominal": float(found["nominal"])}


def _shorthand(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return read_tolerance(value)
    except LoopdynError as error:
        raise ValueError(str(error)) from None


ToleranceField = Annotated[Tolerance, BeforeValidator(_shorthand, json_schema_input_type=Tolerance | str)]


def check_tolerances(tolerances: Mapping[str, Tolerance], parameters: Mapping[str, Any], r: Resolver) -> None:
    """Record a problem for each tolerance of something that is no parameter."""
    for name in tolerances:
        if name not in parameters:
            hint = nearest(name, parameters) if parameters else "Give the model parameters first."
            r.problem(f"tolerance '{name}'", "there is no such parameter", hint, ("tolerances", name))


class Band:
    """Values that a parameter may have: nominal, lowest and highest, and their distribution.

    Examples
    --------
    >>> band = Tolerance("40 ± 0.06 normal").about(0.0)
    >>> band.middle, round(band.deviation, 9), band.at(np.array([0.5])).tolist()
    (40.0, 0.02, [40.0])
    """

    def __init__(self, nominal: float, low: float, high: float, distribution: Kind, sigmas: float):
        self.nominal, self.low, self.high = nominal, low, high
        self.distribution, self.sigmas = distribution, sigmas

    @property
    def middle(self) -> float:
        """Middle of the band."""
        return 0.5 * (self.low + self.high)

    @property
    def half(self) -> float:
        """Half the width of the band."""
        return 0.5 * (self.high - self.low)

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        if self.distribution == "uniform":
            return self.half / math.sqrt(3.0)
        sigma = self.half / self.sigmas
        if self.distribution == "normal":
            return sigma
        from scipy.stats import truncnorm

        return float(sigma * truncnorm(-self.sigmas, self.sigmas).std())

    def at(self, probability: Array) -> Array:
        """Values below which the distribution has these probabilities, each in (0, 1)."""
        if self.half == 0.0:
            return np.full(np.shape(probability), self.middle)
        if self.distribution == "uniform":
            return np.asarray(self.low + (self.high - self.low) * probability)
        from scipy.stats import norm, truncnorm

        shape = norm if self.distribution == "normal" else truncnorm(-self.sigmas, self.sigmas)
        return np.asarray(self.middle + self.half / self.sigmas * shape.ppf(probability))


__all__ = ["Band", "Tolerance", "ToleranceField", "check_tolerances", "read_tolerance"]
