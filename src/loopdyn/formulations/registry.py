"""Formulations by name, and the calls that choose one."""

from __future__ import annotations

from loopdyn.errors import LoopdynError
from loopdyn.formulations.absolute import Absolute
from loopdyn.formulations.base import Array, Formulation, Solution, Solver
from loopdyn.formulations.oracle import Oracle
from loopdyn.formulations.relative import Relative
from loopdyn.rank import decide
from loopdyn.system import State, System
from loopdyn.wording import nearest

FORMULATIONS: dict[str, type[Formulation]] = {f.name: f for f in (Oracle, Absolute, Relative)}
DEFAULT = "relative"


def chosen(formulation: str | Formulation) -> Formulation:
    """The formulation of a name, or the one given."""
    if isinstance(formulation, Formulation):
        return formulation
    if formulation not in FORMULATIONS:
        raise LoopdynError(f"there is no formulation '{formulation}'. {nearest(str(formulation), FORMULATIONS)}")
    return FORMULATIONS[formulation]()


def prepare(system: System, formulation: str | Formulation = DEFAULT, state: State | None = None) -> Solver:
    """A solver for many states of one system, to be called with ``(t, q, v)``.

    Parameters
    ----------
    system : System
    formulation : str or Formulation
    state : State, optional
        Closed state at which the rank of the constraints is decided; by default the reference pose.

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.four_bar().compile()
    >>> state = ld.assemble(system, v={"A": 2.0})
    >>> solve = ld.prepare(system, "relative", state)
    >>> solve(state.t, state.q, state.v).a.shape
    (3,)
    """
    method = chosen(formulation)
    reason = method.supports(system)
    if reason is not None:
        raise LoopdynError(f"{method.name} cannot treat '{system.name}': {reason}. Choose another formulation.")
    return method.prepare(system, decide(system, system.state() if state is None else state))


def accelerations(
    system: System, state: State, formulation: str | Formulation = DEFAULT, full: bool = False
) -> Array | Solution:
    """Accelerations at a closed state.

    Parameters
    ----------
    system : System
    state : State
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
    solution = prepare(system, formulation, state)(state.t, state.q, state.v)
    return solution if full else solution.a
