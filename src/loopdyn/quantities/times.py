"""Times that users give: checked in the same words by all functions that take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.errors import LoopdynError


def check_span(t_span: tuple[float, float]) -> None:
    """Raise unless a span is two finite times, the last one later.

    Examples
    --------
    >>> check_span((1.0, 0.0))
    Traceback (most recent call last):
    ...
    loopdyn.errors.LoopdynError: t_span is (1.0, 0.0). Give the first and the last time in s, the last one being later.
    """
    span = np.asarray(t_span, float)
    if span.shape != (2,) or not np.isfinite(span).all() or not span[1] > span[0]:
        raise LoopdynError(f"t_span is {t_span}. Give the first and the last time in s, the last one being later.")


def given_times(t_eval: ArrayLike, start: float = -np.inf, end: float = np.inf) -> NDArray[np.float64]:
    """Output times in s, ascending and inside a span.

    Examples
    --------
    >>> given_times([0.0, 2.0], 0.0, 1.0)
    Traceback (most recent call last):
    ...
    loopdyn.errors.LoopdynError: t_eval goes from 0 to 2 s, outside of t_span. Extend t_span.
    """
    times = np.array(t_eval, float)
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or np.any(np.diff(times) <= 0.0):
        raise LoopdynError("t_eval must be a list of ascending times in s.")
    if times[0] < start or times[-1] > end:
        raise LoopdynError(f"t_eval goes from {times[0]:g} to {times[-1]:g} s, outside of t_span. Extend t_span.")
    return times
