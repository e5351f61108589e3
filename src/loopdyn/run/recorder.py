"""Recorder of a run: its outputs, which are checked as they are written, and a journal of its events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.files import Misfit, fitting
from loopdyn.formulations.base import Solver
from loopdyn.integrators.drift import Drift, corrects_positions
from loopdyn.integrators.memory import Output
from loopdyn.integrators.stepper import Stepper
from loopdyn.results.run import Diagnostics, Trajectory, least_energy, measure, pieces
from loopdyn.run.events import Event, event_of
from loopdyn.run.locking import Phase
from loopdyn.run.singular_passage import Passage, passage_of
from loopdyn.system.system import State, System
from loopdyn.tree.functions import energy

Array = NDArray[np.float64]

# Residual, in natural units, above which loops count as open during a run: with corrections, and without.
OPEN, OPEN_UNCORRECTED = 1e-3, 0.1
# Relative energy-balance error that counts as a blow-up ...
BLOW_UP = 0.5
SUSPICIOUS = 0.01  # ... that causes a warning
LOST_WAY = 0.01  # ... and that counts as an error in a singular passage


@dataclass(frozen=True)
class Independent:
    """Independent speeds, with the time and phase from which they are."""

    t: float
    phase: int
    speeds: tuple[str, ...]


class Journal:
    """Journal of a run: events, singular passages, phases, and coordinate switches.

    Parameters
    ----------
    system : System
        System of the first phase.
    solver : Solver
    """

    def __init__(self, system: System, solver: Solver):
        self.system = system
        self.events: list[Event] = []
        self.passages: list[Passage] = []
        self.independent: list[Independent] = []
        self.phases, self.solvers = [Phase(system, tolerated=system.tolerated)], [solver]
        self.entered: list[State] = []  # state at which each phase after the first began

    @property
    def phase(self) -> Phase:
        """Current phase."""
        return self.phases[-1]

    def book(self, kind: str, name: str, state: State, after: State | None = None, **more: Any) -> None:
        """Record an event at a state, which it may have changed; `more` are other fields of :class:`Event`."""
        before = replace(state, system=self.phases[0].system)
        then = before if after is None else replace(after, system=before.system)
        given = {"t": state.t, "state": before, "after": then, **more}
        self.events.append(Event(name=name, kind=kind, **given))

    def book_passage(self, made: Passage, start: State, stop: State) -> None:
        """Record a singular passage, which is also an event."""
        self.passages.append(made)
        kind = "singular passage" if made.through else "near miss"
        kind = "momentum steps" if made.contacts is not None else kind
        later = None if made.of_joints is None else partial(getattr, made, "impulses")
        self.book(kind, str(made), start, stop, t=made.start, of_joints=later)

    def enter(self, phase: Phase, solver: Solver, state: State) -> None:
        """Begin another phase at a state."""
        self.phases.append(phase)
        self.solvers.append(solver)
        self.entered.append(state)

    def note_independent(self, t: float, stepper: Stepper) -> None:
        """Record the speeds that are independent from now on, if the solver has any; a change is an event."""
        coordinates = stepper.coordinates
        active = None if coordinates is None else coordinates.active
        phase = len(self.phases) - 1
        last = self.independent[-1] if self.independent else None
        if active is None or (last is not None and (last.phase, last.speeds) == (phase, active)):
            return
        if last is not None and last.speeds != active:
            before, now = (", ".join(speeds) or "none" for speeds in (last.speeds, active))
            self.book("coordinate switch", f"independent: {before} -> {now}", stepper.state(), t=t)
        self.independent.append(Independent(t, phase, active))

    def _lists(self) -> tuple[list[Any], ...]:
        return self.events, self.passages, self.independent, self.phases, self.solvers, self.entered

    def lengths(self) -> tuple[int, ...]:
        """Numbers of entries, to which :meth:`shorten` returns."""
        return tuple(len(entries) for entries in self._lists())

    def shorten(self, lengths: tuple[int, ...]) -> None:
        """Remove later entries."""
        for entries, n in zip(self._lists(), lengths, strict=True):
            del entries[n:]

    def continue_as(self, other: Journal) -> None:
        """Take over the entries of the journal of an equal run, except for phases, which have been entered again."""
        self.events, self.passages = list(other.events), list(other.passages)
        self.independent = list(other.independent)

    def independent_at(self, path: Trajectory) -> tuple[NDArray[np.bool_], Array]:
        """Independent speeds at the outputs, and the criterion of their choice there."""
        if not self.independent:
            return np.zeros((0, 0), bool), np.zeros((0, 0))
        n, labels = len(path), self.system.speeds
        active, criterion = np.zeros((n, len(labels)), bool), np.zeros((n, len(labels)))
        ends = [*(p.first for p in self.phases[1:]), n]
        for k, (phase, end, solver) in enumerate(zip(self.phases, ends, self.solvers, strict=True)):
            part, kernels = slice(phase.first, min(end, n)), solver.kernels
            sets = [x for x in self.independent if x.phase == k]
            if not sets or part.stop <= part.start or kernels is None or kernels.coordinates is None:
                continue
            which = np.maximum(np.searchsorted([x.t for x in sets], path.t[part], side="right") - 1, 0)
            active[part] = np.array([np.isin(labels, x.speeds) for x in sets])[which]
            along = path.t[part], path.q[part], path.v[part]
            criterion[part] = kernels.coordinates.criterion(*along, active[part])
        return active, criterion

    def save(self) -> dict[str, Any]:
        """Data of the journal, by names for a file."""
        return {
            "phases": np.array(json.dumps([p.as_data() for p in self.phases])),
            "entered": np.array([[s.t, *s.q, *s.v] for s in self.entered]),
            "events": np.array(json.dumps([e.as_data() for e in self.events])),
            "passages": np.array(json.dumps([p.as_data() for p in self.passages])),
            "partition": np.array(json.dumps([asdict(x) for x in self.independent])),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore the data of :meth:`save`, without the phases, which have been entered again."""
        self.events = [event_of(self.system, x) for x in json.loads(str(saved["events"]))]
        self.passages = [passage_of(x) for x in json.loads(str(saved["passages"]))]
        found = json.loads(str(saved["partition"]))
        self.independent = [Independent(x["t"], x["phase"], tuple(x["speeds"])) for x in found]


