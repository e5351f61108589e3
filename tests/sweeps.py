"""Motions for plots without an integrator: the loops are closed at each of a sequence of given coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import xarray as xr

import loopdyn as ld

COMPONENTS = ("tx", "ty", "tz", "fx", "fy", "fz")


@dataclass
class Sweep:
    """The part of a run that plots and pages need."""

    system: ld.System
    data: xr.Dataset
    states: list[ld.State]

    def poses(self):
        motions = [ld.tree.body_motion(self.system, s) for s in self.states]
        return np.array([m.position for m in motions]), np.array([m.rotation for m in motions])

    def velocities(self):
        motions = [ld.tree.body_motion(self.system, s) for s in self.states]
        return np.array([m.velocity for m in motions]), np.array([m.angular_velocity for m in motions])

    def repeated(self, n: int) -> Sweep:
        """The same states repeated, at n successive times."""
        which = np.arange(n) % len(self.states)
        data = self.data.isel(time=which).assign_coords(time=np.linspace(0.0, 10.0, n))
        return Sweep(self.system, data, [self.states[k] for k in which])


def sweep(mechanism: ld.Mechanism, motion, times) -> Sweep:
    """Coordinates `motion(t)` -> (mapping of q, mapping of v) at each time; accelerations are those of free motion."""
    system = mechanism.compile()
    states, start = [], None
    for t in times:
        q, v = motion(t)
        state = ld.assemble(system, q=q, v=v, t=float(t), near=start)
        start = state
        states.append(state)
    solve = ld.prepare(system)
    a = np.array([solve(s.t, s.q, s.v).a for s in states])
    loads = [ld.reactions(system, s, a_s) for s, a_s in zip(states, a, strict=True)]
    energies = [ld.tree.energy(system, s) for s in states]
    residual = np.full(len(times), 1e-14)
    data = xr.Dataset(
        {
            "q": (("time", "coordinate"), np.array([s.q for s in states])),
            "v": (("time", "speed"), np.array([s.v for s in states])),
            "a": (("time", "speed"), a),
            "wrench": (("time", "joint", "component"), np.array([r.wrench for r in loads]), {"units": "N m, N"}),
            "wrench_unique": (("joint", "component"), np.all([r.unique for r in loads], axis=0)),
            "energy_kinetic": ("time", [e.kinetic for e in energies], {"units": "J"}),
            "energy_potential": ("time", [e.gravity for e in energies], {"units": "J"}),
            "energy_balance": ("time", residual, {"units": "J"}),
            "residual_position": ("time", residual),
            "residual_velocity": ("time", 3 * residual),
            "residual_acceleration": ("time", 10 * residual),
        },
        {
            "time": ("time", np.asarray(times, float), {"units": "s"}),
            "coordinate": list(system.coordinates),
            "speed": list(system.speeds),
            "joint": list(loads[0].joints),
            "component": list(COMPONENTS),
        },
    )
    return Sweep(system, data, states)


@cache
def four_bar(n: int = 41) -> Sweep:
    """The crank of the four-bar rocks by 0.9 rad to both sides, once in 2 s."""
    w = np.pi

    def motion(t):
        return {"A": 0.9 * np.sin(w * t)}, {"A": 0.9 * w * np.cos(w * t)}

    return sweep(ld.library.four_bar(), motion, np.linspace(0.0, 2.0, n))


@cache
def slider_crank(n: int = 41) -> Sweep:
    """One turn of the crank in 1 s."""
    w = 2 * np.pi
    return sweep(ld.library.slider_crank(), lambda t: ({"A": w * t}, {"A": w}), np.linspace(0.0, 1.0, n))


@cache
def platform(n: int = 5) -> Sweep:
    """The 6-UPS platform rises, sways and twists as its legs change their length, once in 4 s."""
    w = np.pi / 2

    def motion(t):
        phase = [w * t + k * np.pi / 3 for k in range(6)]
        q = {f"P{k + 1}": 0.05 * np.sin(p) - 0.05 * np.sin(k * np.pi / 3) for k, p in enumerate(phase)}
        return q, {f"P{k + 1}": 0.05 * w * np.cos(p) for k, p in enumerate(phase)}

    return sweep(ld.library.stewart_6ups(), motion, np.linspace(0.0, 4.0, n))
