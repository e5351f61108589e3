"""Constraint rows of a mechanism together with all its joint coordinates, also those of cut joints."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError
from loopdyn.system.builder import build
from loopdyn.system.system import System
from loopdyn.tree import jacobian, kinematics
from loopdyn.tree.functions import require_rows
from loopdyn.tree.user_rows import user_rows

Array = NDArray[np.float64]


class MeasuredRows:
    """All constraint rows and all joint coordinates, also those of cut joints, at any pose.

    Coordinates of cut joints are measured by drivers that are added to a copy of the mechanism: their rows give the
    values, gradients and second derivatives by the same kernel as all other rows.

    Attributes
    ----------
    labels : tuple of str
        Speeds of the tree, then scalar coordinates of cut joints.
    """

    def __init__(self, system: System):
        self.system = system
        m = system.mechanism.model_copy(deep=True)
        self.cut = [label for label, of in system.labels.scalars.items() if not of.joint.in_tree]
        names = [f"measured {k + 1}" for k in range(len(self.cut))]
        for name, label in zip(names, self.cut, strict=True):
            m.add_driver(name, label, 0.0)
        s = build(m, list(system.topology.cuts), counted=system.counted).tolerating_as(system)
        if s.coordinates != system.coordinates or s.speeds != system.speeds:
            raise LoopdynError(
                f"the spanning tree of '{system.name}' is not that of its cuts. Compile it with cuts only."
            )
        self.measuring = s
        self.labels = (*system.speeds, *self.cut)
        self.own = np.array([s.constraint_rows.index(label) for label in system.constraint_rows], int)
        self.measured = np.array([s.constraint_rows.index(name) for name in names], int)
        self._near = self._entries()
        # whether rows may depend on time; formulas of constraints are not examined
        self.steady = not (system.mechanism.drivers or m.base or m.constraints or m.user_constraints)
        self._arrays: dict[str, tuple[Any, rec.Work, Array, Array]] = {}  # by the kind of numbers
        self._user = user_rows(s) if m.user_constraints else None

    def _entries(self) -> NDArray[np.int64]:
        """Cut coordinate that each entry of a relation depends on, or -1."""
        model = self.measuring.model
        entry = model.entry
        first = {int(line[rec.L_ROW]): int(line[rec.L_FIRST]) for line in model.linear}
        own = [tuple(entry[first[row], [rec.E_CUT, rec.E_FREEDOM]]) for row in self.measured]
        found = [own.index(tuple(e)) if e[0] >= 0 else -1 for e in entry[:, [rec.E_CUT, rec.E_FREEDOM]]]
        return np.array(found, int)

    def __call__(self, t: float, q: Array, v: Array, near: Array) -> tuple[Array, Array, Array, Array]:
        """phi, J, rate and gamma of all rows of the measuring system; cut angles within half a turn of `near`.

        With complex numbers, for a complex step, so are these.
        """
        s = self.measuring
        work, w, J, by_time = self._of_kind(np.result_type(t, q, v, float))
        w.t[0], w.q[:], w.v[:] = t, q, v
        if len(self._near):
            w.near[len(s.model.force) :] = np.append(near, 0.0)[self._near]
        if self._user is not None:
            if J.dtype.kind == "c":
                raise LoopdynError(
                    "constraints that are Python functions have no complex step. Write them as formulas."
                )
            self._user(t, q, v).write(w, J, by_time)
        kinematics.place(s.ints, s.floats, work, False)
        jacobian.constraint_terms(s.ints, s.floats, work, J, by_time)
        if not np.isfinite(J.sum() + w.phi.sum() + w.gamma.sum()):
            require_rows(s, w, J, t)
        return w.phi.copy(), J.copy(), by_time.copy(), w.gamma.copy()

    def _of_kind(self, dtype: Any) -> tuple[Any, rec.Work, Array, Array]:
        """Work array, its parts, and arrays for J and the rates, for floats or complex numbers."""
        if dtype.kind not in self._arrays:
            s, work = self.measuring, self.measuring.work(dtype)
            self._arrays[dtype.kind] = work, s.open_work(work), np.empty((s.nc, s.nv), dtype), np.empty(s.nc, dtype)
        return self._arrays[dtype.kind]
