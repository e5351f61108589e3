"""`workspace`: positions that a body or point reaches over a grid of inputs, and where singular poses lie between.

The grid is traversed from its point nearest to the start, neighbour by neighbour, each time along the curve of closed
poses (:mod:`loopdyn.analysis.path_following`): no point is reached through an open loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.closed_motion import idle_only, input_map, require_closed, require_determined
from loopdyn.analysis.drive_inputs import straight_line
from loopdyn.analysis.measured_rows import MeasuredRows
from loopdyn.analysis.moving_parts import MovingPart, declared, part_of, speed_dimensions, unknown
from loopdyn.analysis.path_following import CurveEnd, CurvePoint, Follower
from loopdyn.errors import LoopdynError
from loopdyn.loops.continuation import zero_between
from loopdyn.loops.one_sided import warn_if_closed
from loopdyn.loops.rank import of_matrix
from loopdyn.results.workspace import SingularPoint, Workspace
from loopdyn.system.system import State, System
from loopdyn.thresholds import SAME_POSE
from loopdyn.tree.functions import apart, body_motion

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]
Node = tuple[int, ...]

MOST_POINTS = 1_000_000  # points of a grid at most: more is a mistake
LOCATED = 1e-10  # accuracy of a singular pose, as a fraction of the distance of two points of the grid
UNCONNECTED = "not connected to points that are reached"


def workspace(
    system: System,
    output: Any,
    *,
    inputs: str | Sequence[str],
    over: Any,
    near: State | None = None,
    limits: bool = True,
) -> Workspace:
    """Positions that a body or point reaches over a grid of inputs, and singular poses between points of the grid.

    Parameters
    ----------
    system : System
    output : str or (body, point)
        Body, for the origin of its frame, or a point of a body in world coordinates at the reference pose.
    inputs : str or sequence of str
        Joint coordinates that are driven; with the drivers of the model they must determine the motion of the output.
    over : sequence of ranges
        For each input ``(start, stop, n)`` or a list of values, in declared units.
    near : State, optional
        Closed state to start from, which decides the branch; by default the start of the model, assembled.
    limits : bool
        Whether joint limits are kept.

    Returns
    -------
    Workspace

    Examples
    --------
    >>> import loopdyn as ld
    >>> system = ld.library.five_bar().compile()
    >>> found = ld.workspace(system, ("BC", (0.5, -0.9, 0)), inputs=["A", "E"], over=[(-0.5, 0.5, 3), (-0.5, 0.5, 3)])
    >>> int(found.data["reached"].sum())
    9
    """
    labels = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    for label in labels:
        if label not in system.labels.scalars:
            raise unknown("joint coordinate", label, list(system.labels.scalars))
    part = part_of(system, output)
    if part.own is None:
        raise LoopdynError(f"'{part.name}' has no position. Name a body, or a body and a point.")
    grid = _grid(labels, over if not isinstance(inputs, str) or _several(over) else [over])
    start = assemble(system) if near is None else near
    system = system.for_state(start)
    require_closed(system, start)
    if not system.holonomic.all():
        raise LoopdynError(f"'{system.name}' has rows that constrain velocities only: positions depend on the path.")
    return _Sweep(system, part, labels, grid, start, limits).run()


def _several(over: Any) -> bool:
    """Whether ranges are given as a list of ranges."""
    return isinstance(over, Sequence) and len(over) == 1 and np.ndim(over[0]) == 1


def _grid(labels: tuple[str, ...], over: Any) -> list[Array]:
    """Values of each input, declared units."""
    hint = "Give (start, stop, n) or a list of values for each input."
    if not labels or not isinstance(over, Sequence) or isinstance(over, str) or len(over) != len(labels):
        raise LoopdynError(f"inputs and ranges do not correspond: {len(labels)} inputs. {hint}")
    found = []
    for label, given in zip(labels, over, strict=True):
        try:
            values = np.asarray(given, float)
        except (TypeError, ValueError, OverflowError):
            values = np.zeros(0)
        if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
            raise LoopdynError(f"the range of '{label}' is not clear. {hint}")
        if isinstance(given, tuple):
            if len(values) != 3 or values[2] != int(values[2]) or not 2 <= values[2] <= MOST_POINTS:
                raise LoopdynError(f"the range of '{label}' is not clear. {hint}")
            values = np.linspace(values[0], values[1], int(values[2]))
        found.append(values)
    if np.prod([float(len(x)) for x in found]) > MOST_POINTS:
        raise LoopdynError(f"the grid has more than {MOST_POINTS} points. Give fewer.")
    return found


class _Sweep:
    """One workspace: the grid in SI units, and what has been reached."""

    def __init__(
        self, system: System, part: MovingPart, labels: tuple[str, ...], grid: list[Array], start: State, limits: bool
    ):
        self.system, self.part, self.labels, self.grid, self.start = system, part, labels, grid, start
        self.factors = declared(system, speed_dimensions(system, labels))
        self.values = [x * f for x, f in zip(grid, self.factors, strict=True)]
        self.rows, self.limits = MeasuredRows(system), dict(system.limits) if limits else {}
        self.held = self._held()
        self.points: dict[Node, CurvePoint] = {}
        self.reasons: dict[Node, str] = {}
        self.dead: list[SingularPoint] = []

    def _held(self) -> list[int]:
        """Idle speeds that are kept at zero; raises if the inputs do not determine the motion of the output."""
        found = input_map(self.system, self.start, self.labels)
        require_determined(self.system, self.start, found, self.part)
        if not found.left.size:
            return []
        if not idle_only(self.system, self.start, found):
            every = MovingPart("all joints", self.system.speeds, speed_dimensions(self.system, self.system.speeds))
            require_determined(self.system, self.start, found, every)
        from scipy.linalg import qr

        return sorted(qr(found.left.T, pivoting=True, mode="economic")[2][: found.left.shape[1]].tolist())

    def follower(self, u0: Array, u1: Array) -> Follower:
        """Follower of the closed poses while the inputs move from u0 to u1 over the parameter from 0 to 1."""
        t = self.start.t
        return Follower(
            self.rows, self.labels, straight_line(u0, u1, 0.0, 1.0), 1.0, lambda s: t, False, self.held, self.limits
        )

    def at(self, node: Node) -> Array:
        """Inputs at a point of the grid, SI."""
        return np.array([values[k] for values, k in zip(self.values, node, strict=True)])

    def neighbours(self, node: Node) -> Iterator[Node]:
        """Points of the grid next to one."""
        for n, k in enumerate(node):
            for step in (1, -1):
                if 0 <= k + step < len(self.values[n]):
                    yield (*node[:n], k + step, *node[n + 1 :])

    def follow(self, p: CurvePoint, u1: Array) -> tuple[CurvePoint | None, CurveEnd | None]:
        """Point with inputs u1, reached from a point; or the end of the curve."""
        if not np.any(u1 != p.u):
            return p, None
        follower = self.follower(p.u, u1)
        found, _, end = follower.follow(follower.point(0.0, p.q, p.near), [1.0])
        return (found[0] if found and end is None else None), end

    def run(self) -> Workspace:
        """Traverse the grid, then locate singular poses."""
        zero = np.zeros(len(self.rows.cut))
        none = np.zeros(len(self.labels))
        still = self.follower(none, none)
        phi = self.rows(self.start.t, self.start.q, np.zeros(self.system.nv), zero)[0]
        here = still.coordinates(self.start.q, phi)[still.index]
        first = tuple(int(np.argmin(np.abs(values - x))) for values, x in zip(self.values, here, strict=True))
        p, end = self.follow(self.follower(here, here).point(0.0, self.start.q, zero), self.at(first))
        if p is None:
            where = ", ".join(f"{k} = {x[n]:g}" for k, x, n in zip(self.labels, self.grid, first, strict=True))
            reason = _reason(end)
            raise LoopdynError(f"the grid cannot be reached from the start: {reason} before {where}. Give near=...")
        self.points[first] = p
        queue = deque([first])
        while queue:
            node = queue.popleft()
            for other in self.neighbours(node):
                if other in self.points:
                    continue
                found, end = self.follow(self.points[node], self.at(other))
                if found is None:
                    self.reasons[other] = _reason(end)
                    self._note_dead(self.points[node].u, self.at(other), end)
                    continue
                self.points[other] = found
                self.reasons.pop(other, None)
                queue.append(other)
        velocities = {node: self._velocity(p) for node, p in self.points.items()}
        basis = self._basis(velocities)
        singular = [*self.dead, *self._crossings(velocities, basis)]
        data = self._dataset(velocities, basis)
        reached = (State(self.start.t, p.q, np.zeros(self.system.nv)) for p in self.points.values())
        warn_if_closed(self.system, reached, "points beyond it count as reached. Leave such inputs out.")
        return Workspace(self.system, self.part.name, self.labels, data, tuple(singular))

    # --------------------------------------------------------------------------------------- singular poses

    def _singular(self, kind: str, u: Array, q: Array) -> SingularPoint:
        state = State(self.start.t, q, np.zeros(self.system.nv), tolerated=self.system.tolerated)
        x = self.part.position(body_motion(self.system, state)) / self.system.units.factor("length")
        return SingularPoint(kind, dict(zip(self.labels, (u / self.factors).tolist(), strict=True)), x, state)

    def _note_dead(self, u0: Array, u1: Array, end: CurveEnd | None) -> None:
        if end is not None and end.kind == "dead point":
            self.dead.append(self._singular("type II", u0 + end.s * (u1 - u0), end.state.q))

    def _velocity(self, p: CurvePoint) -> Array:
        """Derivatives (3, k) of the position by the inputs, natural units."""
        pose = State(p.t, p.q, np.zeros(self.system.nv))
        units = np.where([d == "angle" for d in speed_dimensions(self.system, self.labels)], 1.0, self.system.size)
        O = self.part.rows(self.system, pose)[-3:]
        found: Array = O @ p.ratio[: self.system.nv] * units / self.system.size
        return found

    def _basis(self, velocities: dict[Node, Array]) -> Array | None:
        """Directions (3, k) in which the output moves, if they are as many as the inputs."""
        every = np.hstack(list(velocities.values()))
        if of_matrix(every).count != len(self.labels):
            return None
        found: Array = np.linalg.svd(every)[0][:, : len(self.labels)]
        return found

    def _crossings(self, velocities: dict[Node, Array], basis: Array | None) -> Iterator[SingularPoint]:
        """Poses of type I between neighbours whose determinants have different signs."""
        if basis is None:
            return
        signs = {node: float(np.linalg.det(basis.T @ v)) for node, v in velocities.items()}
        for node, p in self.points.items():
            for other in self.neighbours(node):
                if other < node or other not in signs or signs[node] * signs[other] >= 0.0:
                    continue
                end = self.follow(p, self.at(other))[0]
                if end is None or apart(self.system, end.q, self.points[other].q) > SAME_POSE:
                    continue  # on another branch
                yield self._crossing(p, self.at(other), basis)

    def _crossing(self, p: CurvePoint, u1: Array, basis: Array) -> SingularPoint:
        """Pose at which the determinant vanishes between two points."""

        def between(s: float) -> CurvePoint:
            return self.follow(p, p.u + s * (u1 - p.u))[0] or p

        def determinant(s: float) -> float:
            return float(np.linalg.det(basis.T @ self._velocity(between(s))))

        found = between(zero_between(determinant, 0.0, 1.0, LOCATED))
        return self._singular("type I", found.u, found.q)

    # ---------------------------------------------------------------------------------------------- results

    def _dataset(self, velocities: dict[Node, Array], basis: Array | None) -> xarray.Dataset:
        from loopdyn.quantities.labels import dataset

        shape, s = tuple(len(x) for x in self.grid), self.system
        position, quality, indicator = np.full((*shape, 3), np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
        reason = np.full(shape, UNCONNECTED, object)
        for node, text in self.reasons.items():
            reason[node] = text
        for node, p in self.points.items():
            motion = body_motion(s, State(p.t, p.q, np.zeros(s.nv)))
            position[node] = self.part.position(motion) / s.units.factor("length")
            quality[node], reason[node] = p.quality, ""
            if basis is not None:
                indicator[node] = np.linalg.det(basis.T @ velocities[node])
        symbols = [s.units.symbol(d) for d in speed_dimensions(s, self.labels)]
        coords: dict[str, Any] = {
            label: (label, x, {"units": u}) for label, x, u in zip(self.labels, self.grid, symbols, strict=True)
        }
        data = {
            "position": ((*self.labels, "xyz"), position, {"units": s.units.symbol("length")}),
            "reached": (self.labels, np.isfinite(position[..., 0])),
            "reason": (self.labels, reason.astype(str)),
            "quality": (self.labels, quality, {"units": "1"}),
            "indicator": (self.labels, indicator, {"units": "1"}),
        }
        return dataset(data, {**coords, "xyz": ["x", "y", "z"]}, {"name": s.name, "output": self.part.name})


def _reason(end: CurveEnd | None) -> str:
    """Reason why a point is not reached."""
    if end is None:
        return "lost"
    return f"limit of {end.label}" if end.kind == "limit" else end.kind
