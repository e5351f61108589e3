"""Random chains, linkages and spatial loops with random stops and contacts of profiles.

Nothing passes a stop, no contact pulls, no impact gains energy.
"""

import numpy as np
import pytest

import loopdyn as ld
from loopdyn.constraints import CircleShape, LineShape, PolylineShape
from loopdyn.contacts import Contact, Stop


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


RESTITUTIONS = (0.0, 0.5, 0.9, 1.0)
Z = (0, 0, 1)


def linkage(rng: np.random.Generator, number: int) -> tuple[ld.System, ld.State]:
    """A four-bar, slider-crank or five-bar with a disc on its coupler above a floor, a peg or a box, and a stop."""
    m = ld.Mechanism("linkage", gravity=(0, -9.81, 0), impact=("simultaneous", "sequential")[number % 2])
    e, kind = RESTITUTIONS[number % 4], ("four-bar", "slider-crank", "five-bar")[number % 3]
    A, B = np.zeros(3), np.array([*rng.uniform(0.2, 0.5, 2), 0.0])
    C = B + [rng.uniform(0.5, 0.9), rng.uniform(-0.1, 0.3), 0]
    ends = {"crank": (A, B), "coupler": (B, C)}
    if kind == "slider-crank":
        ends["slider"] = (C, C + [0.1, 0, 0])
    else:
        D = C + [rng.uniform(0.1, 0.4), -rng.uniform(0.4, 0.8), 0]
        E = D + [rng.uniform(0.3, 0.6), rng.uniform(-0.2, 0.2), 0]
        ends |= {"rocker": (C, D)} | ({"link": (D, E)} if kind == "five-bar" else {})
    for name, (p, q) in ends.items():
        m.add_body(name, ld.Inertia.rod(mass=float(rng.uniform(0.2, 2)), start=tuple(p), end=tuple(q), radius=0.02))
    names = ["ground", *ends]
    for k, (p, _) in enumerate(ends.values()):
        m.add_joint("JKLM"[k], ld.Revolute(axis=Z), names[k], names[k + 1], at=tuple(p))
    last = list(ends.values())[-1][1]
    closing = ld.Prismatic(axis=(1, 0, 0)) if kind == "slider-crank" else ld.Revolute(axis=Z)
    m.add_joint("N", closing, "ground", names[-1], at=tuple(last))
    radius, centre = float(rng.uniform(0.05, 0.15)), B + rng.uniform(0.2, 0.8) * (C - B)
    depth = float(rng.uniform(0.05, 0.25))
    low = centre + [0, -radius - depth, 0]
    shapes = [
        LineShape(through=tuple(low), outward=(0, 1, 0)),
        CircleShape(centre=tuple(low - [0, 0.1, 0]), radius=0.1),
        PolylineShape(points=[tuple(low + x) for x in ([0.1, -0.2, 0], [0.1, 0, 0], [-0.1, 0, 0], [-0.1, -0.2, 0])]),
    ]
    shape, disc = shapes[int(rng.integers(3))], CircleShape(centre=tuple(centre), radius=radius)
    m.add_contact("profile", Contact(body1="ground", shape1=shape, body2="coupler", shape2=disc, restitution=e))
    lower, upper = rng.uniform(0.1, 1.0, 2)
    m.add_contact("stop", Stop(joint="J", lower=-float(lower), upper=float(upper), restitution=e))
    system = m.compile()
    return system, ld.assemble(system, v={"J": float(3 * rng.normal())})


def spatial(rng: np.random.Generator, number: int) -> tuple[ld.System, ld.State]:
    """A random closed mechanism in space whose hinges and slides have stops around the reference pose."""
    m = ld.library.random_mechanism(number, bodies=int(rng.integers(3, 7)), loops=int(rng.integers(1, 3)))
    names = [name for name, joint in m.joints.items() if joint.type in ("revolute", "prismatic")]
    for name in names[:3]:
        lower, upper = rng.uniform(0.05, 0.5, 2)
        e = RESTITUTIONS[number % 4]
        m.add_contact(f"stop {name}", Stop(joint=name, lower=-float(lower), upper=float(upper), restitution=e))
    system = m.compile()
    speeds = {label: float(rng.normal()) for label in system.speeds[:1]}
    try:
        return system, ld.assemble(system, v=speeds)
    except ld.errors.AssemblyError:  # the loops keep this joint from moving
        return system, ld.assemble(system)


def check_run(run: ld.results.Run, system: ld.System) -> None:
    """Nothing passes, pulls, gains energy or is NaN, however the run ended."""
    for name in system.mechanism.contacts:
        assert run[f"{name}.gap"].min() > -1e-7, name
        assert not run[f"{name}.force"].min() < -1e-6 * max(1.0, system.weight), name
    assert np.isfinite(run.path.q).all()
    assert np.isfinite(run.path.v).all()
    assert min((e.energy_loss for e in run.events if e.kind == "impact"), default=0.0) > -1e-8
    assert run.energy_error < 1e-5


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_random_closed_mechanisms_between_stops_and_profiles(count):
    rng, ended = np.random.default_rng(2), []
    for number in range(count):
        system, state = (spatial if number % 4 == 3 else linkage)(rng, number)
        run = ld.simulate(system, state, (0, 1), progress=False)
        check_run(run, system)
        if run.status != "finished":
            ended.append((number, run.message))
    assert len(ended) <= 0.05 * count, ended
