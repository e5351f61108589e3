"""Derivatives of joint reactions: multipliers of the mechanism with every body free and every joint cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.derivatives import STEP, Derivatives
from loopdyn.analysis.linear_inputs import LinearInput
from loopdyn.engine import records as rec
from loopdyn.errors import LoopdynError
from loopdyn.joints.base import COMPONENTS
from loopdyn.loops.free_bodies import free_state, free_system
from loopdyn.loops.rank import scaled
from loopdyn.results.measures import Path, motions_along
from loopdyn.system.measures import Quantity
from loopdyn.system.system import State, System
from loopdyn.thresholds import CANDIDATE
from loopdyn.tree.functions import Motion, body_motion, difference

Array = NDArray[np.float64]


class FreeReactions:
    """Reactions and their derivatives at a state.

    Parameters
    ----------
    at : Derivatives
        Of the mechanism itself.
    """

    def __init__(self, at: Derivatives):
        system = at.system
        if np.any(system.model.armature) or any(
            f.acts_on == rec.ON_COORDINATES for f in system.mechanism.forces.values()
        ):
            raise LoopdynError(
                f"reactions of '{system.name}' have no derivatives here: it has rotors, or forces on several "
                "coordinates. Take other outputs."
            )
        if system.mechanism.user_forces:
            raise LoopdynError(f"reactions of '{system.name}' have no derivatives here: it has user forces.")
        self.tree, free = at, free_system(system)
        there = free_state(system, body_motion(system, at.state))
        self.at = Derivatives(free, State(at.state.t, there.q, there.v))
        J = scaled(free, self.at.terms.J)
        U = np.linalg.svd(J)[0][:, self.at.rank.count :]
        self.unique = np.abs(U).max(axis=1, initial=0.0) < CANDIDATE

    def _row(self, quantity: Quantity) -> int:
        """Row of a component; -1 for a freedom of its joint, which carries nothing."""
        free = self.at.system
        label = f"{quantity.name}.{COMPONENTS[quantity.index]}" if quantity.kind == "reaction" else quantity.name
        if label not in free.constraint_rows:
            spec = self.tree.system.joints[quantity.name].spec
            if not set(spec.rows_when_cut) <= set(COMPONENTS):
                raise LoopdynError(f"output '{label}': loads of a {spec.label} have no derivatives here. Take others.")
            return -1
        row = free.constraint_rows.index(label)
        if not self.unique[row]:
            raise LoopdynError(
                f"output '{label}' is statically indeterminate: redundant constraints share this load as they please. "
                "Take a determined one: print(ld.reactions(system, state))."
            )
        return row

    def value(self, quantity: Quantity) -> float:
        """Value of a component, SI."""
        row = self._row(quantity)
        return float(self.at.lam[row]) if row >= 0 else 0.0

    def component(self, quantity: Quantity, path: Path, given: LinearInput | None) -> Array:
        """Derivatives of a component along the states of a path in complex numbers, SI."""
        free, row = self.at.system, self._row(quantity)
        if row < 0:
            return np.zeros(len(path.t))
        motions = motions_along(self.tree.system, path)
        xi, dv = np.zeros((free.nv, len(motions))), np.zeros((free.nv, len(motions)))
        for k, motion in enumerate(motions):
            self._moved(motion, xi[:, k], dv[:, k])
        if given is not None and given.by is not None:  # the bodies are elsewhere at the same coordinates of the tree
            both = given.by(self.tree.system, self._placed)[:, None]
            xi, dv = xi + both[: free.nv], dv + both[free.nv :]
        change = self.at.along(xi, dv)
        if given is not None:
            change = change + given.changes(self.at)
        found: Array = self.at.solve(change.balance, change.bias)[1][row]
        return found

    def _placed(self, other: System) -> Array:
        """Motion from the free bodies to those of another system at the same state of the tree, and their speeds."""
        there, here = free_state(other, body_motion(other, self.tree.state)), self.at
        return np.concatenate([difference(here.system, here.state.q, there.q), there.v])

    def _moved(self, motion: Motion, xi: Array, dv: Array) -> None:
        """Changes of the coordinates and speeds of the free bodies, from the imaginary parts of a motion."""
        free, rows = self.at.system, {name: k for k, name in enumerate(motion.bodies)}
        base = motion.position[0].real
        w0, v0 = motion.angular_velocity[0].real, motion.velocity[0].real
        for j in free.joints.values():
            if not j.in_tree:
                continue
            k = rows[free.bodies[j.body]]
            R = motion.rotation[k]
            turn = R.real.T @ R.imag
            xi[j.v0 : j.v0 + 3] = np.array([turn[2, 1], turn[0, 2], turn[1, 0]]) / STEP
            xi[j.v0 + 3 : j.v0 + 6] = R.real.T @ motion.position[k].imag / STEP
            omega = R.T @ (motion.angular_velocity[k] - w0)
            velocity = R.T @ (motion.velocity[k] - v0 - np.cross(w0, motion.position[k] - base))
            dv[j.v0 : j.v0 + 3], dv[j.v0 + 3 : j.v0 + 6] = omega.imag / STEP, velocity.imag / STEP
