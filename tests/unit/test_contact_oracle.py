"""Accelerations of contacts against an oracle in plain NumPy that enumerates active sets: tests/complementarity.py."""

from __future__ import annotations

import numpy as np
import pytest
from tests.complementarity import contact_accelerations, contact_impulses
from tests.independent import random_inertia

import loopdyn as ld
from loopdyn.contacts import Stop
from loopdyn.loops.one_sided import ContactState
from loopdyn.system.sides import sides_of

EACH = 20  # states of a mechanism
JOINTS = 7


def mechanism(seed: int) -> ld.System:
    """A random chain of pins and slides with stops at zero on most coordinates, in space."""
    rng = np.random.default_rng(seed)
    m = ld.Mechanism("chain", gravity=tuple(rng.normal(size=3) * 5))
    parent = m.ground
    for k in range(JOINTS):
        name, at = f"b{k}", rng.normal(size=3) * 0.5 + [0.4 * k, 0, 0]
        m.add_body(name, random_inertia(rng, at))
        joint = ld.Revolute if rng.random() < 0.6 else ld.Prismatic
        m.add_joint(f"J{k}", joint(axis=tuple(rng.normal(size=3))), parent, name, at=tuple(at))
        parent = name if rng.random() < 0.8 else m.ground
        if k < JOINTS - 2:
            side = {"lower": 0.0} if rng.random() < 0.5 else {"upper": 0.0}
            m.add_contact(f"s{k}", Stop(joint=f"J{k}", restitution=0.4, **side))
    return m.compile()


@pytest.mark.parametrize("first", [0, pytest.param(8, marks=pytest.mark.slow)])
def test_accelerations_and_impulses_of_random_states_are_those_of_the_oracle(first):
    """100 mechanisms, 8 of them in fast tests; five closed stops; the free coordinates and all speeds are random."""
    seeds = range(first, 100 if first else 8)
    worst, pressing, opening = 0.0, 0, 0
    for seed in seeds:
        system = mechanism(seed)
        rng = np.random.default_rng(1000 + seed)
        sides = sides_of(system)
        closed = list(range(len(sides)))
        for _ in range(EACH):
            q = np.zeros(system.nq)
            q[-2:] = rng.uniform(-1, 1, 2)
            v = np.zeros(system.nv)
            v[-2:] = 2 * rng.normal(size=2)
            gaps = ContactState(system, system, sides, system.state(q, v))
            found = gaps.pressing(closed)
            now = ld.terms(system, system.state(q, v))
            B = np.array([[s.sign * float(s.coordinate == f"J{k}") for k in range(JOINTS)] for s in sides])
            _, z, w = contact_accelerations(now.M, now.h, now.J, now.gamma, B, np.zeros(len(sides)))
            scale = np.abs(z).max() + np.abs(now.h).max()
            worst = max(worst, float(np.abs(found.force - z).max()) / scale)
            assert set(found.active) >= {k for k in closed if z[k] > 1e-9 * scale}
            # a side that neither presses nor opens counts as closed
            assert (np.abs(w[list(found.active)]) < 1e-8 * max(1.0, np.abs(w).max())).all()
            assert (w > -1e-8 * max(1.0, np.abs(w).max())).all()
            pressing, opening = pressing + len(found.active), opening + len(closed) - len(found.active)
            v = 2 * rng.normal(size=system.nv)
            v[: len(sides)] = -np.abs(v[: len(sides)]) * [s.sign for s in sides]  # all approach
            struck = ContactState(system, system, sides, system.state(q, v)).simultaneous(closed)
            after, _ = contact_impulses(now.M, now.J, B, v, 0.4)
            worst = max(worst, float(np.abs(struck.v - after).max() / np.abs(v).max()))
    assert worst < 1e-9  # rounding times the condition of the inertia matrix, some 1e5
    assert min(pressing, opening) > EACH * len(seeds)  # both happen
