"""Compile all kernels once, so that later processes find them in the cache: ``python -m loopdyn.warm``."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


def main() -> None:
    """Compile every kernel that Python calls, with a progress line."""
    import numpy as np

    from loopdyn import library, tree
    from loopdyn._jit import CACHE_ROOT
    from loopdyn.elimination.solver import Elimination
    from loopdyn.formulations.registry import accelerations
    from loopdyn.notice import NOTICE
    from loopdyn.reactions import reactions
    from loopdyn.simulate import simulate

    system = library.four_bar().compile()
    state = system.state()
    jobs: dict[str, Callable[[], object]] = {
        "forward dynamics": lambda: tree.forward_dynamics(system, state),
        "inverse dynamics": lambda: tree.inverse_dynamics(system, state, np.zeros(system.nv)),
        "closure": lambda: tree.terms(system, state),
        "Jacobians": lambda: tree.body_jacobian(system, state, system.bodies[-1]),
        "energies": lambda: tree.energy(system, state),
        "body motion": lambda: tree.body_motion(system, state),
        "increments": lambda: tree.increment(system, state.q, state.v),
        "differences": lambda: tree.difference(system, state.q, state.q),
        "relative coordinates": lambda: accelerations(system, state, "relative"),
        "elimination": lambda: accelerations(system, state, "graph"),
        "coordinate reduction": lambda: simulate(system, state, (0.0, 0.1), formulation="rcr", progress=False),
        "partitioning": lambda: simulate(system, state, (0.0, 0.1), formulation="partition", progress=False),
        "correction": lambda: Elimination(system, state).project(state),
        "reactions": lambda: reactions(system, state, np.zeros(system.nv)),
        "stiff steps": lambda: simulate(system, state, (0.0, 0.01), integrator="stiff", progress=False),
        "steps": lambda: simulate(system, state, (0.0, 0.1), t_eval=[0.05], progress=False).data,
    }
    NOTICE.said = True  # the progress line says it
    begin = time.perf_counter()
    columns = (TextColumn("compiling kernels: {task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task("", total=len(jobs))
        for name, job in jobs.items():
            progress.update(task, description=name)
            job()
            progress.advance(task)
    print(f"kernels ready in {time.perf_counter() - begin:.0f} s ({CACHE_ROOT})")


if __name__ == "__main__":
    main()
