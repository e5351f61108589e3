"""What is kept of a run while it is made: outputs, which are checked as they come, and a journal of what happened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.files import Misfit, fitting
from loopdyn.formulations.base import Solver
from loopdyn.integrators.drift import Drift, corrects_positions
from loopdyn.integrators.memory import Output
from loopdyn.integrators.stepper import Stepper
from loopdyn.results.run import Diagnostics, Trajectory, least_energy, measure, pieces, weight
from loopdyn.run.events import Event, event_of
from loopdyn.run.locking import Phase
from loopdyn.run.singular_passage import Passage, moving_energy, passage_of
from loopdyn.system.system import State, System
from loopdyn.tree.functions import energy

Array = NDArray[np.float64]

# Residual, rad or sizes of the mechanism, at which loops count as open during a run: with corrections, and without.
OPEN, OPEN_UNCORRECTED = 1e-3, 0.1
# Error of the energy balance, as a share of the largest energy that moved, that counts as a blow-up ...
BLOW_UP = 0.5
SUSPICIOUS = 0.01  # ... and one that is warned of
LOST_WAY = 0.01  # ... the same in a passage of a singular pose


@dataclass(frozen=True)
class Independent:
    """Since when, in which phase, which speeds are independent."""

    t: float
    phase: int
    speeds: tuple[str, ...]


class Journal:
    """What happened in a run: events, singular passages, phases, and coordinate switches.

    Parameters
    ----------
    system : System
        Of the first phase.
    solver : Solver
    """

    def __init__(self, system: System, solver: Solver):
        self.system = system
        self.events: list[Event] = []
        self.passages: list[Passage] = []
        self.independent: list[Independent] = []
        self.phases, self.solvers = [Phase(system, tolerated=system.tolerated)], [solver]
        self.entered: list[State] = []  # where each phase after the first one began

    @property
    def phase(self) -> Phase:
        """The present one."""
        return self.phases[-1]

    def book(self, kind: str, name: str, state: State, after: State | None = None, **more: Any) -> None:
        """Add an event at a state, which it may have changed; `more` are other fields of :class:`Event`."""
        given = {"t": state.t, "state": state, "after": state if after is None else after, **more}
        self.events.append(Event(name=name, kind=kind, **given))

    def book_passage(self, made: Passage, start: State, stop: State) -> None:
        """Add a passage of a singular pose, which is an event, too."""
        self.passages.append(made)
        kind = "singular passage" if made.through else "near miss"
        self.book(kind, str(made), start, stop, t=made.start, impulse=made.impulses)

    def enter(self, phase: Phase, solver: Solver, state: State) -> None:
        """Begin another phase at a state."""
        self.phases.append(phase)
        self.solvers.append(solver)
        self.entered.append(state)

    def note_independent(self, t: float, stepper: Stepper) -> None:
        """Note which speeds are independent from now on, where a solver has such; a change is an event."""
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

    def independent_at(self, path: Trajectory) -> tuple[NDArray[np.bool_], Array]:
        """Which speeds were independent at outputs, and the criterion by which they are chosen there."""
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
        """All of it, by names for a file."""
        return {
            "phases": np.array(json.dumps([p.as_data() for p in self.phases])),
            "entered": np.array([[s.t, *s.q, *s.v] for s in self.entered]),
            "events": np.array(json.dumps([e.as_data() for e in self.events])),
            "passages": np.array(json.dumps([p.as_data() for p in self.passages])),
            "partition": np.array(json.dumps([asdict(x) for x in self.independent])),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """All but the phases, which have been entered again."""
        self.events = [event_of(self.system, x) for x in json.loads(str(saved["events"]))]
        self.passages = [passage_of(x) for x in json.loads(str(saved["passages"]))]
        found = json.loads(str(saved["partition"]))
        self.independent = [Independent(x["t"], x["phase"], tuple(x["speeds"])) for x in found]


@dataclass(frozen=True)
class _Checks:
    """What is looked at in n new outputs."""

    gap: Array  # (n, nc) of the loops, rad or sizes of the mechanism
    balance: Array  # (n,) error of the energy, J
    scale: Array  # (n,) largest energy that moved so far, J
    wrong: NDArray[np.bool_]  # (n,)


class Recorder:
    """Outputs of a run, and their checks.

    Parameters
    ----------
    system : System
    times : (n,)
        Of outputs, s.
    works : int
        Number of works that are recorded beside the state.
    drift : str or Baumgarte
    """

    def __init__(self, system: System, times: Array, works: int, drift: Drift):
        n = len(times)
        m = n + 1  # one more for the place where an event stops the run
        self.times, self.t = times, np.append(times, np.nan)
        q, v, a, work = (np.zeros((m, k)) for k in (system.nq, system.nv, system.nv, works))
        self.out = Output(self.t[:n], q, v, a, work, steps=np.zeros(m, np.int64), written=np.zeros(1, np.int64))
        self.jumps = np.zeros(m)  # energy that events took away until then, J
        self.checked = 0  # outputs that have been looked at
        self.saved = 0  # outputs that are in a file
        self.weight = weight(system)
        self.scale = least_energy(system)  # largest energy that moved so far, J
        self.reference = 0.0  # energy at the start, J
        self.lost = 0.0  # energy that events took away so far, J
        self.error = 0.0  # of the energy balance at the last output, relative
        self.largest_error = 0.0  # ... and the largest so far, J
        self.corrects = corrects_positions(drift)

    # ----------------------------------------------------------------------------------------------- outputs

    @property
    def written(self) -> int:
        """Outputs so far."""
        return int(self.out.written[0])

    def keep(self, n: int) -> None:
        """Remove all outputs but the first n."""
        self.out.written[0] = n

    def take_back(self, t: float) -> None:
        """Remove outputs after t: the steps that gave them are not taken."""
        n = int(np.searchsorted(self.times, t, side="right"))
        self.checked = min(self.checked, n)
        self.keep(min(self.written, n))

    def write_end(self, stepper: Stepper, t: float) -> None:
        """Write an output where the run stops, inside the last step, unless there is one."""
        if self.written == 0 or self.t[self.written - 1] < t:
            self.t[self.written] = t
            stepper.interpolate(t)
            stepper.write(self.out)

    def lose(self, loss: float) -> None:
        """Count the energy that an event took away, J, from the next output on."""
        self.lost += loss
        self.jumps[self.written :] = self.lost

    def path(self, start: int = 0, stop: int | None = None) -> Trajectory:
        """Outputs from one on up to another, or all."""
        o, part = self.out, slice(start, self.written if stop is None else stop)
        return Trajectory(self.t[part], o.q[part], o.v[part], o.a[part], o.work[part], o.steps[part])

    # ------------------------------------------------------------------------------------------------ checks

    def check(self, phases: Sequence[Phase]) -> str:
        """Check the outputs that are new; the first one that is wrong and all after it are removed.

        What is wrong, in words, if anything is.
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
        # at rest at both ends of a swing nothing seems to have moved: what gravity could move is counted too
        lifted = self.weight * s.size if s.model.gravity.any() else 0.0
        wrong = ~finite | (gap.max(axis=1, initial=0.0) > self._open)
        return _Checks(gap, balance, scale, wrong | (balance > BLOW_UP * np.maximum(scale, lifted)))

    @property
    def _open(self) -> float:
        """Residual at which a loop counts as open."""
        return OPEN if self.corrects else OPEN_UNCORRECTED

    def _what(self, s: System, path: Trajectory, checks: _Checks, k: int) -> str:
        """What is wrong with output k."""
        t = path.t[k]
        for values, labels, what in ((path.q, s.coordinates, "coordinate"), (path.a, s.speeds, "acceleration")):
            bad = np.flatnonzero(~np.isfinite(values[k]))
            if bad.size:
                return f"the {what} of '{labels[bad[0]]}' is not a finite number at t = {t:g} s. Use smaller steps."
        gap = checks.gap[k]
        if gap.max(initial=0.0) > self._open:
            row = s.constraint_rows[int(np.argmax(gap))]
            hint = "Use smaller tolerances or steps"
            hint = hint if self.corrects else 'Use drift="projection", or smaller tolerances'
            return (
                f"'{row}' is open by {gap.max():.2g} (rad or sizes of the mechanism) at t = {t:g} s. {hint}, and look "
                "at the pose: near a singular one, try another formulation."
            )
        fast = int(np.argmax(np.abs(path.v[k] / s.speed_units)))
        return (
            f"energy is off by {checks.balance[k]:.3g} J at t = {t:g} s, more than half of what moves; the fastest is "
            f"'{s.speeds[fast]}' at {path.v[k, fast]:.3g} (rad/s or m/s). Use smaller steps or tolerances."
        )

    def check_passage(self, system: System, made: Passage, start: State, stop: State) -> None:
        """Refuse to go on behind a passage in which energy came or went: it did not follow the motion."""
        jump, ends = made.energy_jump, (start, stop)
        moved = [abs(moving_energy(system, s) - self.reference) for s in ends]
        moved += [energy(system, s).kinetic for s in ends]
        if abs(jump) > LOST_WAY * max(self.scale, *moved):  # outputs may be far apart
            raise LoopdynError(
                f"energy changed by {jump:.2g} J in the passage of a singular pose, more than {LOST_WAY:.0%} of what "
                "moves. Use smaller tolerances, or move what happens there."
            )

    def suspicious(self) -> list[str]:
        """What is to be warned of after the run, in words."""
        if not self.largest_error > SUSPICIOUS * self.scale > 0.0:
            return []
        return [
            f"the relative energy-balance error of the run is {self.largest_error / self.scale:.1%}, more than "
            f"{SUSPICIOUS:.0%}. Use a smaller rtol or smaller steps; a force that jumps needs an event."
        ]

    # ------------------------------------------------------------------------------------------------- files

    def save(self) -> dict[str, Any]:
        """Outputs that are in no file yet, and sums over all of them, by names for a file."""
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
        """Take over the sums of the last file, and count its outputs."""
        scalars = fitting("scalars", saved.get("scalars"), np.zeros(4))
        self.scale, self.reference, self.lost, self.error = scalars.tolist()
        self.keep(self.saved)
        self.checked = self.saved
        self.jumps[self.saved :] = self.lost

    def _rows(self) -> dict[str, NDArray[Any]]:
        o = self.out
        return {"q": o.q, "v": o.v, "a": o.a, "work": o.work, "steps": o.steps, "jumps": self.jumps}
