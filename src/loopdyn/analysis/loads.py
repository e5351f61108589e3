"""Loads in the joints at a state."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from loopdyn.analysis.assembly import assemble
from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Array, Formulation, Solution
from loopdyn.formulations.registry import DEFAULT, accelerations_at, chosen
from loopdyn.loops.reactions import Reactions
from loopdyn.loops.reactions import reactions as _from_accelerations
from loopdyn.system.labels import FORCE_OF
from loopdyn.system.system import State, System
from loopdyn.tree.tables import check_tables


def accelerations(
    system: System, state: State | None = None, formulation: str | Formulation = DEFAULT, full: bool = False
) -> Array | Solution:
    """Accelerations at a closed state, SI, in the order of ``system.speeds``.

    Parameters
    ----------
    system : System
    state : State, optional
        A closed state; by default the start of the model, assembled.
    formulation : str or Formulation
    full : bool
        Return the whole :class:`Solution`, with multipliers and diagnostics.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, q={"A": 0.3}, v={"A": 2.0})
    >>> a = ld.accelerations(system, state)
    >>> bool(abs(a - ld.accelerations(system, state, "oracle")).max() < 1e-9)
    True
    """
    return accelerations_at(system, assemble(system) if state is None else state, formulation, full)


def reactions(
    system: System,
    state: State | None = None,
    a: ArrayLike | None = None,
    *,
    formulation: str | Formulation = DEFAULT,
    length: float | None = None,
    compliance: Mapping[str, ArrayLike] | None = None,
    loads: Mapping[str, float] | None = None,
) -> Reactions:
    """Joint reactions at a closed state: forces and moments on each joint's child.

    Parameters
    ----------
    system : System
    state : State, optional
        A closed state; by default the start of the model, assembled.
    a : (nv,) array, optional
        Accelerations of the tree coordinates; by default those of `formulation`.
    formulation : str or Formulation
        Method that computes accelerations if they are not given. Reactions do not depend on it.
    length : float, optional
        Under redundancy the sum of force^2 + (moment/length)^2 is minimised; in the declared unit, by default the size
        of the mechanism.
    compliance : mapping, optional
        Compliances of joints, one number or six (mx, my, mz, fx, fy, fz) each, angle per torque and length per force
        in declared units: the elastic energy is minimised. Other joints keep the weights above.
    loads : mapping, optional
        Loads on joint speeds in addition to those of the model by label, in declared units, as from
        :func:`loopdyn.inverse_dynamics`; `a` must be given with them.

    Returns
    -------
    Reactions
        Statically indeterminate components are marked.

    Examples
    --------
    A rod of 1 kg hangs at rest:

    >>> import loopdyn as ld
    >>> m = ld.Mechanism("rod", gravity=(0, -10, 0))
    >>> b = m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(0, -1, 0), radius=0.01))
    >>> j = m.add_joint("A", ld.Revolute(axis=(0, 0, 1)), m.ground, b, at=(0, 0, 0))
    >>> system = m.compile()
    >>> round(ld.reactions(system, system.state())["A"]["fy"], 9)
    10.0
    """
    state = assemble(system) if state is None else state
    chosen(formulation)  # an unknown one is refused even where it is not used
    if a is None and loads:
        raise LoopdynError("additional loads change the accelerations. Give the accelerations too, as a=...")
    if a is None:
        found = accelerations_at(system, state, formulation)
        a = found.a if isinstance(found, Solution) else found
    else:
        check_tables(system, [state])
    one = system.units.factor
    length = None if length is None else length * one("length")
    if compliance is not None:
        soft = np.repeat([one("angle") / one("torque"), one("length") / one("force")], 3)
        wrong = [joint for joint, c in compliance.items() if np.shape(c) not in ((), (6,))]
        if wrong:
            raise LoopdynError(
                f"the compliance of '{wrong[0]}' is neither one number nor six. Give mx, my, mz, fx, fy, fz."
            )
        compliance = {joint: soft * np.asarray(c, float) for joint, c in compliance.items()}
    if loads is not None:
        of = {k: FORCE_OF[x.dimension] for k, x in system.labels.speeds.items()}
        loads = {k: x * one(of[k]) if k in of else x for k, x in loads.items()}
    return _from_accelerations(system, state, a, length=length, compliance=compliance, loads=loads)
