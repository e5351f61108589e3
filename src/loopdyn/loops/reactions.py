"""Joint reactions from accelerations and the constraint equations of all joints; one routine for all formulations.

Every body is set free and every joint is taken as a constraint. With the accelerations known, Newton's and
Euler's equations of the bodies are linear in the multipliers of all rows,

    J^T lam = M a - h

and under redundancy the distribution of minimum weighted norm is taken. A component is unique if no self-balanced set
of reactions contains it; the others are statically indeterminate and marked. The result does not depend on which joints
were cut, nor on how the accelerations were computed.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import ModelError, Problem
from loopdyn.joints.base import COMPONENTS
from loopdyn.loops.least_norm import smallest_solution
from loopdyn.loops.reactions_along import States, checked_length, reactions_along
from loopdyn.loops.reactions_balance import LOST, Balance, balance_of, least_part
from loopdyn.quantities.units import Units
from loopdyn.quantities.wording import unknown
from loopdyn.system.labels import COMPONENT_DIMENSIONS, FORCE_OF, LOAD
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import Motion, body_motion, open_tree_body_jacobian
from loopdyn.tree.joint_readings import ends, joint_rate

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

__all__ = ["COMPONENTS", "LOST", "Reactions", "distribute", "freedom_rate", "impulses", "least_part", "reactions"]


@dataclass(frozen=True)
class Reactions:
    """Constraint wrench of each joint on its declared child, at the origin of M, in axes of F.

    Attributes
    ----------
    joints : tuple of str
    wrench : (n, 6) array
        Columns mx, my, mz in N*m and fx, fy, fz in N, SI. Loads of motors, springs and friction are not in it.
    unique : (n, 6) array of bool
        False for statically indeterminate components; their values are those of the stated distribution.
    norm : str
        Norm that the distribution minimises.
    residual : float
        Largest unbalanced load on a body in N or N m; it checks the accelerations.
    multipliers : mapping
        Loads of constraints and drivers, in declared units, by the label of the row: the name of the element if it has
        one row, otherwise "name.row".
    units : Units
        Declared units of labelled numbers: ``found["C.fx"]``, ``found["C"]``, :meth:`dataset`, the printed table.
        Impulses are these times s.
    """

    joints: tuple[str, ...]
    wrench: Array
    unique: NDArray[np.bool_]
    norm: str
    residual: float
    multipliers: Mapping[str, float]
    units: Units = field(default_factory=Units)

    @property
    def declared(self) -> Array:
        """Wrenches (n, 6) in declared units."""
        result: Array = self.wrench / np.array([self.units.factor(d) for d in COMPONENT_DIMENSIONS])
        return result

    def __getitem__(self, label: str) -> Any:
        """Load of a label (``"C.fx"``, ``"gear.load"``), or all components of a joint by name, in declared units."""
        joint, _, part = label.partition(".")
        if joint in self.joints and part in ("", *COMPONENTS):
            named = dict(zip(COMPONENTS, self.declared[self.joints.index(joint)].tolist(), strict=True))
            return named[part] if part else named
        if label.endswith(LOAD) and label.removesuffix(LOAD) in self.multipliers:
            return self.multipliers[label.removesuffix(LOAD)]
        parts = [f"{joint}.{component}" for joint in self.joints for component in COMPONENTS]
        raise unknown("reactions", "label", [label], [*self.joints, *parts, *(row + LOAD for row in self.multipliers)])

    def dataset(self) -> xarray.Dataset:
        """Labelled data."""
        from loopdyn.quantities.labels import dataset

        dims = ("joint", "component")
        data = {
            "wrench": (dims, self.declared, {"units": "component_units", "norm": self.norm}),
            "unique": (dims, self.unique),
        }
        units = np.array([self.units.symbol(d) for d in COMPONENT_DIMENSIONS])
        named = {"joint": list(self.joints), "component": list(COMPONENTS), "component_units": ("component", units)}
        return dataset(data, named)

    def _cells(self) -> list[list[str]]:
        """Five digits of each component of each joint, and ``?`` behind those that are indeterminate."""
        rounding = 1e-12 * np.abs(self.wrench).max(initial=0.0)
        shown = np.where(np.abs(self.wrench) > rounding, self.declared, 0.0)
        return [
            [f"{v:.5g}{' ' if u else '?'}" for v, u in zip(values, known, strict=True)]
            for values, known in zip(shown, self.unique, strict=True)
        ]

    @property
    def _explained(self) -> str:
        return "" if self.unique.all() else f"?: statically indeterminate; distribution: {self.norm}"

    def __str__(self) -> str:
        width = max(len(j) for j in self.joints) if self.joints else 5
        lines = [f"{'joint':<{width}} " + "".join(f"{c:>12}" for c in COMPONENTS)]
        for name, cells in zip(self.joints, self._cells(), strict=True):
            lines.append(f"{name:<{width}} {''.join(f'{cell:>12}' for cell in cells)}")
        return "\n".join([*lines, *filter(None, [self._explained])])

    def _repr_html_(self) -> str:
        """Table with units for Jupyter."""
        units = [self.units.symbol(d) for d in COMPONENT_DIMENSIONS]
        heads = ("joint", *(f"{c} ({u})" for c, u in zip(COMPONENTS, units, strict=True)))
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
            for name, cells in zip(self.joints, self._cells(), strict=True)
        )
        head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
        return f"<table><tr>{head}</tr>{rows}</table>{html.escape(self._explained)}"


def freedom_rate(system: System, state: State, motion: Motion, j: JointData, k: int) -> tuple[Array, float]:
    """Gradient (nv,) of coordinate k of a joint, which may be cut, by the speeds, and its rate at a state."""
    row = np.zeros(system.nv)
    for body, sign, moment, force in ends(motion, j, k):
        if body >= system.n_bases:
            J = open_tree_body_jacobian(system, system.bodies[body], state)
            row += sign * (moment @ J[:3] + force @ J[3:])
    return row, joint_rate(motion, j, k)


def reactions(
    system: System,
    state: State,
    a: ArrayLike,
    *,
    length: float | None = None,
    compliance: Mapping[str, ArrayLike] | None = None,
    loads: Mapping[str, float] | None = None,
) -> Reactions:
    """Reactions of all joints for known accelerations.

    Parameters
    ----------
    system : System
    state : State
        A closed state.
    a : (nv,) array
        Accelerations of the tree coordinates, from any formulation.
    length : float, optional
        Under redundancy the sum of force^2 + (moment/length)^2 is minimised; by default with the size of the
        mechanism.
    compliance : mapping, optional
        Compliances of joints, one number or six (mx, my, mz, fx, fy, fz) each: the elastic energy is minimised.
        Joints that are not named keep the weights above.
    loads : mapping, optional
        Further loads on joint speeds by label, SI: those of motors that are not in the model.

    Returns
    -------
    Reactions

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> state = system.state()
    >>> r = reactions(system, state, ld.tree.open_tree_forward_dynamics(system, state))
    >>> bool(r.unique.all())
    True
    """
    given = _accelerations(system, a)
    one = States(np.array([float(state.t)]), *(np.asarray(x, float)[None] for x in (state.q, state.v, given)))
    found = reactions_along(system.for_state(state), one, loads, length, compliance)
    named = dict(zip(found.rows, found.multipliers[0].tolist(), strict=True))
    norm = _norm(system, checked_length(system, length), compliance)
    residual, others = float(found.residual[0]), _loads(system, named)
    return Reactions(found.joints, found.wrench[0], found.unique[0], norm, residual, others, system.units)


def _norm(system: System, length: float, compliance: Mapping[str, ArrayLike] | None = None) -> str:
    """Description of the norm that is minimised."""
    units = system.units
    arm = f"{length / units.factor('length'):.3g} {units.symbol('length')}"
    return f"least sum of force^2 + (moment/{arm})^2" if compliance is None else "least elastic energy"


def _loads(system: System, named: Mapping[str, float]) -> dict[str, float]:
    """Loads of constraint rows by label, in declared units."""
    of = dict(zip(system.constraint_rows, system.row_dimensions, strict=True))
    return {row: x / system.units.factor(FORCE_OF[of[row]]) for row, x in named.items()}


def _accelerations(system: System, a: ArrayLike) -> Array:
    """Check the accelerations: one finite number per speed."""
    given = np.asarray(a, float)
    if given.shape != (system.nv,):
        message = f"{system.nv} accelerations are needed, the shape {given.shape} was given"
        raise ModelError([Problem("reactions", message, f"Order: {', '.join(system.speeds[:8])}...")])
    bad = np.flatnonzero(~np.isfinite(given))
    if bad.size:
        message = f"the acceleration of '{system.speeds[bad[0]]}' is {given[bad[0]]}"
        raise ModelError([Problem("reactions", message, "Give those of ld.accelerations.")])
    return given


def distribute(
    system: System,
    state: State,
    load: Array,
    length: float | None = None,
    compliance: Mapping[str, ArrayLike] | None = None,
) -> Reactions:
    """Wrenches of all joints that together put `load` on the bodies.

    `load` (bodies, 6): torque about and force at the origin of each body's own frame, world axes; the rows of bases
    are not read. Loads may be forces or impulses.
    """
    size = checked_length(system, length)
    with balance_of(system) as of_system:
        of_system.loads(state, np.zeros(system.nv))
        arm = body_motion(system, state).position - of_system.work.body[:, rec.X : rec.X + 3]
        about = np.array(load, float)
        about[:, :3] += np.cross(arm, about[:, 3:])
        found = of_system.distribute(state, about, size, compliance)
        named = dict(zip(of_system.others, found.others.tolist(), strict=True))
        norm, others = _norm(system, size, compliance), _loads(system, named)
        return Reactions(of_system.names, found.wrench, found.unique, norm, found.residual, others, system.units)


def impulses(system: System, path: Sequence[State], through: Sequence[State] = ()) -> Reactions:
    """Impulses of all joints along a path of states, N m s and N s; finite also where forces are not.

    The change of momentum of the bodies from one state to the next, less the impulse of gravity and applied forces, is
    the impulse of the joints. It is distributed over the joints at both ends with minimum norm: if the pose between
    them is singular, each end alone would give components in the lost direction of opposite sign, nearly without bound.
    The error is that of the trapezoidal rule except in this direction, where it depends on where the steps end;
    components that have a part in it are not marked as unique.

    Parameters
    ----------
    system : System
    path : sequence of State
        Closed states in order of time, close to each other.
    through : sequence of State
        Singular poses between them.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.pendulum().compile()
    >>> times = np.linspace(0, 0.2, 41)
    >>> run = ld.simulate(system, system.state(), (0, 0.2), t_eval=times, progress=False)
    >>> states = [run.at(t) for t in times]
    >>> whole, weight = impulses(system, states)["A"], run.data["wrench"].sel(joint="A", component="fy").values
    >>> bool(abs(whole["fy"] - np.trapezoid(weight, dx=0.005)) < 1e-4)
    True
    """
    with balance_of(system) as of_system:
        return _impulses(of_system, path, through)


def _impulses(of_system: Balance, path: Sequence[State], through: Sequence[State]) -> Reactions:
    system = of_system.system
    before, residual = of_system.end(path[0]), 0.0
    wrench, unique = np.zeros_like(before.unique, float), before.unique
    others = np.zeros(len(of_system.others))
    for a, b in pairwise(path):
        after = of_system.end(b)
        gained = after.momentum - before.momentum - 0.5 * (b.t - a.t) * (before.applied + after.applied)
        gained += 0.5 * (before.rotors + after.rotors) @ (b.v - a.v)[of_system.turned]
        load = of_system.units * gained[system.n_bases :].ravel()
        rows = scipy.sparse.vstack([before.rows, after.rows]).tocsr()
        y = smallest_solution(rows, load[:, None])[:, 0]
        residual = max(residual, float(np.abs((load - rows.T @ y) / of_system.units).max(initial=0.0)))
        for e, part in zip((before, after), np.split(y, 2), strict=True):
            lam = part / e.weights
            wrench += of_system.wrenches(lam, e.directions)
            others += lam[len(e.directions) :]
        unique, before = unique & after.unique, after
    for pose in through:
        unique = unique & of_system.unique_near_singular(pose)
    norm = _norm(system, system.size)
    named = dict(zip(of_system.others, others.tolist(), strict=True))
    return Reactions(of_system.names, wrench, unique, norm, residual, _loads(system, named), system.units)
