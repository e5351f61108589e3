"""Random chains between random stops: nothing passes a stop, no contact pulls, no impact gains energy."""

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.contacts import Stop


def chain(rng: np.random.Generator, number: int) -> ld.System:
    """Two to four rods in a row, on pins and slides, each between two stops."""
    links, rules = int(rng.integers(2, 5)), ("simultaneous", "sequential")
    m = ld.Mechanism("chain", gravity=(0, -9.81, 0), impact=rules[number % 2])
    parent, x = "ground", 0.0
    for k in range(links):
        length, body = float(rng.uniform(0.3, 1)), f"b{k}"
        m.add_body(body, ld.Inertia.rod(mass=float(rng.uniform(0.2, 2)), start=(x, 0, 0), end=(x + length, 0, 0)))
        slides = rng.random() < 0.25
        axis = (float(rng.normal()), float(rng.normal()), 0.0) if slides else (0, 0, 1)
        joint = ld.Prismatic(axis=axis) if slides else ld.Revolute(axis=axis)
        m.add_joint(f"J{k}", joint, parent, body, at=(x, 0, 0))
        lower, upper = (float(rng.uniform(0.2, 1.5)) * (0.1 if slides else 1.0) for _ in range(2))
        restitution = (0.0, 0.5, 0.9, 1.0)[number % 4]
        m.add_contact(f"s{k}", Stop(joint=f"J{k}", lower=-lower, upper=upper, restitution=restitution))
        parent, x = body, x + length
    return m.compile()


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_random_chains_between_stops(count):
    """The sixth chain is one whose sequential impacts did not end: another gap than the fastest still closed."""
    rng, finished = np.random.default_rng(1), 0
    for number in range(count):
        system = chain(rng, number)
        run = ld.simulate(system, system.state(v=3.0 * rng.normal(size=system.nv)), (0, 2), progress=False)
        finished += run.status == "finished"
        for name in system.mechanism.contacts:
            assert run[f"{name}.gap"].min() > -1e-7  # the tolerance of the run, 1e-8, in rad or m
            assert run[f"{name}.force"].min() > -1e-6  # 1e-10 of the accelerations, in N of forces up to 1e3
        lost = [e.energy_loss for e in run.events if e.kind == "impact"]
        assert min(lost, default=0.0) > -1e-8
        assert run.energy_error < 1e-5
    assert finished >= 0.95 * count  # others end with the reason: a stop was passed unnoticed inside a step
