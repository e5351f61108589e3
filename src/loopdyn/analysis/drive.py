"""`drive`: kinematic analysis of a mechanism over a range of its inputs, or along a motion of them.

The curve is followed by :mod:`loopdyn.analysis.path_following`; this module checks the inputs and starts the analysis,
and :mod:`loopdyn.results.drive` has the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.contradictions import beyond_tolerance, check_open_rows, choose_again, largest_open
from loopdyn.analysis.drive_inputs import InputCourse, course_of, straight_line
from loopdyn.analysis.measured_rows import MeasuredRows
from loopdyn.analysis.mobility import mobility
from loopdyn.analysis.path_following import CurveEnd, CurvePoint, Follower, Inputs
from loopdyn.errors import LoopdynError
from loopdyn.loops.one_sided import warn_if_closed
from loopdyn.loops.projection import project
from loopdyn.loops.rank import dead_drivers, of_matrix
from loopdyn.quantities.times import check_span, given_times
from loopdyn.quantities.wording import unknown
from loopdyn.results.drive import Drive, DriveEvent, Kind
from loopdyn.results.path import Sampled, per
from loopdyn.results.units import factors, symbols
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE
from loopdyn.tree.functions import increment

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

SHARE = 0.3  # fraction of the largest motion from which a coordinate is named in a message
NAMED = 6  # coordinates named at most
AT_START = 1e-9  # natural units: a dead point as near as this to the start of a range is at the start
NEARBY = 1e-2  # natural units: distance of a pose near a dead point


def drive(
    system: System,
    inputs: str | Mapping[str, Any],
    motion: Any = None,
    *,
    t_span: tuple[float, float] | None = None,
    t_eval: ArrayLike | None = None,
    near: State | None = None,
    limits: bool = True,
) -> Drive:
    """Kinematic analysis over a range of inputs: positions, velocities, accelerations, ratios, dead points.

    Parameters
    ----------
    system : System
    inputs : str, or mapping of label to motion
        Joint coordinate that is driven, or several with their ranges or motions. Together, with the drivers of the
        model, they must determine the motion.
    motion : tuple, array, profile, formula or Table
        Motion of a single input. A tuple ``(start, stop)`` or ``(start, stop, n)`` is a range of n steps, a list or
        array are values; joint coordinates, zero at the reference pose. A profile of
        :mod:`loopdyn.quantities.profiles`, a formula of ``t`` or a table are motions in time. All in declared units.
    t_span : (float, float), optional
        First and last time of a motion in time, s; by default the whole of a profile.
    t_eval : array, optional
        Output times, two or more, ascending, inside the span if one is given; by default 361 over the span.
    near : State, optional
        Pose from which the start of the range is approached, which decides the branch; by default the start of the
        model. Redundant constraints that it leaves open within a tolerance are left open in the analysis.
    limits : bool
        Whether the motion ends at joint limits.

    Returns
    -------
    Drive
        Results as far as the inputs can go; ``.status`` and ``.message`` say whether that is the end of the range.

    Raises
    ------
    LoopdynError
        If the inputs do not determine the motion, do not exist, or cannot reach the start of the range.

    Examples
    --------
    >>> import loopdyn as ld, numpy as np
    >>> turn = ld.drive(ld.library.four_bar().compile(), "A", (0, 2 * np.pi))
    >>> turn.status, [(e.kind, e.label) for e in turn.events if e.label == "D"]
    ('complete', [('turning point', 'D'), ('turning point', 'D')])
    """
    if near is not None:
        system = system.for_state(near)
    given = {inputs: motion} if isinstance(inputs, str) else dict(inputs)
    if not given:
        raise LoopdynError(
            "no input is given. Name the joint coordinate that is driven, e.g. ld.drive(system, 'A', ...)."
        )
    if not isinstance(inputs, str) and motion is not None:
        raise LoopdynError("motions are given twice. Put each into the mapping of the inputs.")
    if not system.holonomic.all():
        row = system.constraint_rows[int(np.argmin(system.holonomic))]
        raise LoopdynError(
            f"the row '{row}' constrains velocities only, so positions depend on the path and not on the inputs alone. "
            "Add a driver and use ld.simulate."
        )
    rows = MeasuredRows(system)
    known = [label for label in rows.labels if label in system.labels.scalars]
    wrong = [label for label in given if label not in known]
    if wrong:
        raise unknown("drive", "joint coordinate", wrong, known)
    course = course_of(system, given, _times(t_span, t_eval))
    return _Driving(system, rows, course, limits).run(near)


def _times(t_span: tuple[float, float] | None, t_eval: ArrayLike | None) -> Any:
    """Times of a motion: an array, or the first and the last one; None if neither is given."""
    if t_span is not None:
        check_span(t_span)
    return t_span if t_eval is None else given_times(t_eval, *(t_span or (-np.inf, np.inf)))


@dataclass(frozen=True)
class _Stretch:
    """Part of the path with one choice of rows: see :meth:`Follower.follow`."""

    follower: Follower
    first: CurvePoint
    found: list[CurvePoint]
    path: list[CurvePoint]
    end: CurveEnd | None

    def state(self, s: float, q: Array) -> State:
        """State at rest at a pose of this part."""
        return State(self.follower.time(s), q, np.zeros(self.follower.nv))


class _Driving:
    """One kinematic analysis: from the start of the model to the start of the range, then along it."""

    def __init__(self, system: System, rows: MeasuredRows, course: InputCourse, limits: bool):
        self.system, self.rows, self.course = system, rows, course
        self.limits = dict(system.limits) if limits else {}
        self.t = course.time

    def follower(self, inputs: Inputs, unit: float, *, moving: bool = False, held: Sequence[int] = ()) -> Follower:
        """Follower of the curve for these inputs; time is constant unless `moving`."""
        time = (lambda s: s) if moving else (lambda s: self.t)
        return Follower(self.rows, self.course.labels, inputs, unit, time, moving, held, self.limits, self._watch)

    def _watch(self, p: CurvePoint) -> tuple[Literal["tolerance", "left open"], str] | None:
        """Reason to stop if redundant rows that are left open exceed the tolerance at a point, or others must be."""
        system, state = self.rows.system, State(p.t, p.q, np.zeros(self.system.nv))
        if system.tolerated is None:
            return None
        watched = check_open_rows(system, state)
        again = choose_again(system, state) if watched.beyond or watched.weak else None
        if again is not None and again[0].tolerated is not None:
            self.rows = MeasuredRows(again[0])
            return "left open", f"{', '.join(system.tolerated.rows)} -> {', '.join(again[0].tolerated.rows)}"
        wrong = beyond_tolerance(watched, "this pose")
        return ("tolerance", wrong.split(". ")[0]) if wrong else None

    def _follow(
        self,
        inputs: Inputs,
        unit: float,
        p: CurvePoint,
        targets: Array,
        *,
        moving: bool = False,
        held: Sequence[int] = (),
    ) -> list[_Stretch]:
        """Follow the inputs from a point to the targets, in parts with one choice of rows each."""
        stretches: list[_Stretch] = []
        s, q, near, left = float(p.s), p.q, p.near, [float(x) for x in targets]
        while True:
            follower = self.follower(inputs, unit, moving=moving, held=held)
            if stretches:
                closed = follower.close(s, q, near)
                if closed is None:
                    stretches[-1] = replace(stretches[-1], end=CurveEnd("lost", s, stretches[-1].state(s, q), near))
                    return stretches
                q = closed
            first = follower.point(s, q, near)
            found, path, end = follower.follow(first, left)
            stretches.append(_Stretch(follower, first, found, path, end))
            if end is None or end.kind != "left open":
                return stretches
            s, q, near, left = end.s, end.state.q, end.near, left[len(found) :]

    def run(self, near: State | None) -> Drive:
        """Follow the whole motion of the inputs."""
        c, zero = self.course, np.zeros(len(self.rows.cut))
        start = assemble(self.system, near=near, t=self.t if c.parameter == "time" else None)
        self.t = start.t
        none = np.zeros(len(c.labels))
        still = self.follower(lambda s: (none, none, none), 1.0)
        phi = self.rows(self.t, start.q, np.zeros(self.system.nv), zero)[0]
        here = still.coordinates(start.q, phi)[still.index]
        self._turn_limits(still.coordinates(start.q, phi))
        held = self._check(still, start)
        # path to the start of the range
        way = self.follower(straight_line(here, c.start, 0.0, 1.0), 1.0, held=held)
        p = way.point(0.0, start.q, zero)
        if np.abs((c.start - here) / way.input_units).max() > 0.0:
            last = self._follow(way.inputs, 1.0, p, np.ones(1), held=held)[-1]
            if last.end is not None:
                raise self._unreachable(last.follower, last.end)
            p = last.found[0]
            if _is_dead(p):  # rounding decides whether the path ends before such a point or reaches it
                raise self._begins_dead()
        stretches: list[_Stretch] = []
        for inputs, targets in c.pieces:
            begin = replace(p, s=float(targets[0]))
            new = self._follow(inputs, c.unit, begin, targets, moving=c.parameter == "time", held=held)
            if stretches:  # the first target was the last one before
                new[0] = replace(new[0], found=new[0].found[1:])
            stretches += new
            p = next((x.found[-1] for x in reversed(stretches) if x.found), new[0].first)
            if new[-1].end is not None:
                break
        end = stretches[-1].end
        points = [p for x in stretches for p in x.found]
        events = [e for x in stretches for e in self._events(x.follower, x.path, x.found, x.end)]
        systems = [x.follower.system for x in stretches for _ in x.found]
        poses = [State(p.t, p.q, np.zeros(self.system.nv)) for p in points]
        message = f"{events[-1].text}. {_NEXT[end.kind]}" if end is not None else ""
        if held:
            names = ", ".join(self.system.speeds[k] for k in held)
            message = f"{message} Idle: {names} kept at zero.".strip()
        status = "complete" if end is None else "stopped"
        warn_if_closed(self.system, poses, "the path goes on as if there were none. End the range there.")
        return Drive(
            self.system, c.labels, c.parameter, status, message, tuple(events), self._dataset(points),
            *self._raw(points), tuple(s.tolerated for s in systems), largest_open(zip(systems, poses, strict=True)),
        )  # fmt: skip

    def _turn_limits(self, x: Array) -> None:
        """Shift limits of angles by full turns so that they contain the start, or are nearest to it."""
        for label, (low, high) in self.limits.items():
            of, here = self.system.labels.coordinates[label], x[self.rows.labels.index(label)]
            turning = of.joint.spec.is_periodic(of.k)
            if turning and not low <= here <= high:  # limits more than a turn apart may contain it as they are
                turns = 2 * np.pi * np.round((here - (low + high) / 2) / (2 * np.pi))
                self.limits[label] = (low + turns, high + turns)

    # ------------------------------------------------------------------------------------------------ checks

    def _check(self, follower: Follower, start: State) -> tuple[int, ...]:
        """Raise if the inputs do not determine the motion, or contradict it; return idle speeds to keep at zero."""
        s, k = self.system, len(self.course.labels)
        J = self.rows(start.t, start.q, np.zeros(s.nv), np.zeros(len(self.rows.cut)))[1]
        D = follower.matrix(J)
        all_, loops = of_matrix(D), of_matrix(D[: s.nc])
        names = ", ".join(self.course.labels)
        freedoms = s.nv - loops.count
        if all_.count - loops.count < k:
            self._refuse_dependent(follower, start, D, loops.count, freedoms)
        left = s.nv - all_.count
        if left == 0:
            return ()
        found = mobility(s, start)
        if found.verdict == "singular here":
            raise LoopdynError(
                f"'{s.name}' starts at a change point, where {names} does not determine the branch. "
                "Start next to it: near=ld.assemble(system, q={...})."
            )
        N = np.linalg.svd(D)[2][all_.count :].T
        if len(found.idle) == left:
            return self._idle(N, left)
        moves = follower.gradients(J) * s.speed_units @ N / follower.all_units[:, None]
        shares = np.abs(moves).max(axis=1)
        moving = [label for label, x in zip(self.rows.labels, shares, strict=True) if x > SHARE * shares.max()]
        more = self._to_drive(moves, left)
        hint = f"for example {', '.join((names, *more))}" if more else "or add drivers to the model"
        listed = ", ".join(moving[:NAMED]) + (", ..." if len(moving) > NAMED else "")
        raise LoopdynError(
            f"{names} {'does' if k == 1 else 'do'} not determine the motion of '{s.name}': {left} of its {freedoms} "
            f"degrees of freedom {'is' if left == 1 else 'are'} left, in {listed}. "
            f"Drive {freedoms} coordinates, {hint}."
        )

    def _refuse_dependent(self, follower: Follower, start: State, D: Array, rank: int, freedoms: int) -> NoReturn:
        """Raise if inputs are dependent at the start: because it is a dead point, or at every pose."""
        s, names = self.system, ", ".join(self.course.labels)
        N = np.linalg.svd(D[: s.nc])[2][rank:] if s.nc else np.eye(s.nv)
        step = NEARBY * s.speed_units * (np.random.default_rng(0).normal(size=len(N)) @ N)
        nearby = project(s, State(start.t, increment(s, start.q, step), np.zeros(s.nv))).state
        J = self.rows(nearby.t, nearby.q, np.zeros(s.nv), np.zeros(len(self.rows.cut)))[1]
        there = follower.matrix(J)
        if of_matrix(there).count - of_matrix(there[: s.nc]).count == len(self.course.labels):
            raise LoopdynError(
                f"'{s.name}' starts at a dead point of {names}, from which it can move in two ways. Start next to it: "
                "near=ld.assemble(system, q={...}), or start: {q: {...}} in the model."
            )
        one = len(self.course.labels) == 1
        raise LoopdynError(
            f"'{s.name}' has {freedoms} degree{'' if freedoms == 1 else 's'} of freedom, but {names} "
            f"{'is' if one else 'are'} not independent: the loops, drivers or other inputs fix "
            f"{'it' if one else 'one of them'}. Drive other coordinates, or fewer."
        )

    def _to_drive(self, moves: Array, left: int) -> list[str]:
        """Coordinates that, if driven too, would determine the remaining motions; on the ground if possible."""
        from scipy.linalg import qr

        s = self.system
        grounded = {j.name for j in s.joints.values() if min(j.parent, j.child) < s.n_bases}
        scalar = [i for i, label in enumerate(self.rows.labels) if label in s.labels.scalars]
        standing = [i for i in scalar if s.labels.scalars[self.rows.labels[i]].joint.name in grounded]
        for among in (standing, scalar):
            if len(among) >= left and of_matrix(moves[among]).count == left:
                return [
                    self.rows.labels[among[i]] for i in qr(moves[among].T, pivoting=True, mode="economic")[2][:left]
                ]
        return []

    def _idle(self, N: Array, left: int) -> tuple[int, ...]:
        """Speeds of the tree that, kept at zero, stop the idle motions N; of ball joints if possible."""
        from scipy.linalg import qr

        s = self.system
        balls = [j.v0 + i for j in s.joints.values() if j.in_tree for i in j.spec.spins()]
        for among in (balls, list(range(s.nv))):
            if len(among) >= left and of_matrix(N[among]).count == left:
                chosen = qr(N[among].T, pivoting=True, mode="economic")[2][:left]
                return tuple(sorted(among[i] for i in chosen))
        return ()

    def _begins_dead(self) -> LoopdynError:
        """Error for a range that begins in a dead point of its inputs."""
        wanted = self._said(dict(zip(self.course.labels, self.course.start, strict=True)))
        return LoopdynError(
            f"'{self.system.name}' has a dead point at {wanted}, where the range begins, and can leave it in "
            "two ways. Begin next to it, or drive another coordinate through it."
        )

    def _unreachable(self, follower: Follower, end: CurveEnd) -> LoopdynError:
        """Error for a range that begins outside the reach of the mechanism."""
        wanted = self._said(dict(zip(self.course.labels, self.course.start, strict=True)))
        missing = np.abs((self.course.start - follower.inputs(end.s)[0]) / follower.input_units).max()
        if end.kind == "dead point" and missing < AT_START:
            return self._begins_dead()
        there = self._event(follower, end.kind, end.s, end.state, end.label, end.reason, end.value).text
        return LoopdynError(
            f"'{self.system.name}' cannot reach {wanted}, where the range begins: {there}. Begin within reach, "
            "or start from another pose or branch with near=ld.assemble(system, q={...})."
        )

    # ------------------------------------------------------------------------------------------------ results

    def _events(
        self, follower: Follower, path: list[CurvePoint], found: list[CurvePoint], end: CurveEnd | None
    ) -> list[DriveEvent]:
        """Events on a part of the path, in order."""
        last = found[-1].s if end is None and found else path[-1].s
        direction = 1.0 if path[-1].s >= path[0].s else -1.0
        monotonic = all((b.s - a.s) * direction >= 0.0 for a, b in itertools.pairwise(path))
        events: list[tuple[int, float, DriveEvent]] = []

        def add(kind: Kind, place: int, p: CurvePoint, label: str, reason: str = "") -> None:
            if monotonic and (p.s - last) * direction > 1e-12 * follower.unit:
                return  # beyond the end of the range: a point that was needed to pass a crossing
            value = float(p.x[self.rows.labels.index(label)]) if label else 0.0
            event = self._event(follower, kind, p.s, State(p.t, p.q, np.zeros(follower.nv)), label, reason, value)
            onward = 1.0 if place + 1 == len(path) or path[place + 1].s >= path[place].s else -1.0
            events.append((place, onward * p.s, event))

        for place, p, lost in follower.crossings(path):
            add("change point", place, p, "", "" if lost > 0 else "the inputs depend on each other there")
        for place, p, label in follower.turning_points(path):
            add("turning point", place, p, label)
        for place, p in enumerate(path):
            ended = end is not None and end.kind == "dead point" and abs(p.s - end.s) <= 1e-12 * follower.unit
            if _is_dead(p) and not ended and not (place and _is_dead(path[place - 1])):  # reached by the range itself
                add("dead point", place, p, "")
        events.sort(key=lambda e: e[:2])
        found_events = [e for _, _, e in events]
        if end is not None:
            found_events.append(self._event(follower, end.kind, end.s, end.state, end.label, end.reason, end.value))
        return found_events

    def _said(self, inputs: Mapping[str, float]) -> str:
        """Text with values of coordinates in declared units."""
        parts, units = [], self.system.units
        for label, value in inputs.items():
            dimension = self.system.labels.scalars[label].dimension
            parts.append(f"{label} = {value / units.factor(dimension):.9g} {units.symbol(dimension)}")
        return ", ".join(parts)

    def _event(
        self, follower: Follower, kind: Kind, s: float, state: State, label: str, reason: str, value: float = 0.0
    ) -> DriveEvent:
        """Event with its text; `value` is that of the coordinate that reverses or is at its limit."""
        u, _, _ = follower.inputs(s)
        inputs = dict(zip(self.course.labels, u.tolist(), strict=True))
        at = self._said(inputs) + (f", t = {s:.9g} s" if follower.moving else "")
        names = ", ".join(self.course.labels)
        if kind == "dead point":
            moving = self._moving_there(follower, state)
            own = dead_drivers(follower.system, state)[0]  # drivers of the model, which may stop before the inputs do
            stopped = "driver " + ", ".join(repr(n) for n in own) if own else names
            text = (
                f"dead point at {at}: {stopped} cannot go on, the loops would open; there {moving} can move without it"
            )
        elif kind == "turning point":
            limit = self._said({label: value})
            text = f"turning point of {label} at {at}: {limit} is a limit position, its ratio to {names} is zero"
        elif kind == "change point":
            why = reason or "rows of the loops become dependent and branches cross"
            text = f"change point at {at}: {why}"
        elif kind == "limit":
            text = f"limit of joint coordinate {self._said({label: value})} at {at}"
        elif kind == "end of a curve":
            text = f"end at {at}: {reason}"
        elif kind == "tolerance":
            text = f"end of the tolerance at {at}: {reason}"
        elif kind == "left open":
            text = f"other redundant constraints are left open from {at} on: {reason}"
        else:
            text = f"lost at {at}: the curve of closed poses cannot be followed"
        state = replace(state, tolerated=follower.system.tolerated, system=self.system)
        declared = self.system.in_units(inputs)
        at_value = declared[self.course.labels[0]] if self.course.parameter == "input" else float(s)
        return DriveEvent(kind, at_value, declared, label, text, state)

    def _moving_there(self, follower: Follower, state: State) -> str:
        """Coordinates that move at a dead point, where the inputs are stationary."""
        J = follower.rows(state.t, state.q, np.zeros(follower.nv), np.zeros(len(self.rows.cut)))[1]
        z = np.linalg.svd(follower.matrix(J))[2][follower.nv - 1]
        shares = np.abs(follower.gradients(J) @ (follower.units * z)) / follower.all_units
        moving = [label for label, x in zip(self.rows.labels, shares, strict=True) if x > SHARE * shares.max()]
        return ", ".join(moving[:NAMED]) + (", ..." if len(moving) > NAMED else "")

    def _without_derivatives(self, p: CurvePoint) -> CurvePoint:
        """Point with NaN derivatives except those of the inputs: at a dead point they may be unbounded."""
        own = [self.rows.labels.index(label) for label in self.course.labels]
        unknown = {name: np.full_like(getattr(p, name), np.nan) for name in ("v", "a", "ratio", "ratio2")}
        for name, values in unknown.items():
            values[own] = getattr(p, name)[own]
        return replace(p, regular=False, **unknown)

    def _raw(self, points: Sequence[CurvePoint]) -> tuple[Sampled, dict[str, Array]]:
        """Motion of the tree, and of cut joints by label, SI."""
        s, n = self.system, len(points)
        points = [self._without_derivatives(p) if _is_dead(p) else p for p in points]

        def stacked(name: str, size: int) -> Array:
            return np.array([getattr(p, name)[:size] for p in points], float).reshape(n, size)

        path = Sampled(
            np.array([p.t for p in points], float), stacked("q", s.nq), stacked("v", s.nv), stacked("a", s.nv)
        )
        columns = [(label, k, self.rows.labels.index(label)) for k, label in enumerate(self.rows.cut)]
        cut = {label: np.array([(p.near[k], p.v[i], p.a[i]) for p in points]).reshape(n, 3) for label, k, i in columns}
        return path, cut

    def _dataset(self, points: Sequence[CurvePoint]) -> xarray.Dataset:
        """Dataset of all results, with labels and declared units."""
        from loopdyn.quantities.labels import dataset

        s, c, rows = self.system, self.course, self.rows
        points = [self._without_derivatives(p) if _is_dead(p) else p for p in points]
        n, k, nl = len(points), len(c.labels), len(rows.labels)
        others = [k for k, label in enumerate(rows.cut) if label not in s.counted]
        coordinates = [*s.coordinates, *(rows.cut[k] for k in others)]
        q = np.array([[*p.q, *p.near[others]] for p in points]).reshape(n, len(coordinates))
        along = "time" if c.parameter == "time" else "sample"

        def stacked(name: str, *shape: int) -> Array:
            return np.array([getattr(p, name) for p in points], float).reshape(n, *shape)

        of = [s.labels.coordinates[label].dimension for label in coordinates]
        moved = [s.labels.speeds[label].dimension for label in rows.labels]
        driven = [s.labels.scalars[label].dimension for label in c.labels]
        one_in, one_out, names, inputs = factors(s, driven), factors(s, moved), symbols(s, moved), symbols(s, driven)
        by = one_in[0] if c.parameter == "input" else 1.0
        ratio = stacked("ratio", nl, k) / one_out[:, None] * one_in
        ratio2 = stacked("ratio2", nl, k, k) / one_out[:, None, None] * (one_in[:, None] * one_in)

        def by_parameter(rate: int) -> list[str]:
            if c.parameter == "time":
                return symbols(s, moved, rate)
            return names if c.parameter == "share" else [per(u, inputs[0], rate) for u in names]

        data = {
            "q": ((along, "coordinate"), q / factors(s, of), {"units": "coordinate_units"}),
            "v": ((along, "speed"), stacked("v", nl) / one_out * by, {"units": "speed_units"}),
            "a": ((along, "speed"), stacked("a", nl) / one_out * by**2, {"units": "acceleration_units"}),
            "ratio": ((along, "speed", "input"), ratio, {"units": "ratio_units"}),
            "ratio2": ((along, "speed", "input", "input2"), ratio2, {"units": "ratio_units per input_units"}),
            "quality": (along, stacked("quality"),
                        {"units": "1", "means": "smallest singular value of all rows and inputs"}),
            "regular": (along, np.array([p.regular for p in points], bool),
                        {"means": "false: a dead point, or interpolated at a change point, along the branch followed"}),
        }  # fmt: skip
        unit = {"input": inputs[0], "share": "1", "time": "s"}[c.parameter]
        coords = {
            "parameter": (along, stacked("s") / by, {"units": unit}),
            "time": (along, stacked("t"), {"units": "s"}),
            "input_value": ((along, "input"), stacked("u", k) / one_in, {"units": "input_units"}),
            "input": list(c.labels),
            "input2": list(c.labels),
            "coordinate": np.array(coordinates, str),
            "speed": np.array(rows.labels, str),
            "input_units": ("input", np.array(inputs, str)),
            "coordinate_units": ("coordinate", np.array(symbols(s, of), str)),
            "speed_units": ("speed", np.array(by_parameter(1), str)),
            "acceleration_units": ("speed", np.array(by_parameter(2), str)),
            "ratio_units": (("speed", "input"), np.array([[per(u, w, 1) for w in inputs] for u in names], str)),
        }
        return dataset(data, coords, {"name": s.name, "parameter": c.parameter})


def _is_dead(p: CurvePoint) -> bool:
    """Whether the inputs are at a dead point; points at crossings of branches are not regular either."""
    return p.regular and p.quality < CANDIDATE


_NEXT = {
    "dead point": "End the range before it, or drive another coordinate through it",
    "change point": "Begin a second range on the other side of it, from a pose on the intended branch",
    "limit": "Give a shorter range, or limits=False",
    "end of a curve": "Make the curve longer, or the range shorter",
    "tolerance": "Correct the dimensions that ld.assemble names without a tolerance, or allow a larger one",
    "lost": "Give more steps, or begin from another pose with near=...",
}


__all__ = ["drive"]
