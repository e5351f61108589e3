"""Forces given as a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from loopdyn.forces.base import Force, Places, Record
from loopdyn.quantities.units import Path, Resolver


class UserForce(Force):
    """A function ``f(t, q, v, out)`` that adds generalised forces to `out` (nv values, SI).

    It may be plain Python or jitted by Numba, and is called from Python at every evaluation, so that runs are driven
    from Python; `closure`, `rcr` and `momentum` do not call it. A model with a user force cannot be saved to a file.

    Parameters
    ----------
    function : callable
        ``f(t, q, v, out)``; all its arguments are in SI units.

    Examples
    --------
    >>> def brake(t, q, v, out):
    ...     out[0] -= 0.1 * v[0] ** 3
    >>> UserForce(function=brake).type
    'user'
    """

    label: ClassVar[str] = "user force"

    type: Literal["user"] = "user"
    function: Callable[..., Any]

    def resolve(self, r: Resolver, places: Places, element: str, path: Path) -> Record | None:
        """User functions have no record: they are called with the state."""
        return None
