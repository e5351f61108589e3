"""Loads in the joints at a state."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Formulation, Solution
from loopdyn.formulations.registry import DEFAULT, accelerations, chosen
from loopdyn.loops.reactions import Reactions
from loopdyn.loops.reactions import reactions as _from_accelerations
from loopdyn.system.system import State, System
from loopdyn.tree.tables import check_tables


def reactions(
    system: System,
    state: State,
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
    state : State
        A closed state, e.g. from :func:`loopdyn.assemble`.
    a : (nv,) array, optional
        Accelerations of the tree coordinates; by default those of `formulation`.
    formulation : str or Formulation
        Method that computes accelerations if they are not given. Reactions do not depend on it.
    length : float, optional
        Under redundancy the sum of force^2 + (moment/length)^2 is minimised; by default with the size of the
        mechanism.
    compliance : mapping, optional
        Compliances of joints, one number or six (mx, my, mz, fx, fy, fz) each: the elastic energy is minimised.
        Other joints keep the weights above.
    loads : mapping, optional
        Loads on joint speeds in addition to those of the model, N m or N by label, as from
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
    chosen(formulation)  # an unknown one is refused even where it is not used
    if a is None and loads:
        raise LoopdynError("additional loads change the accelerations. Give the accelerations too, as a=...")
    if a is None:
        found = accelerations(system, state, formulation)
        a = found.a if isinstance(found, Solution) else found
    else:
        check_tables(system, [state])
    return _from_accelerations(system, state, a, length=length, compliance=compliance, loads=loads)
