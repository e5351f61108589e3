"""Constraints given as a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from loopdyn.constraints.base import Constraint
from loopdyn.quantities.units import Path, Resolver


class UserConstraint(Constraint):
    """A function of the state that stays zero: ``phi(t, q)``, or at velocity level ``psi(t, q, v)``.

    Parameters
    ----------
    function : callable
        ``phi(t, q)`` returns one number per row; with ``level="velocity"``, ``psi(t, q, v)``. `q` and `v` are the
        coordinates and speeds of the compiled system in SI units, in the order of ``system.coordinates`` and
        ``system.speeds``: compile with ``cuts=[...]`` to be sure of which joints they belong to.
    rows : tuple of str
        Names of the rows.
    level : {"position", "velocity"}
        Whether positions are constrained, or velocities only.
    jacobian : callable, optional
        ``jacobian(t, q)``, or ``jacobian(t, q, v)`` at velocity level: derivatives of the rows by the speeds
        (rows, nv). Where `q` holds quaternions that is the derivative along ``q (+) xi``.
    dimension : {"length", "angle"}
        What the rows are measured in.

    Notes
    -----
    Derivatives that are not given are made by complex steps (exact) if the function takes complex numbers, else by
    differences of fourth order (ten digits); ``ld.tree.user_rows(system).methods`` says which. The load on the speeds
    is ``J^T lam``. A model with a user constraint cannot be saved to a file.

    Examples
    --------
    >>> UserConstraint(function=lambda t, q: [q[0] - q[1] ** 2], rows=("cam",)).level
    'position'
    """

    label: ClassVar[str] = "user constraint"

    type: Literal["user"] = "user"
    function: Callable[..., Any]
    rows: tuple[str, ...]
    level: Literal["position", "velocity"] = "position"
    jacobian: Callable[..., Any] | None = None
    dimension: Literal["length", "angle"] = "length"

    def resolve(self, r: Resolver, places: Any, element: str, path: Path) -> None:
        """User functions have no record: they are called with the state."""
        return None
