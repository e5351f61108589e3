"""Systems of python-control: state space of a linearization, nonlinear system of a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loopdyn.analysis.assembly import assemble
from loopdyn.errors import LoopdynError
from loopdyn.formulations.oracle import solve_dense
from loopdyn.loops.rank import decide
from loopdyn.results.measures import Measured, Path
from loopdyn.system.laws import force_law, with_laws
from loopdyn.system.measures import ACCELERATION, compiled_formula
from loopdyn.system.system import State, System
from loopdyn.tree.functions import terms


def control() -> Any:
    """Return the module `control`; raises with the command that installs it."""
    try:
        import control as module
    except ImportError:
        raise LoopdynError("python-control is not installed. Install it: pip install 'loopdyn[control]'.") from None
    return module


def signal_names(names: Sequence[str]) -> list[str]:
    """Names as python-control accepts them: dots, which it reads as subsystem.signal, become underscores."""
    return [name.replace(".", "_") for name in names]


def state_space(matrices: Sequence[Any], names: Sequence[Sequence[str]], name: str) -> Any:
    """Return the `control.StateSpace` of A, B, C, D, with the names of states, inputs and outputs."""
    states, inputs, outputs = (signal_names(of) for of in names)
    return control().ss(*matrices, states=states, inputs=inputs or None, outputs=outputs, name=signal_names([name])[0])


def to_control(
    system: System,
    state: State | None = None,
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
) -> Any:
    """Nonlinear input/output system of python-control (``pip install 'loopdyn[control]'``), loops closed.

    Its states are all coordinates and speeds of the tree, in declared units; accelerations keep the loops closed, but
    nothing corrects the drift of an integrator: start from a closed state and use small tolerances. For long motions
    use :func:`loopdyn.simulate`, for controllers :class:`loopdyn.Simulation`. Dots in names become underscores.

    Parameters
    ----------
    system : System
    state : State, optional
        A closed state, at which the number of independent constraint equations is decided; by default the start of
        the model, assembled.
    inputs : sequence of str
        Motors, actuators and components of forces ("push.fx"), whose laws the inputs replace.
    outputs : sequence of str, optional
        Labels, measures or formulas; by default the coordinates.

    Returns
    -------
    control.NonlinearIOSystem
    """
    start = assemble(system) if state is None else state
    model = _Equations(system.for_state(start), start, tuple(inputs), outputs)
    names = [*system.coordinates, *(f"{label}.speed" for label in system.speeds)]
    return control().nlsys(
        model.rates, model.outputs, inputs=signal_names(inputs), outputs=signal_names(model.names),
        states=signal_names(names), name=signal_names([system.name])[0],
    )  # fmt: skip


class _Equations:
    """Rates and outputs of a mechanism as functions of time, states and inputs in declared units."""

    def __init__(self, system: System, state: State, inputs: tuple[str, ...], outputs: Sequence[str] | None):
        vectors = [j.name for j in system.joints.values() if j.in_tree and not j.spec.is_scalar()]
        if vectors or system.counted:
            what = f"joint '{vectors[0]}' has a quaternion" if vectors else f"{system.counted[0]} is a counted angle"
            raise LoopdynError(f"to_control: {what}, whose rates are not its speeds. Use ld.Simulation.")
        self.count = decide(system, state).count
        self.laws = [force_law(system, name) for name in inputs]
        held = {law: 0.0 for law in self.laws}
        self.system = with_laws(system, held) if held else system
        self.each = [with_laws(system, {**held, law: 1.0}) for law in self.laws]
        self.names = tuple(system.coordinates if outputs is None else outputs)
        self.formulas = [compiled_formula(system, name, f"output '{name}'") for name in self.names]
        self.q_factors = np.array([system.labels.factor(label) for label in system.coordinates])
        self.v_factors = np.array([system.labels.factor(label, True) for label in system.speeds])

    def _state(self, t: float, x: Any) -> State:
        n = self.system.nq
        return State(float(t), x[:n] * self.q_factors, x[n:] * self.v_factors)

    def _accelerations(self, state: State, u: Any) -> Any:
        s = self.system
        now = terms(s, state)
        h = now.h + sum(float(x) * (terms(one, state).h - now.h) for x, one in zip(u, self.each, strict=True))
        return solve_dense(now.M, h, now.J, now.gamma, s.speed_units, s.row_units, self.count).a

    def rates(self, t: float, x: Any, u: Any, params: Any) -> Any:
        """Rates of the states."""
        state = self._state(t, np.asarray(x, float))
        return np.concatenate([state.v / self.q_factors, self._accelerations(state, u) / self.v_factors])

    def outputs(self, t: float, x: Any, u: Any, params: Any) -> Any:
        """Values of the outputs."""
        state = self._state(t, np.asarray(x, float))
        a = self._accelerations(state, u) if any(f.level >= ACCELERATION for f in self.formulas) else 0.0 * state.v
        one = np.array([state.t])
        path = Path(one, state.q[None], state.v[None], a[None], one)
        measured = Measured(self.system, path)
        return np.array([measured.of(f)[0] for f in self.formulas])
