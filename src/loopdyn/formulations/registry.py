"""Formulations by name, and the functions that prepare and call them."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Array, FixedSolver, Formulation, Solution, Solver
from loopdyn.loops.one_sided import warn_if_closed
from loopdyn.loops.rank import Rank, decide, require_inertia, require_regular
from loopdyn.quantities.wording import nearest
from loopdyn.system.system import State, System
from loopdyn.tree.tables import check_tables

# Name: module and class; loaded on demand, since some need much of SciPy.
CLASSES = {
    "oracle": ("oracle", "Oracle"),
    "absolute": ("absolute.formulation", "Absolute"),
    "relative": ("relative", "Relative"),
    "graph": ("graph", "Graph"),
    "partition": ("partition.formulation", "Partition"),
    "closure": ("closure.formulation", "Closure"),
    "rcr": ("rcr.formulation", "Rcr"),
    "momentum": ("momentum.formulation", "Momentum"),
    "auto": ("auto.formulation", "Auto"),
}
DEFAULT = "auto"


def formulation_class(name: str) -> type[Formulation]:
    """Class of a formulation by its name.

    Examples
    --------
    >>> formulation_class("oracle").name
    'oracle'
    """
    if name not in CLASSES:
        raise LoopdynError(f"there is no formulation '{name}'. {nearest(str(name), CLASSES)}")
    return _imported(*CLASSES[name])


@cache
def _imported(module: str, kind: str) -> type[Formulation]:
    found: type[Formulation] = getattr(import_module(f"loopdyn.formulations.{module}"), kind)
    return found


def chosen(formulation: str | Formulation) -> Formulation:
    """Formulation by name with its default options, or the one given.

    Examples
    --------
    >>> chosen("auto")
    Auto()
    """
    return formulation if isinstance(formulation, Formulation) else formulation_class(formulation)()


def prepare(system: System, formulation: str | Formulation = DEFAULT, state: State | None = None) -> Solver:
    """A solver for many states of one system, to be called with ``(t, q, v)``.

    Parameters
    ----------
    system : System
    formulation : str or Formulation
    state : State, optional
        Closed state at which the rank of the constraints is decided; by default the reference pose.

    Raises
    ------
    LoopdynError
        If the formulation cannot treat the system.
    SingularityError
        If a motion that the constraints allow has no inertia, or the pose is singular: fewer rows are independent than
        at poses nearby.

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
    at = system.state() if state is None else state
    system = system.for_state(at)
    require_support(system, method)
    return prepare_at(system, method, at, decide(system, at))


def require_support(system: System, method: Formulation) -> None:
    """Raise if a formulation does not support a system, with the reason and the names of those that do."""
    reason = method.supports(system)
    if reason is not None:
        able = [name for name in CLASSES if formulation_class(name)().supports(system) is None]
        raise LoopdynError(f"{method.name} cannot treat '{system.name}': {reason}. These can: {', '.join(able)}.")


def prepare_at(system: System, method: Formulation, state: State, rank: Rank) -> Solver:
    """`prepare` with known rank at the state, for a formulation that supports the system."""
    require_regular(system, rank)
    require_inertia(system, state, rank)
    solver = method.prepare(system, rank)
    if not isinstance(solver, Solver):
        raise LoopdynError(f"prepare() of {method.name} gives no Solver. Make it of a function by FunctionSolver.")
    return solver


def accelerations_at(
    system: System, state: State, formulation: str | Formulation = DEFAULT, full: bool = False
) -> Array | Solution:
    """Accelerations at a closed state; `full`: the whole :class:`Solution`. See :func:`loopdyn.accelerations`."""
    check_tables(system, [state])
    warn_if_closed(system, [state])
    if state.tolerated is not None:
        system = system.for_state(state)
    found = _found_at_once(system, formulation, state, full)
    if found is not None:
        return found
    solution = prepare(system, formulation, state)(state.t, state.q, state.v)
    return solution if full else solution.a


def _found_at_once(system: System, formulation: str | Formulation, state: State, full: bool) -> Array | Solution | None:
    """Accelerations by a solver that was prepared for all regular states; None where it does not hold."""
    try:
        hash(formulation)
    except TypeError:  # options that have no hash, such as lists
        return None
    solver, found = system.kept.take(formulation, lambda: _fixed(system, chosen(formulation))), None
    if solver is not None and solver.attempt(state.t, state.q, state.v):
        found = solver.found(full)
    system.kept.give(formulation, solver)
    return found


def _fixed(system: System, method: Formulation) -> FixedSolver | None:
    """A solver for all regular states, prepared at a pose that depends on the system alone; None if there is none."""
    m, at = system.mechanism, system.state()
    if m.user_forces or m.user_constraints or method.supports(system) is not None:
        return None  # functions are called at the states that are asked for, not elsewhere
    try:
        rank = decide(system, at)
        require_regular(system, rank)
        require_inertia(system, at, rank)
        return method.prepare_fixed(system, rank)
    except LoopdynError:  # that pose is singular or cannot be closed: each state is decided in full, with its own error
        return None
