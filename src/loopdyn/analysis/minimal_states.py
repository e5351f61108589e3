"""States of a closed mechanism in minimal coordinates, and the motion of the whole along each of them.

Positions of a joint with a quaternion are perturbed by a rotation vector in axes of F, where a wheel that rolls
straight on has constant derivatives; its speeds are then those of M in axes of F. In these axes ("F" below)

    y = T xi                     increments;   T rotates those of M into axes of F, one for scalar joints
    s = T dv + X y               change of T v, since T turns with M: X y = y_rotation x T v
    dy/dt = s + W y              W y = omega x y for rotation vectors, zero for all others

A closed pose has m positions, a closed motion n speeds (fewer with rows that constrain velocities only). Along
each state

    J_h y = 0,     J T^T s = -(d(J v + phi_t)/dq) xi

so that speeds that are not independent turn with the pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.derivatives import Derivatives, TermsChange
from loopdyn.errors import LoopdynError, SingularityError
from loopdyn.formulations.partition import criteria
from loopdyn.loops.continuation import largest
from loopdyn.loops.rank import of_matrix, scaled
from loopdyn.quantities.wording import unknown
from loopdyn.system.system import System
from loopdyn.thresholds import CANDIDATE, CONSISTENT
from loopdyn.tree.functions import relative_pose

Array = NDArray[np.float64]

SPEED = ".speed"
RENAMED = {"w": "r", "v": "p"}  # speed "S.wx" of M in its own axes: rotation "S.rx", position "S.px" in axes of F


@dataclass(frozen=True)
class Perturbed:
    """Names and dimensions of all positions of a tree in axes of F, one for each speed."""

    names: tuple[str, ...]
    dimensions: tuple[str, ...]


def perturbed(system: System) -> Perturbed:
    """Names of positions: labels of scalar coordinates, "S.rx" and "S.px" of joints with a quaternion."""
    names, dimensions = list(system.speeds), []
    for label in system.speeds:
        of = system.labels.speeds[label]
        dimensions.append(of.dimension)
        if not of.scalar:
            own = of.joint.spec.speeds[of.k]
            names[of.place] = f"{of.joint.name}.{RENAMED[own[0]]}{own[1:]}"
    return Perturbed(tuple(names), tuple(dimensions))


@dataclass(frozen=True)
class VectorBlock:
    """Three speeds of a joint with a quaternion that are a vector in axes of M."""

    at: slice
    rotation: slice  # those of the joint's rotation
    R: Array  # axes of M in F, as columns
    omega: Array  # angular velocity of M in F, axes of F
    u: Array  # the speeds themselves, axes of F

    @property
    def turns(self) -> bool:
        """Whether it is the rotation itself."""
        return self.at == self.rotation


class Axes:
    """TermsChange between increments and speeds of a tree in its own axes and in those of F, at a state."""

    def __init__(self, at: Derivatives):
        system, v = at.system, at.state.v
        self.blocks: list[VectorBlock] = []
        for joint in system.joints.values():
            if not joint.in_tree or joint.spec.is_scalar():
                continue
            R = relative_pose(joint, at.terms.motion)[0]
            first = slice(joint.v0, joint.v0 + 3)
            omega = R @ v[first]
            for k in range(joint.v0, joint.v0 + len(joint.spec.speeds), 3):
                self.blocks.append(VectorBlock(slice(k, k + 3), first, R, omega, R @ v[k : k + 3]))

    def from_F(self, x: Array) -> Array:
        """T^T x for columns of x (nv, m)."""
        return self._turned(x, True)

    def to_F(self, x: Array) -> Array:
        """T x."""
        return self._turned(x, False)

    def _turned(self, x: Array, back: bool) -> Array:
        if not self.blocks:
            return x
        found = np.array(x)
        for b in self.blocks:
            found[b.at] = (b.R.T if back else b.R) @ x[b.at]
        return found

    def speeds(self, y: Array, s: Array) -> Array:
        """Changes dv of the speeds for changes s in axes of F, while the pose changes by y."""
        if not self.blocks:
            return s
        s = np.array(s)
        for b in self.blocks:
            s[b.at] -= np.cross(y[b.rotation], b.u[:, None], axis=0)
        return self.from_F(s)

    def rates(self, y: Array, s: Array) -> Array:
        """dy/dt."""
        if not self.blocks:
            return s
        found = np.array(s)
        for b in self.blocks:
            if b.turns:
                found[b.at] += np.cross(b.omega[:, None], y[b.at], axis=0)
        return found

    def acceleration(self, a: Array) -> Array:
        """Rates of the speeds in axes of F, for accelerations of the tree (nv,)."""
        if not self.blocks:
            return a
        found = self.to_F(a[:, None])[:, 0]
        for b in self.blocks:
            found[b.at] += np.cross(b.omega, b.u)
        return found

    def accelerations(self, a: Array, y: Array, s: Array, da: Array) -> Array:
        """Changes of :meth:`acceleration`; of R (a + omega x v): T da turns with y, omega x u by s."""
        if not self.blocks:
            return da
        found = self.to_F(da)
        still = self.to_F(a[:, None])
        for b in self.blocks:
            found[b.at] += np.cross(y[b.rotation], still[b.at], axis=0)
            found[b.at] += np.cross(s[b.rotation], b.u[:, None], axis=0)
            found[b.at] += np.cross(b.omega[:, None], s[b.at], axis=0)
        return found


@dataclass(frozen=True)
class Response:
    """Change of the whole mechanism along m directions; in axes of F: y, rates and accelerations in minimal states.

    Attributes
    ----------
    xi, dv, da : (nv, m) arrays
        Changes of coordinates, speeds and accelerations of the tree, SI.
    dlam : (nc, m) array
        Smallest changes of multipliers.
    rates : (states, m) array
        Changes of the rates of the minimal states.
    """

    xi: Array
    dv: Array
    da: Array
    dlam: Array
    rates: Array


class Chart:
    """Independent positions and speeds at a state.

    Parameters
    ----------
    at : Derivatives
    independent : sequence of str, optional
        Names of positions, and of speeds with ".speed" where there are fewer of them; by default the best ones by the
        projective criterion.

    Attributes
    ----------
    positions, speeds : list of int
        Places of the independent ones.
    Y, S : (nv, m) and (nv, n) arrays
        Changes of all positions, and of all speeds, per independent one, axes of F.
    """

    def __init__(self, at: Derivatives, independent: Sequence[str] | None = None):
        self.at, self.axes, system = at, Axes(at), at.system
        self.units, self.named = system.speed_units, perturbed(system)
        self.holonomic = system.holonomic
        J = self.axes.to_F(scaled(system, at.terms.J).T)  # columns: rows in axes of F, natural units
        speeds = self.axes.to_F(at.motions)
        H = J[:, self.holonomic]
        self._held: tuple[Array, Array, Array] | None = None  # singular values of the holonomic rows, where they differ
        poses = speeds
        if not self.holonomic.all():
            n = of_matrix(H.T).count
            U, s, Vt = np.linalg.svd(H.T)
            self._held, poses = (U[:, :n], s[:n], Vt[:n].T), Vt[n:].T
        self.positions, self.speeds = self._chosen(poses, speeds, independent)
        self.Y = self._basis(poses, self.positions)
        self.S = self._basis(speeds, self.speeds)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the states: independent positions, then independent speeds."""
        names = self.named.names
        return (*(names[k] for k in self.positions), *(names[k] + SPEED for k in self.speeds))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Dimensions of the states; of a speed that of its integral."""
        return tuple(self.named.dimensions[k] for k in (*self.positions, *self.speeds))

    # ------------------------------------------------------------------------------------------------- choice

    def _basis(self, motions: Array, chosen: list[int]) -> Array:
        """Basis (nv, k) of motions, SI, in which each chosen one is the change per one of them."""
        full = self.units[:, None] * motions
        return full @ np.linalg.inv(full[chosen]) if chosen else np.zeros((len(self.units), 0))

    def _chosen(self, poses: Array, speeds: Array, independent: Sequence[str] | None) -> tuple[list[int], list[int]]:
        if independent is not None:
            return self._named(poses, speeds, independent)
        W = self._criterion(speeds)
        chosen = criteria.best_set(W) if len(W) else []
        if poses is speeds:
            return chosen, chosen
        return _extended(self._criterion(poses), chosen), chosen

    def _criterion(self, motions: Array) -> Array:
        """Matrix W of the projective criterion; in natural units without inertia where the tree has none somewhere."""
        if not motions.shape[1]:
            return np.zeros((0, len(self.units)))
        M = self.axes.to_F(self.axes.to_F(self.at.terms.M * np.outer(self.units, self.units)).T)
        try:
            half = np.linalg.inv(np.linalg.cholesky(M))
        except np.linalg.LinAlgError:
            return motions.T
        return criteria.tangent(M, motions.T, (half**2).sum(axis=0))

    def _named(self, poses: Array, speeds: Array, independent: Sequence[str]) -> tuple[list[int], list[int]]:
        """Places of the positions and speeds that were chosen by name."""
        if isinstance(independent, str):
            raise LoopdynError(f"independent={independent!r} is a text. Give a list of names: [{independent!r}].")
        names, known = list(independent), self.named.names
        positions = [name for name in names if not name.endswith(SPEED)]
        rates = [name.removesuffix(SPEED) for name in names if name.endswith(SPEED)]
        for name in (*positions, *rates):
            if name in known:
                continue
            if name in self.at.system.labels.speeds:
                raise LoopdynError(
                    f"'{name}' belongs to a cut joint, or to a ball whose states are {', '.join(known[:6])}, ...: it "
                    "cannot be an independent coordinate here. Choose others, or compile with other cuts=[...]."
                )
            raise unknown("linearize", "coordinate", [name], known)
        p, v = poses.shape[1], speeds.shape[1]
        if len(set(names)) < len(names) or len(positions) != p or (rates and len(rates) != v):
            raise LoopdynError(
                f"'{self.at.system.name}' has {p} independent position{'' if p == 1 else 's'} and {v} independent "
                f"speed{'' if v == 1 else 's'} here, independent={names} names {len(set(positions))}. Name each once, "
                f"e.g. {self._suggestion(poses, speeds)}, or leave it out."
            )
        at = [known.index(name) for name in positions]
        chosen = [known.index(name) for name in rates]
        if not rates:
            chosen = at if p == v else [at[k] for k in criteria.best_set(self._criterion(speeds)[:, at])]
        for motions, places in ((poses, at), (speeds, chosen)):
            if len(places) and np.linalg.svd(motions[places], compute_uv=False)[-1] < CANDIDATE:
                raise SingularityError(
                    f"{', '.join(known[k] for k in places)} are not independent at this pose of "
                    f"'{self.at.system.name}'. Choose e.g. {self._suggestion(poses, speeds)}, or leave out independent."
                )
        return at, chosen

    def _suggestion(self, poses: Array, speeds: Array) -> str:
        places = self._chosen(poses, speeds, None)[0]
        return str([self.named.names[k] for k in places])

    # ----------------------------------------------------------------------------------------------- response

    def poses(self, phi: Array, source: str = "") -> Array:
        """Changes y of the pose for given changes (nc, m) of phi, the independent positions held."""
        h = self.holonomic
        if not np.any(phi):
            return np.zeros((len(self.units), phi.shape[1]))
        wanted = -np.where(h[:, None], phi, 0.0)
        if self._held is None:
            y = self.axes.to_F(self.at.smallest(wanted))
        else:
            U, s, V = self._held
            y = self.units[:, None] * (V @ ((U.T @ (wanted[h] / self.at.rows[h, None])) / s[:, None]))
        left = (self.at.terms.J @ self.axes.from_F(y) - wanted)[h] / self.at.rows[h, None]
        if largest(left) > CONSISTENT * largest(wanted / self.at.rows[:, None]):
            raise LoopdynError(
                f"'{self.at.system.name}' cannot follow a change of {source or 'this input'}: redundant rows "
                "contradict each other when it changes (a parallelogram stays one if two lengths change together). "
                "Make the others depend on it by a parameter, or leave it out."
            )
        return y - self.Y @ y[self.positions]

    def response(self, y: Array, s: Array, given: TermsChange | None = None, moving: bool = True) -> Response:
        """TermsChange of everything along poses y (nv, m) and independent speeds s (n, m), axes of F.

        `given` are changes of balance and rows that are due to inputs. Without `moving` rows do not depend on time, and
        speeds are zero: rates of rows do not change with the pose.
        """
        at, axes = self.at, self.axes
        xi = axes.from_F(y)
        rate = np.zeros((at.system.nc, y.shape[1]))
        if moving and np.any(y):
            rate = at.rates(xi, axes.speeds(y, np.zeros_like(y)))
        if given is not None:
            rate = rate + given.rate
        all_speeds = self.S @ s
        if np.any(rate):
            part = axes.to_F(at.smallest(-rate))
            all_speeds = all_speeds + part - self.S @ part[self.speeds]
        dv = axes.speeds(y, all_speeds)
        change = at.along(xi, dv)
        if given is not None:
            change = change + given
        da, dlam = at.solve(change.balance, change.bias)
        rates = axes.rates(y, all_speeds)[self.positions]
        accelerations = axes.accelerations(at.a, y, all_speeds, da)[self.speeds]
        return Response(xi, dv, da, dlam, np.vstack([rates, accelerations]))

    def states(self) -> Response:
        """Response to each state."""
        nv, m, n = len(self.units), len(self.positions), len(self.speeds)
        still = self.is_still
        poses = self.response(self.Y, np.zeros((n, m)), moving=not still)
        speeds = self.response(np.zeros((nv, n)), np.eye(n))
        pairs = ((getattr(poses, k), getattr(speeds, k)) for k in ("xi", "dv", "da", "dlam", "rates"))
        return Response(*(np.hstack(pair) for pair in pairs))

    @property
    def is_still(self) -> bool:
        """Whether nothing moves at the state, and no rate of a row depends on the pose there.

        Formulas of constraints are not examined: their rates may be zero at this pose alone.
        """
        now, state, m = self.at.terms, self.at.state, self.at.system.mechanism
        return not (state.v.any() or now.phi_t.any() or m.base or m.constraints)

    def rates(self) -> Array:
        """Rates of the states at the state itself: speeds, and accelerations."""
        u = self.axes.to_F(self.at.state.v[:, None])[:, 0]
        return np.concatenate([u[self.positions], self.axes.acceleration(self.at.a)[self.speeds]])


def _extended(W: Array, chosen: list[int]) -> list[int]:
    """Set of as many columns of W as it has rows that contains those chosen, by pivots."""
    W = W.copy()
    found: list[int] = []
    for _ in range(len(W)):
        lengths = (W**2).sum(axis=0)
        lengths[found] = -1.0
        left = [k for k in chosen if k not in found]
        j = left[0] if left else int(np.argmax(lengths))
        found.append(j)
        W -= np.outer(W[:, j], W[:, j] @ W) / lengths[j]
    return sorted(found)
