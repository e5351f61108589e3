"""`kinematics`: motion of bodies and points of a closed mechanism at a state, Jacobians by its inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.closed_motion import input_accelerations, require_closed
from loopdyn.analysis.moving_parts import declared, speed_dimensions, speed_labels
from loopdyn.loops.one_sided import warn_if_closed
from loopdyn.results.kinematics import Kinematics
from loopdyn.system.system import State, System
from loopdyn.tree.functions import sized

Array = NDArray[np.float64]


def kinematics(
    system: System, state: State | None = None, *, a: Mapping[str, float] | ArrayLike | None = None
) -> Kinematics:
    """Poses, velocities, accelerations, Jacobians and singularities of a closed mechanism at a state.

    Parameters
    ----------
    system : System
    state : State, optional
        Closed state; by default the start of the model, assembled.
    a : mapping of label to value, or (nv,) array, optional
        Accelerations. A mapping gives accelerations of inputs, in declared units: one for each degree of freedom, the
        constraints determine the others. An array has those of the tree, SI, as ``ld.accelerations(system, state)``
        returns them. By default accelerations are those of the actual motion, under all forces and motors of the model
        (:func:`loopdyn.accelerations`), computed when they are read: poses and velocities do not determine them.

    Returns
    -------
    Kinematics

    Raises
    ------
    AssemblyError
        If the loops are open at the state.

    Examples
    --------
    Speed of a slider per speed of its crank, and a point of the rod:

    >>> import loopdyn as ld
    >>> system = ld.library.slider_crank().compile()
    >>> k = ld.kinematics(system, ld.assemble(system, q={"A": 0.3}, v={"A": 2.0}))
    >>> ratio = float(k.ratios("A").sel(speed="D", input="A"))
    >>> bool(abs(float(k.body("slider")["velocity"].sel(xyz="x")) - 2.0 * ratio) < 1e-12)
    True
    """
    state = assemble(system) if state is None else state
    system = system.for_state(state)
    require_closed(system, state)
    warn_if_closed(system, [state])
    if a is None:
        return Kinematics(system, state)
    if not isinstance(a, Mapping):
        return Kinematics(system, state, sized(a, system.nv, "a"))
    inputs = speed_labels(system, tuple(a), "input")
    given = np.array([a[label] for label in inputs], float) * declared(system, speed_dimensions(system, inputs))
    return Kinematics(system, state, input_accelerations(system, state, inputs, given))
