"""Residuals of the constraints at one state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.system.system import State, System, require_state
from loopdyn.tree import jacobian
from loopdyn.tree.functions import require_rows
from loopdyn.tree.user_rows import user_rows

Array = NDArray[np.float64]


def residuals(system: System, state: State) -> tuple[Array, Array]:
    """Residuals of all constraint rows at one state and their rates, (nc,) each, without a Jacobian.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> phi, rate = residuals(system, system.state())
    >>> phi.shape, bool(abs(phi).max() < 1e-12), bool(rate.any())
    ((5,), True, False)
    """
    require_state(system, state)
    work = system.work()
    w = system.open_work(work)
    w.t[0], w.q[:], w.v[:] = state.t, state.q, state.v
    rate, user = np.empty(system.nc), user_rows(system)(state.t, state.q, state.v)
    user.write(w, np.empty(user.J.shape), rate)
    jacobian.residuals(system.ints, system.floats, work, rate)
    require_rows(system, w, rate[:, None], state.t)
    return w.phi.copy(), rate


__all__ = ["residuals"]
