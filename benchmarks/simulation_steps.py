"""Time of a step of `ld.Simulation` beside the compiled call that integrates it, in one run.

    python benchmarks/simulation_steps.py

Both make the same steps of 1 ms with inputs that jump at each. "call" is the bare compiled call on the arrays of the
simulation, its arguments included; "inside" is the time of such a step where thousands are made in one call. Medians of
single calls, in us; the load of the machine is printed, since other programs make all of them longer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

import loopdyn as ld

H, COUNT = 1e-3, 3000
ALLOWED = 15.0  # us, goal: a step over the compiled call


def five_bar() -> tuple[ld.Mechanism, list[str]]:
    """Five-bar with a motor on each crank."""
    m = ld.library.five_bar()
    return m, [m.add_motor(f"motor {joint}", joint, torque=0.0) for joint in ("A", "E")]


def pendulum() -> tuple[ld.Mechanism, list[str]]:
    """Pendulum with a motor."""
    m = ld.library.pendulum()
    return m, [m.add_motor("motor", "A", torque=0.0)]


def median(call: Callable[[int], object]) -> float:
    """Median time of a call, us."""
    found = np.empty(COUNT)
    for k in range(COUNT):
        tick = time.perf_counter()
        call(k)
        found[k] = time.perf_counter() - tick
    return 1e6 * float(np.median(found))


def measure(name: str, made: tuple[ld.Mechanism, list[str]]) -> None:
    """Print one line of the table."""
    mechanism, names = made
    system = mechanism.compile()
    inputs = [f if isinstance(f, str) else f.name for f in names]
    u = np.random.default_rng(0).uniform(-1.0, 1.0, (COUNT, len(inputs))).tolist()

    sim = ld.Simulation(system, inputs=inputs, step=H)
    for k in range(50):
        sim.step(u[k])
    whole = median(lambda k: sim.step(u[k]))

    sim.reset()
    stepper, out = sim._stepper, sim._out
    rest = stepper.weights, *stepper._event_functions, 10_000, *stepper._handed
    arguments = stepper.ints, stepper.floats, stepper.work, stepper.memory, stepper.method, out, *rest

    def bare(k: int) -> None:
        sim._inputs.set(u[k], k * H, (k + 1) * H)
        sim._inputs.write(sim._targets)
        stepper.law_jumped()
        stepper.aim((k + 1) * H)
        out.written[0], out.t[0] = 0, np.inf

    def call(k: int) -> float:
        bare(k)
        tick = time.perf_counter()
        stepper._chunk(*arguments)
        return time.perf_counter() - tick

    called = 1e6 * float(np.median([call(k) for k in range(COUNT)]))
    before = stepper.counts.steps
    stepper.allow(COUNT * H, COUNT * H + 10 * H)
    stepper.aim(2 * COUNT * H)
    tick = time.perf_counter()
    stepper._chunk(*arguments)
    inside = 1e6 * (time.perf_counter() - tick) / max(stepper.counts.steps - before, 1)
    over = whole - called
    verdict = "met" if over <= ALLOWED else "missed"
    print(f"{name:<10} step {whole:6.1f}   call {called:6.1f}   inside {inside:6.1f}   over it {over:5.1f}: {verdict}")


if __name__ == "__main__":
    print(f"us, medians of {COUNT}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; goal {ALLOWED:g} over it")
    measure("pendulum", pendulum())
    measure("five_bar", five_bar())
