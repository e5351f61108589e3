"""Draw the pictures of momentum.md and print its tables (tests/literature/test_huang2002.py has the mechanisms).

python docs/theory/momentum_pictures.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from math import pi
from pathlib import Path
from time import perf_counter
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import loopdyn as ld

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.literature.test_huang2002 import (
    PASSAGES,
    READINGS,
    TARGETS,
    angles_of,
    change_point,
    energy,
    fall,
    freed,
    gain,
    passage,
    plane_block,
    plate,
    platform,
    solver,
)

HERE = Path(__file__).parent
NULLSPACE = ld.Absolute(solver="nullspace", dependent="svd")
TRUTH = np.array(TARGETS["double_pendulum"]["ref"]["y"][4])  # angles and rates of the double pendulum after 1 s


@cache
def by_null_space(h: float) -> tuple[ld.System, ld.State, float]:
    """Double pendulum after 1 s in the same coordinates by RK4 without projection; seconds that it took."""
    system, state = freed(ld.library.double_pendulum())
    options: dict[str, Any] = {"formulation": NULLSPACE, "drift": "none", "progress": False}
    start = perf_counter()
    run = ld.simulate(
        system, state, (0, 1), t_eval=[0, 1], integrator=ld.integrators.RK4(step=h), **options
    ).raise_if_failed()
    return system, ld.State(1.0, run.path.q[-1], run.path.v[-1]), perf_counter() - start


def angle_error(system: ld.System, state: ld.State) -> float:
    """Of the angles of the double pendulum after 1 s."""
    return float(np.abs((angles_of(system, state)[0] - TRUTH[:2] + pi) % (2 * pi) - pi).max())


def seconds(call: Callable[[], object], times: int = 50) -> float:
    """Of one call, the shortest of several."""
    call()
    found = []
    for _ in range(times):
        start = perf_counter()
        call()
        found.append(perf_counter() - start)
    return min(found)


def order_and_blow_up() -> None:
    """Error against step, and energy against time until it is lost."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
    steps = [4e-3, 2e-3, 1e-3, 5e-4]
    errors, gains = [], []
    print(
        "| step in ms | error of angles after 1 s | error of energy | gap | velocity in constrained directions |\n"
        "|---|---|---|---|---|"
    )
    for h in steps:
        system, states = fall(h, 1.0)
        terms = [(ld.terms(system, s), s.v) for s in states[:: round(0.02 / h)]]
        errors.append(angle_error(system, states[-1]))
        gains.append(max(abs(energy(system, s)) for s in states))
        gap, slip = max(np.abs(t.phi).max() for t, _ in terms), max(np.abs(t.J @ v).max() for t, v in terms)
        print(f"| {1e3 * h:g} | {errors[-1]:.4f} rad | {gains[-1]:.3f} J | {gap:.1e} m | {slip:.1e} m/s |")
    left.loglog(steps, errors, "o-", color="tab:red", label="huang2002")
    wide = [1.6e-2, 8e-3, 4e-3]
    left.loglog(
        wide, [angle_error(*by_null_space(h)[:2]) for h in wide], "s-", color="tab:blue", label="null space, RK4"
    )
    left.set(xlabel="step in s", ylabel="error of the angles after 1 s in rad")
    left.legend(frameon=False)
    for h, colour, dash in ((2e-3, "tab:orange", "-"), (1e-3, "tab:red", "--"), (5e-4, "tab:purple", "-.")):
        system, states = fall(h, 6.0)
        t, E = [s.t for s in states[1::5]], [abs(energy(system, s)) for s in states[1::5]]
        right.semilogy(t, E, dash, color=colour, label=f"{1e3 * h:g} ms, ends at {states[-1].t:.2f} s")
    right.set(xlabel="t in s", ylabel="error of the energy in J", ylim=(1e-3, 1e8))
    right.legend(frameon=False)
    for ax in (left, right):
        ax.grid(color="0.9")
    figure.savefig(HERE / "momentum_1.png", dpi=100)


def cost() -> None:
    """What a step of the one and an evaluation of the other take, and the linear algebra in them alone."""
    print(
        "| mechanism | rows | huang2002, a step | null space, an evaluation | elimination in (36) | SVD of the rows |"
    )
    print("|---|---|---|---|---|---|")
    mechanisms = {"double pendulum": ld.library.double_pendulum(), "platform": ld.library.stewart_3rrs()}
    for name, mechanism in mechanisms.items():
        system, state = freed(mechanism)
        paper, regular = solver(system, state), ld.prepare(system, NULLSPACE, state)
        matrix, right = paper.equations(state.t, state.q, state.v, 1e-3)
        J = ld.terms(system, state).J
        times = (
            seconds(lambda f=paper.step, s=state: f(s.t, s.q, s.v, 1e-3)),
            seconds(lambda f=regular, s=state: f(s.t, s.q, s.v)),
            seconds(lambda A=matrix, b=right: np.linalg.solve(A, b)),
            seconds(lambda J=J: np.linalg.svd(J)),
        )
        print(f"| {name} | {system.nc} | {' | '.join(f'{1e3 * x:.2f} ms' for x in times)} |")