@dataclass(frozen=True)
class _Checks:
    """Checked quantities of n new outputs."""

    gap: Array  # (n, nc) of the loops, natural units
    balance: Array  # (n,) energy-balance error, J
    scale: Array  # (n,) largest energy exchanged so far, J
    wrong: NDArray[np.bool_]  # (n,)


class Recorder:
    """Outputs of a run, and their checks.

    Parameters
    ----------
    system : System
    times : (n,)
        Output times, s.
    works : int
        Number of works that are recorded with the state.
    drift : str or Baumgarte
    """

    def __init__(self, system: System, times: Array, works: int, drift: Drift):
        n = len(times)
        m = n + 1  # one more for the time at which an event stops the run
        self.times, self.t = times, np.append(times, np.nan)
        q, v, a, work = (np.zeros((m, k)) for k in (system.nq, system.nv, system.nv, works))
        self.out = Output(self.t[:n], q, v, a, work, steps=np.zeros(m, np.int64), written=np.zeros(1, np.int64))
        self.jumps = np.zeros(m)  # energy dissipated by events until then, J
        self.checked = 0  # outputs that have been checked
        self.saved = 0  # outputs that are in a file
        self.weight = system.weight
        self.scale = least_energy(system)  # largest energy exchanged so far, J
        self.reference = 0.0  # energy at the start, J
        self.lost = 0.0  # energy dissipated by events so far, J
        self.error = 0.0  # relative energy-balance error at the last output
        self.largest_error = 0.0  # ... and the largest so far, J
        self.corrects = corrects_positions(drift)

    # ----------------------------------------------------------------------------------------------- outputs

    @property
    def written(self) -> int:
        """Number of outputs so far."""
        return int(self.out.written[0])

    def keep(self, n: int) -> None:
        """Remove all outputs but the first n."""
        self.out.written[0] = n

    def take_back(self, t: float) -> None:
        """Remove outputs after t, since the steps that wrote them are rejected."""
        n = int(np.searchsorted(self.times, t, side="right"))
        self.checked = min(self.checked, n)
        self.keep(min(self.written, n))

    def write_end(self, stepper: Stepper, t: float) -> None:
        """Write an output at the time inside the last step at which the run stops, unless there is one."""
        if self.written == 0 or self.t[self.written - 1] < t:
            self.t[self.written] = t
            stepper.interpolate(t)
            stepper.write(self.out)

    def empty(self) -> None:
        """Make room for new outputs, after a check; sums over all outputs are kept."""
        self.keep(0)
        self.checked = 0
        self.t[:] = np.inf
        self.jumps[:] = self.lost

    def sums(self) -> tuple[float, ...]:
        """Sums over all outputs, and the numbers of those written and checked."""
        return self.scale, self.reference, self.lost, self.error, self.largest_error, self.written, self.checked

    def restore_sums(self, sums: tuple[float, ...]) -> None:
        """Return to the outputs and sums that :meth:`sums` told."""
        self.scale, self.reference, self.lost, self.error, self.largest_error, written, checked = sums
        self.keep(int(written))
        self.checked = int(checked)
        self.jumps[self.written :] = self.lost

    def continue_as(self, other: Recorder) -> None:
        """Take over the sums of a recorder without outputs."""
        self.empty()
        self.restore_sums(other.sums())

    def lose(self, loss: float) -> None:
        """Add energy dissipated by an event, J, from the next output on."""
        self.lost += loss
        self.jumps[self.written :] = self.lost

    def path(self, start: int = 0, stop: int | None = None) -> Trajectory:
        """Outputs from `start` to `stop`, by default all."""
        o, part = self.out, slice(start, self.written if stop is None else stop)
        return Trajectory(self.t[part], o.q[part], o.v[part], o.a[part], o.work[part], o.steps[part])

    # ------------------------------------------------------------------------------------------------ checks

    def check(self, phases: Sequence[Phase]) -> str:
        """Check new outputs; remove the first wrong one and all after it.

        Return an error message, or "".
        """
        for system, start, stop in pieces(phases, self.checked, self.written):
            path = self.path(start, stop)
            checks = self._checks(system, path, measure(system, path))
            bad = np.flatnonzero(checks.wrong)
            if bad.size:
                k = int(bad[0])
                self.keep(start + k)
                return self._what(system, path, checks, k)
            self.scale = float(checks.scale[-1])
            self.largest_error = max(self.largest_error, float(checks.balance.max()))
            self.error = float(checks.balance[-1]) / self.scale if self.scale > 0.0 else 0.0
            self.checked = stop
        return ""

    def _checks(self, s: System, path: Trajectory, found: Diagnostics) -> _Checks:
        moved = found.energy.sum(axis=1) - self.reference
        finite = np.isfinite(path.q).all(axis=1) & np.isfinite(path.a).all(axis=1)
        gap = np.where(s.holonomic, np.abs(found.residual[:, 0]) / s.row_units, 0.0)
        balance = np.abs(moved - path.work.sum(axis=1) + self.jumps[self.checked : self.checked + len(path)])
        largest = np.max([found.energy[:, 0], np.abs(moved), np.abs(path.work).max(axis=1, initial=0.0)], axis=0)
        scale = np.maximum.accumulate(np.append(self.scale, largest))[1:]
        # at rest at both ends of a swing no energy seems to have been exchanged: potential energy is counted, too
        lifted = self.weight * s.size if s.model.gravity.any() else 0.0
        wrong = ~finite | (gap.max(axis=1, initial=0.0) > self._open)
        return _Checks(gap, balance, scale, wrong | (balance > BLOW_UP * np.maximum(scale, lifted)))

    @property
    def _open(self) -> float:
        """Residual at which a loop counts as open."""
        return OPEN if self.corrects else OPEN_UNCORRECTED

    def _what(self, s: System, path: Trajectory, checks: _Checks, k: int) -> str:
        """Error message for output k."""
        t = path.t[k]
        for values, labels, what in ((path.q, s.coordinates, "coordinate"), (path.a, s.speeds, "acceleration")):
            bad = np.flatnonzero(~np.isfinite(values[k]))
            if bad.size:
                return f"the {what} of '{labels[bad[0]]}' is not finite at t = {t:g} s. Use smaller steps."
        gap = checks.gap[k]
        if gap.max(initial=0.0) > self._open:
            row = s.constraint_rows[int(np.argmax(gap))]
            hint = "Use smaller tolerances or steps"
            hint = hint if self.corrects else 'Use drift="projection", or smaller tolerances'
            return (
                f"'{row}' is open by {gap.max():.2g} (natural units) at t = {t:g} s. {hint}, and "
                "check the pose: near a singular pose, try another formulation."
            )
        fast = s.speeds[int(np.argmax(np.abs(path.v[k] / s.speed_units)))]
        speed = path.v[k, s.speeds.index(fast)] / s.labels.factor(fast, speed=True)
        unit = s.units.symbol(s.labels.speeds[fast].dimension, 1)
        return (
            f"energy is off by {checks.balance[k]:.3g} J at t = {t:g} s, more than half of the energy exchanged; the "
            f"fastest speed is '{fast}', {speed:.3g} {unit}. Use smaller steps or tolerances."
        )

    def check_passage(self, system: System, made: Passage, start: State, stop: State) -> None:
        """Raise if energy changed in a singular passage: its steps did not follow the motion."""
        jump, ends = made.energy_jump, [energy(system, s) for s in (start, stop)]
        moved = [x for e in ends for x in (abs(e.kinetic + e.gravity - self.reference), e.kinetic)]
        if abs(jump) > LOST_WAY * max(self.scale, *moved):  # outputs may be far apart
            raise LoopdynError(
                f"energy changed by {jump:.2g} J in a singular passage, more than {LOST_WAY:.0%} of the energy "
                "exchanged. Use smaller tolerances, or move events and jumps of forces away from there."
            )

    def suspicious(self) -> list[str]:
        """Warnings to issue after the run."""
        if not self.largest_error > SUSPICIOUS * self.scale > 0.0:
            return []
        return [
            f"the relative energy-balance error of the run is {self.largest_error / self.scale:.1%}, more than "
            f"{SUSPICIOUS:.0%}. Use a smaller rtol or smaller steps; a discontinuous force needs an event."
        ]

    # ------------------------------------------------------------------------------------------------- files

    def save(self) -> dict[str, Any]:
        """Outputs that are in no file yet, and sums over all outputs, by names for a file."""
        n = self.written
        first = min(self.saved, n)
        return {
            **{f"output_{name}": array[first:n] for name, array in self._rows().items()},
            "first": np.array(first),
            "scalars": np.array([self.scale, self.reference, self.lost, self.error]),
        }

    def restore_outputs(self, saved: Mapping[str, Any]) -> None:
        """Add the outputs of one file."""
        first, n = int(saved["first"]), len(saved["output_q"])
        if not 0 <= first <= self.saved or first + n > len(self.t):
            raise Misfit(f"it has outputs {first} to {first + n} of {len(self.times)}")
        for name, array in self._rows().items():
            place = array[first : first + n]
            place[...] = fitting(f"output_{name}", saved.get(f"output_{name}"), place)
        self.saved = first + n

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore the sums of the last file, and count its outputs."""
        scalars = fitting("scalars", saved.get("scalars"), np.zeros(4))
        self.scale, self.reference, self.lost, self.error = scalars.tolist()
        self.keep(self.saved)
        self.checked = self.saved
        self.jumps[self.saved :] = self.lost

    def _rows(self) -> dict[str, NDArray[Any]]:
        o = self.out
        return {"q": o.q, "v": o.v, "a": o.a, "work": o.work, "steps": o.steps, "jumps": self.jumps}
