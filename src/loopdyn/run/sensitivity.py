"""`sensitivity`: derivatives of quantities at states, along drives, at equilibria and of runs by parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.closed_motion import require_closed
from loopdyn.analysis.modal_changes import modal_derivatives, modal_quantity, warn_of_held_pose
from loopdyn.analysis.output_changes import ChangingOutput, Moves, derivatives
from loopdyn.analysis.pose_changes import HeldPoses, dynamic_changes, equilibrium_changes, held_labels, start_changes
from loopdyn.analysis.variations import Family, Local, require_dense
from loopdyn.errors import LoopdynError
from loopdyn.formulations.base import Formulation
from loopdyn.formulations.registry import DEFAULT
from loopdyn.loops.one_sided import closed_sides, warn_if_closed
from loopdyn.model.mechanism import Mechanism
from loopdyn.results.drive import Drive
from loopdyn.results.equilibrium import Equilibrium
from loopdyn.results.measures import Path
from loopdyn.results.sensitivity import Sensitivity
from loopdyn.run.events import Given
from loopdyn.run.run_changes import Functionals, changes_of_run, functional
from loopdyn.run.simulate import check_settings, span_of
from loopdyn.system.measures import ACCELERATION, LEVELS, POSITION
from loopdyn.system.system import State, System

Array = NDArray[np.float64]


def sensitivity(
    mechanism: Mechanism | System,
    of: str | Sequence[str],
    parameters: str | Sequence[str] | None = None,
    *,
    state: State | Drive | Equilibrium | None = None,
    hold: Sequence[str] | None = None,
    t_span: tuple[float, float] | None = None,
    events: Sequence[Given] = (),
    formulation: str | Formulation = DEFAULT,
    rtol: float = 1e-10,
) -> Sensitivity:
    """Derivatives of quantities by parameters of the model, by the derivatives of its equations: some ten digits.

    Parameters
    ----------
    mechanism : Mechanism or System
    of : str or list of str
        Quantities: measures of the model, or formulas of their terms (``"x(P)"``, ``"A.speed"``, ``"C.fx"``,
        ``"spring.load"``); ``"transmission_angle(D)"`` of an output joint; of small motions about the state
        ``"omega(0)"``, ``"frequency(0)"``, ``"damping(0)"``, ``"pole(0).real"``, ``"pole(0).imag"``, numbered as
        :meth:`loopdyn.results.Linearization.modes`.
    parameters : str or list of str, optional
        Parameters of the model that are numbers; by default all of them.
    state : State, Drive or Equilibrium, optional
        A state, by default the start of the model, assembled; a :func:`loopdyn.drive`, whose inputs keep their values;
        or a :func:`loopdyn.equilibrium`, which moves with the parameters.
    hold : list of str, optional
        For a state: joint coordinates that keep their values and speeds while the others follow the loops; by default
        those of the model's `start`, which moves with the parameters if no `state` is given, then those that move most.
    t_span : (2,), optional
        First and last time of a run from the state, s. Quantities are then ``"end(A)"`` or ``"A"``, ``"peak(A)"``,
        ``"lowest(A)"``, ``"integral(A)"``, ``"mean(A)"``, ``"rms(A)"``, ``"time(event)"`` and ``"time(event, 2)"``.
    events : list
        Events of the run, as for :func:`loopdyn.simulate`; joint limits act as the model says.
    formulation : str or Formulation
        Method of the run. Its choice of independent coordinates does not matter: changes are those of the tree.
    rtol : float
        Error of a step of the run, and of its changes.

    Returns
    -------
    Sensitivity

    Raises
    ------
    LoopdynError
        Where there is no derivative: at singular poses and neutral equilibria, at corners, of statically indeterminate
        reactions, of repeated poles, and by a parameter that opens redundant loops; of a run with a singular passage, a
        grazing event, or two equal peaks.

    Examples
    --------
    The bob of a pendulum moves along its rod per unit of its length:

    >>> import loopdyn as ld
    >>> m = ld.library.pendulum()
    >>> m.points |= {"tip": {"at": ("-length", 0, 0), "on": "bob"}}
    >>> system = m.compile()
    >>> found = ld.sensitivity(system, ["x(tip)"], "length", state=system.state(q={"A": 0.5}))
    >>> round(found["x(tip)", "length"], 9), round(float(-np.cos(0.5)), 9)
    (-0.877582562, -0.877582562)
    """
    system = mechanism.compile() if isinstance(mechanism, Mechanism) else mechanism
    require_dense(system)
    family = Family(system, _names(system, parameters))
    wanted = (of,) if isinstance(of, str) else tuple(of)
    if not wanted:
        raise LoopdynError("sensitivity of nothing. Name quantities, e.g. of=['A.speed'].")
    modal = [found for text in wanted if (found := modal_quantity(text))]
    if modal and (isinstance(state, Drive) or t_span is not None):
        what = "a run" if t_span is not None else "a drive"
        raise LoopdynError(f"'{modal[0].text}' is of a state or an equilibrium, not of {what}. Give one of its states.")
    if t_span is not None:
        return _of_run(family, wanted, state, hold, span_of(t_span), events, formulation, rtol)
    if events:
        raise LoopdynError("events are those of a run. Give its first and last time in s: t_span=(0, 5).")
    outputs = [ChangingOutput(system, text) for text in wanted if modal_quantity(text) is None]
    counts = Local.evaluations, Local.complex_evaluations
    if hold is not None and isinstance(state, Drive | Equilibrium):
        raise LoopdynError(f"hold is for states; of a {type(state).__name__} the inputs decide. Leave it out.")
    if isinstance(state, Drive):
        path, moves, held = _along_drive(family, outputs, state)
    elif isinstance(state, Equilibrium):
        path, moves, held = _at_equilibrium(family, state)
    else:
        path, moves, held = _at_state(family, outputs, state, hold)
    states = [State(float(t), q, v) for t, q, v in zip(path.t, path.q, path.v, strict=True)]
    if modal and (closed := closed_sides(system, states)):
        raise LoopdynError(
            f"'{modal[0].text}': contact {', '.join(closed)} is closed there, and derivatives of poles by parameters "
            "are those without contacts. Replace it by a constraint, or choose a state off it."
        )
    warn_if_closed(system, states, "derivatives are those without its force, as if there were none.")
    known = {output.text: _derived(family, output, path, moves) for output in outputs}
    if modal:
        known |= modal_derivatives(family, path, moves, modal)
    if modal and not isinstance(state, Equilibrium):
        warn_of_held_pose(family, path, moves)
    y, dy = np.array([known[text][0] for text in wanted]), np.array([known[text][1] for text in wanted])
    along: dict[str, Array] = {}
    if isinstance(state, Drive):
        along = {state.along: np.asarray(state.parameter_values())}
    else:
        y, dy = y[:, 0], dy[:, :, 0]
    real, complex_ = Local.evaluations - counts[0], Local.complex_evaluations - counts[1]
    cost = {"states": len(path.t), "real": real, "complex": complex_}
    unit = {x.text: x.unit for x in outputs} | {x.text: x.unit for x in modal}
    return Sensitivity(system, wanted, family.values, y, dy, tuple(unit[x] for x in wanted), along, held, cost)


def _derived(family: Family, output: ChangingOutput, path: Path, moves: Mapping[str, Moves]) -> tuple[Array, Array]:
    """Values (n,) of an output along a path, and derivatives (p, n) by the parameters."""
    output.require_determined(family.system, path)
    values, found = output.values(family.system, path), derivatives(family, output, path, moves)
    return values, np.array([found[name] for name in family.parameters])


def _names(system: System, given: str | Sequence[str] | None) -> tuple[str, ...]:
    if given is not None:
        if not given:
            raise LoopdynError("no parameter is named. Name some, or leave parameters out for all of them.")
        return (given,) if isinstance(given, str) else tuple(given)
    found = tuple(name for name, x in system.mechanism.parameters.items() if not isinstance(x, str))
    if not found:
        raise LoopdynError(
            f"'{system.name}' has no parameters that are numbers. Give it some: Mechanism(..., parameters={{...}})."
        )
    return found


def _path(states: Sequence[State], a: Array, along: Array | None = None) -> Path:
    t = np.array([s.t for s in states])
    return Path(t, np.array([s.q for s in states]), np.array([s.v for s in states]), a, t if along is None else along)


def _of_run(
    family: Family,
    wanted: tuple[str, ...],
    at: State | Drive | Equilibrium | None,
    hold: Sequence[str] | None,
    span: tuple[float, float],
    events: Sequence[Given],
    formulation: str | Formulation,
    rtol: float,
) -> Sensitivity:
    """Functionals of a run from a state."""
    s = family.system
    if isinstance(at, Drive | Equilibrium):
        raise LoopdynError(f"a run begins at a state, not at a {type(at).__name__}. Give one of its states: state=....")
    check_settings(rtol, None, "projection")
    if s.mechanism.contacts:
        raise LoopdynError(
            f"'{s.name}' has contacts ({', '.join(s.mechanism.contacts)}), through which changes of a run are not "
            "followed. Compare runs with two values of the parameter: ld.study(...)."
        )
    known = [functional(text) for text in wanted]
    counts = Local.evaluations, Local.complex_evaluations
    state = assemble(s, t=span[0]) if at is None else State(span[0], at.q, at.v, tolerated=at.tolerated)
    require_dense(s.for_state(state))
    held = held_labels(s, state, hold)
    first = HeldPoses(family, held).at(state, given=start_changes(family, held) if at is None else None)
    found = changes_of_run(family, state, first, span, events, formulation, rtol)
    real, complex_ = Local.evaluations - counts[0], Local.complex_evaluations - counts[1]
    stages = sum(len(x.record.states) for x in found.segments)
    of = Functionals(found)
    values = [of.of(what) for what in known]
    y, dy = np.array([v[0] for v in values]), np.array([v[1] for v in values])
    cost = {"states": stages, "real": real, "complex": complex_}
    return Sensitivity(s, wanted, family.values, y, dy, tuple(v[2] for v in values), {}, held, cost)


def _at_state(
    family: Family, outputs: Sequence[ChangingOutput], at: State | None, hold: Sequence[str] | None
) -> tuple[Path, dict[str, Moves], tuple[str, ...]]:
    """A state with its changes; accelerations are those of the free motion, if an output needs them."""
    s = family.system
    state = assemble(s) if at is None else at
    if state.tolerated is not None:
        require_dense(s.for_state(state))
    require_closed(s, state)
    held = held_labels(s, state, hold)
    changes = HeldPoses(family, held).at(state, given=start_changes(family, held) if at is None else None)
    a = np.zeros(s.nv)
    if any(output.level >= ACCELERATION for output in outputs):
        local, changes = dynamic_changes(family, state, changes)
        a = local.a
    return _path([state], a[None]), {name: Moves([c]) for name, c in changes.items()}, held


def _at_equilibrium(family: Family, at: Equilibrium) -> tuple[Path, dict[str, Moves], tuple[str, ...]]:
    """An equilibrium with its changes, and the idle coordinates that are held."""
    _require_same(family.system, at.system)
    changes, held = equilibrium_changes(family, at.state)
    return _path([at.state], np.zeros((1, family.system.nv))), {name: Moves([c]) for name, c in changes.items()}, held


def _along_drive(
    family: Family, outputs: Sequence[ChangingOutput], at: Drive
) -> tuple[Path, dict[str, Moves], tuple[str, ...]]:
    """Path of a drive with the changes of each step."""
    s, p = family.system, at.path
    _require_same(s, at.system)
    most = ACCELERATION if at.parameter == "time" else POSITION
    for output in outputs:
        if output.level > most:
            raise LoopdynError(
                f"'{output.text}' depends on {LEVELS[output.level]}, which this drive does not have. Drive with "
                "formulas of t, or take a state or a run."
            )
    if at.parameter != "time" and (s.mechanism.base or s.mechanism.drivers):
        raise LoopdynError(
            f"'{s.name}' has drivers or a moving base, at rest over a range of inputs. Drive with formulas of t."
        )
    if any(tolerated is not None for tolerated in at.tolerated):
        require_dense(s.tolerating(next(x for x in at.tolerated if x is not None)))
    poses, every = HeldPoses(family, at.inputs), []
    for k in range(at.steps):
        every.append(poses.at(State(float(p.t[k]), p.q[k], p.v[k]), p.a[k]))
    moves = {name: Moves([changes[name] for changes in every]) for name in family.parameters}
    return Path(p.t, p.q, p.v, p.a, at.parameter_si()), moves, at.inputs


def _require_same(system: System, other: System) -> None:
    same = system.coordinates == other.coordinates and np.array_equal(system.floats, other.floats)
    if not same:
        raise LoopdynError(
            f"'{system.name}' is not the system of the result given as state=..., or has other numbers. Give "
            "that system: ld.sensitivity(found.system, ..., state=found)."
        )


__all__ = ["sensitivity"]