def singular() -> None:
    """Singular values of the matrix of (36) through a change point, and the energy after it."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
    side = np.geomspace(1e-8, 0.6, 80)
    angles = np.concatenate([-side[::-1], [0.0], side])
    styles = {(0.0, 1e-3): "k-", (2.5, 1e-3): "r--", (25.0, 1e-2): "b:"}
    for (speed, h), style in styles.items():
        ratio = []
        for angle in angles:
            system, state = change_point((1.0, 0.5, 1.0, 0.5), float(angle), 1, speed)
            rows = solver(system, state).equations(0.0, state.q, state.v, h)[0]
            s = np.linalg.svd(plane_block(system, rows), compute_uv=False)
            ratio.append(s[-1] / s[0])
        left.semilogy(angles, ratio, style, label=f"{speed:g} rad/s, {1e3 * h:g} ms")
    left.set(xlabel="angle of the crank in rad", ylabel="smallest over largest singular value", ylim=(1e-17, 1))
    left.legend(frameon=False, loc="lower left")
    print("\n| linkage, branch | huang2002, 1 ms | 0.2 ms | null space with RK4, 3 ms | 4 ms |\n|---|---|---|---|---|")
    for name, (lengths, _, _) in PASSAGES.items():
        for side, dash in ((1, "-"), (-1, "--")):
            found = [f"{gain(*passage(name, side, h)):.2g}" for h in (1e-3, 2e-4)]
            found += [passage_by_null_space(name, side, h) for h in (3e-3, 4e-3)]
            print(f"| {lengths}, {side:+d} | {' | '.join(found)} |", flush=True)
            system, states = passage(name, side, 1e-3)
            E = [energy(system, s) / energy(system, states[0]) for s in states]
            look: dict[str, Any] = {"color": "tab:red"}
            if name != "parallelogram":
                look = {"color": "tab:orange", "marker": "o", "ms": 4, "mfc": "white", "markevery": 0.1}
            right.semilogy([s.t for s in states], E, dash, label=f"{lengths}, {side:+d}", **look)
    right.set(xlabel="t in s", ylabel="energy over that at the start", ylim=(0.5, 1e3))
    right.legend(frameon=False, fontsize=8)
    for ax in (left, right):
        ax.grid(color="0.9")
    figure.savefig(HERE / "momentum_2.png", dpi=100)


def passage_by_null_space(name: str, side: int, h: float) -> str:
    """Largest relative error of the energy, or when the run ends."""
    lengths, speed, end = PASSAGES[name]
    system, state = change_point(lengths, -1.0, side, speed)
    options: dict[str, Any] = {"formulation": NULLSPACE, "drift": "none", "progress": False}
    run = ld.simulate(system, state, (0, end), integrator=ld.integrators.RK4(step=h), **options)
    if run.status != "finished":
        return f"ends at {run.path.t[-1]:.2f} s"
    path = tuple(ld.State(*x) for x in zip(run.path.t, run.path.q, run.path.v, strict=True))
    return f"{gain(system, path):.2g}"


def platforms() -> None:
    """Height of the plate for both readings of the paper's table, beside regular runs at small tolerance."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained")
    looks: list[dict[str, Any]] = [
        {"color": "tab:blue"},
        {"color": "tab:green", "marker": "o", "ms": 5, "mfc": "white", "markevery": 50},
        {"color": "tab:red", "marker": "^", "ms": 6, "markevery": (25, 50)},
    ]
    for (name, (reading, g)), look in zip(READINGS.items(), looks, strict=True):
        system, states = platform(name)
        values = np.array([plate(system, s) for s in states])
        t = [s.t for s in states]
        label = f"reading {reading}, g = {g:g}"
        left.plot(t, values[:, 0], label=label, **look)
        right.plot(t, values[:, 1], label=label, **look)
        tree = ld.library.stewart_3rrs(reading).with_(g=g).compile()
        run = ld.simulate(tree, tree.state(), (0, t[-1]), t_eval=np.linspace(0, t[-1], 61), rtol=1e-10, progress=False)
        path = [plate(tree, ld.State(*x)) for x in zip(run.path.t, run.path.q, run.path.v, strict=True)]
        for ax, k in ((left, 0), (right, 1)):
            ax.plot(run.path.t, np.array(path)[:, k], "k:", lw=1.2)
    left.set(xlabel="t in s", ylabel="height of the plate in m")
    right.set(xlabel="t in s", ylabel="its rate in m/s", ylim=(-4, 1))
    left.legend(frameon=False)
    for ax in (left, right):
        ax.grid(color="0.9")
    figure.savefig(HERE / "momentum_3.png", dpi=100)


if __name__ == "__main__":
    cost()
    order_and_blow_up()
    platforms()
    singular()
