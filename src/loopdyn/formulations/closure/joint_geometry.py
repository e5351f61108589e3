"""Points and axes of joints at a pose, and the branch of a group at the pose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.formulations.closure import layout
from loopdyn.spatial.rotations import perpendicular_frame
from loopdyn.system.system import JointData, State, System
from loopdyn.tree.functions import Motion, body_motion

if TYPE_CHECKING:
    from loopdyn.formulations.closure.plan import ClosedFormGroup

Array = NDArray[np.float64]

PARALLEL = 1e-9  # largest sine of the angle between parallel axes, or cosine between perpendicular ones
APART = 1e-9  # smallest distance, relative to the mechanism's size, of pins that are not collinear
Line = tuple[JointData, JointData, int, int]  # two balls between the same parts, and their ends on the first of these


class JointGeometry:
    """Points and axes of joints at a pose, in world axes."""

    def __init__(self, system: System, state: State):
        self.system = system
        motion: Motion = body_motion(system, State(state.t, state.q, np.zeros(system.nv)))
        self.position, self.rotation = list(motion.position), list(motion.rotation)

    def add_line(self, line: Line) -> None:
        """Add two frames at the first ball of a line, one on each part; z is along the line."""
        j1, j2, e1, e2 = line
        for side in range(2):
            p, p2 = self.frame(j1, abs(e1 - side))[0], self.frame(j2, abs(e2 - side))[0]
            self.position.append(p)
            self.rotation.append(perpendicular_frame((p2 - p) / np.linalg.norm(p2 - p)).T)

    def frame(self, j: JointData, end: int) -> tuple[Array, Array]:
        """Origin and axes (columns) of the frame of a joint on its parent (0) or child (1)."""
        return j.frame(end, self.position, self.rotation)

    def axis(self, j: JointData) -> Array:
        """Axis of a hinge or a slide."""
        return self.frame(j, 0)[1][:, 2]

    def axes(self, j: JointData) -> tuple[Array, Array]:
        """Both axes of a universal joint, the first one in the parent, the second one in the child."""
        return self.frame(j, 0)[1][:, 0], self.frame(j, 1)[1] @ [*j.par, 0.0]

    def seen_from(self, body: int, point: Array, axes: Array | None = None) -> tuple[Array, Array]:
        """A point, and axes if it has some, as a frame on a body."""
        turned = np.eye(3) if axes is None else self.rotation[body].T @ axes
        return self.rotation[body].T @ (point - self.position[body]), turned

    def meet(self, joints: Sequence[JointData]) -> Array | None:
        """Common point of the axes of hinges, if they intersect and no two are parallel; else None."""
        axes, points = [self.axis(j) for j in joints], [self.frame(j, 0)[0] for j in joints]
        if any(np.linalg.norm(np.cross(a, b)) < PARALLEL for i, a in enumerate(axes) for b in axes[:i]):
            return None
        across = [np.eye(3) - np.outer(a, a) for a in axes]
        point = np.linalg.solve(np.sum(across, axis=0), np.sum([P @ x for P, x in zip(across, points, strict=True)], 0))
        off = max(float(np.linalg.norm(P @ (point - x))) for P, x in zip(across, points, strict=True))
        return point if off < APART * self.system.size else None

    def in_plane(self, hard: list[JointData], slides: list[JointData], soft: list[JointData]) -> bool:
        """Whether pins are parallel, and slides perpendicular to them."""
        axes = [self.axis(j) for j in hard]
        ways = [self.axis(j) for j in slides]
        if axes:
            n = axes[0]
        elif len(ways) == 2:
            n = np.cross(ways[0], ways[1])
            n = n / max(float(np.linalg.norm(n)), PARALLEL)
        else:
            return False
        axes += [self.axis(j) for j in soft if j.spec.type == "cylindrical"]
        parallel = all(np.linalg.norm(np.cross(n, a)) < PARALLEL for a in axes)
        return parallel and all(abs(n @ e) < PARALLEL for e in ways)

    def apart(self, kind: int, joints: Sequence[JointData]) -> bool:
        """Whether pins are not collinear, and slides not parallel."""
        if kind == layout.SLIDES:
            return float(np.linalg.norm(np.cross(self.axis(joints[1]), self.axis(joints[2])))) > PARALLEL
        n = self.axis(joints[0])
        pins = [self.frame(j, 0)[0] for j in (joints if kind == layout.PINS else joints[:2])]
        least = APART * self.system.size
        return all(float(np.linalg.norm(np.cross(n, p - q))) > least for i, p in enumerate(pins) for q in pins[:i])

    def sign(self, g: ClosedFormGroup, joints: Sequence[JointData]) -> float:
        """Branch of a group at this pose."""
        j1, j2, j3, j4 = (*joints, *joints)[:4]  # of fewer joints the first ones again
        a, A = self.frame(j1, g.ends[0])
        b, _ = self.frame(j2, 0)
        if g.kind == layout.PINS:
            c, _ = self.frame(j3, 0)
            determinant = A[:, 2] @ np.cross(b - a, c - b)
        elif g.kind == layout.ROD_PIN:
            c, _ = self.frame(j3, 0)
            determinant = A[:, 2] @ np.cross(b - a, c - a)
        elif g.kind == layout.SPHERE:
            determinant = self.axis(j2) @ np.cross(A[:, 2], self.axis(j3))
        elif g.kind == layout.HOOKED:
            first, second = self.axes(j2)
            u, v = (first, second) if g.ends[1] == 0 else (second, first)
            determinant = u @ np.cross(A[:, 2], v)
        elif g.kind == layout.LEVEL:
            determinant = (self.frame(j3, 0)[0] - a) @ np.cross(A[:, 2], self.axis(j2))
        elif g.kind == layout.TORUS:
            determinant = self._slope(j1, j2, j3, self.frame(j4, 0)[0], A[:, 2])
        elif g.kind == layout.POINTED:
            determinant = (b - a) @ np.cross(*self.axes(j1))
        elif g.kind == layout.ROD_SLIDE:
            c, _ = self.frame(j3, 0)
            determinant = (b - c) @ A[:, 2] * (1.0 if g.ends[0] == 0 else -1.0)
        elif g.kind == layout.SLIDE:
            still = 1 - g.ends[2]
            along = self.frame(j3, still)[1][:, 2] * (1.0 if still == 0 else -1.0)
            determinant = (b - a) @ along
        else:
            return 1.0
        return 1.0 if determinant >= 0.0 else -1.0

    def _slope(self, hinge: JointData, first: JointData, second: JointData, ball: Array, n: Array) -> Array:
        """Slope of F of :mod:`~loopdyn.formulations.closure.torus` as the ball turns about the axis of the hinge."""
        a1, a2, n1, n2 = self.frame(first, 0)[0], self.frame(second, 0)[0], self.axis(first), self.axis(second)
        N = np.cross(n1, n2)
        ss, cosine = N @ N, n1 @ n2
        foot = a1 + n1 * (np.cross(a2 - a1, n2) @ N) / ss
        foot2 = a2 + n2 * (np.cross(a2 - a1, n1) @ N) / ss
        w, arm, aa = ball - foot, ball - foot2, (foot2 - foot) @ (foot2 - foot)
        z = n1 @ w
        E, K = 0.5 * (w @ w + aa - arm @ arm), arm @ n2 - cosine * z
        gradient = ss * (E - aa) * w + aa * (ss * z - cosine * K) * n1
        slope: Array = gradient @ np.cross(n, ball - self.frame(hinge, 0)[0])
        return slope
