"""Options, errors and choice of independent speeds that `partition`, `closure` and `rcr` share.

Sets are compared by :mod:`loopdyn.formulations.partition.criteria`. Each solver has its own way to find and to exchange
a set.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine.status import NO_INERTIA, NOT_A_NUMBER, SINGULAR_SET
from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.formulations import failures
from loopdyn.formulations.base import Formulation, Solver
from loopdyn.loops.rank import Rank
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import System

Criterion = Literal["tangent", "orthogonal", "svd", "lu"]
Form = Literal["k+n", "2k"]


class Choosing(Formulation):
    """Base of formulations that choose independent speeds; subclasses declare the options as fields."""

    criterion: Criterion = "tangent"
    form: Form = "k+n"
    switch: float
    independent: Sequence[str] | None
    candidates: Sequence[str] | None

    def __post_init__(self) -> None:
        if not self.switch >= 1.0:
            raise LoopdynError(f"{self.name}: switch is {self.switch}. Give a factor of at least 1, such as 2.")
        if self.independent is not None and self.candidates is not None:
            raise LoopdynError(f"{self.name}: both independent and candidates are given. Give one of them.")
        for name, labels in (("independent", self.independent), ("candidates", self.candidates)):
            if labels is not None:
                object.__setattr__(self, name, tuple(labels))

    def allowed(self, system: System, freedoms: int) -> NDArray[np.bool_]:
        """Speeds that may be independent."""
        labels = self.independent if self.independent is not None else self.candidates
        if labels is None:
            return np.ones(system.nv, bool)
        for label in labels:
            if label not in system.speeds:
                raise LoopdynError(f"{self.name}: there is no speed '{label}'. {nearest(label, system.speeds)}")
        chosen = np.isin(system.speeds, labels)
        wrong = chosen.sum() != freedoms if self.independent is not None else chosen.sum() < freedoms
        if wrong:
            what = "independent" if self.independent is not None else "candidates"
            raise LoopdynError(
                f"{self.name}: {what} names {chosen.sum()} speeds, and '{system.name}' has {freedoms} freedoms. "
                f"See ld.analyses.coordinates(system, state), or leave {what} out, as where locks change their number."
            )
        return chosen

    def functions_refused(self, system: System) -> str | None:
        """Reason to refuse a model with functions in Python; None if it has none."""
        if system.mechanism.user_forces or system.mechanism.user_constraints:
            return f"it has functions in Python, which {self.name} does not call"
        return None

    def positions_refused(self, system: System, instead: str) -> str | None:
        """Reason to refuse solving for positions if rows constrain velocities alone; None if there are no such rows."""
        if system.holonomic.all():
            return None
        row = system.constraint_rows[int(np.argmin(system.holonomic))]
        return f"'{row}' constrains velocities alone, so positions do not follow from as many others; use {instead}"


class ChoosingSolver(Solver):
    """Base of their solvers.

    Attributes
    ----------
    freedoms : int
        Number of independent speeds.
    allowed : (nv,) array of bool
        Speeds that may be independent.
    """

    def __init__(self, system: System, rank: Rank, options: Choosing):
        self.system, self.rank, self.options = system, rank, options
        self.freedoms = system.nv - rank.count
        self.allowed = options.allowed(system, self.freedoms)

    @property
    @abstractmethod
    def independent(self) -> tuple[int, ...]:
        """Present independent speeds of the run that uses `kernels`; calls from Python choose their own."""

    @property
    def active(self) -> tuple[str, ...]:
        """Labels of the independent speeds."""
        return tuple(self.system.speeds[i] for i in self.independent)

    @property
    def forced(self) -> bool:
        """Whether there is only one set."""
        return int(self.allowed.sum()) == self.freedoms

    def singular(self, t: float, independent: Sequence[int]) -> SingularityError:
        """Error for a set of speeds that does not determine the others."""
        limited = bool(self.options.independent or self.options.candidates)
        return failures.singular_set(self.system, t, [self.system.speeds[i] for i in independent], limited)

    def explain(self, status: int, t: float) -> LoopdynError:
        """Error of a status at the time t."""
        if status == SINGULAR_SET:
            return self.singular(t, self.independent)
        if status == NO_INERTIA:
            return failures.no_inertia(t, self.active)
        if status >= 0:
            return failures.body_without_inertia(self.system.bodies[status])
        if status == NOT_A_NUMBER:
            return failures.not_finite(t)
        raise failures.unknown(status)
