"""Compile kernels once, so that later processes find them in the cache: ``python -m loopdyn.warm``.

Trees, reactions, accelerations by all formulations but `closure`, and runs of the default: what is missing is compiled
where it is first used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

# What is compiled in one process, one after another; the longest first. Kernels that several of them use are compiled
# more than once where they run side by side, so what shares much is together.
CHAINS = {
    "minimal coordinates": (
        "trees",
        "relative coordinates",
        "partitioning",
        "coordinate reduction",
        "momentum steps",
        "reactions",
    ),
    "steps and elimination": ("elimination", "correction", "steps", "stiff steps"),
}


def compile_chain(name: str) -> str:
    """Compile the kernels of one chain."""
    import numpy as np

    from loopdyn import library, tree
    from loopdyn.elimination.probing import answer
    from loopdyn.elimination.solver import Elimination
    from loopdyn.formulations.momentum import MomentumSolver
    from loopdyn.formulations.oracle import Oracle
    from loopdyn.formulations.registry import accelerations
    from loopdyn.notice import NOTICE
    from loopdyn.rank import decide
    from loopdyn.reactions import reactions
    from loopdyn.simulate import simulate

    NOTICE.said = True  # the progress line says it
    system = library.four_bar().compile()
    state = system.state()

    def trees() -> None:
        tree.forward_dynamics(system, state)
        tree.inverse_dynamics(system, state, np.zeros(system.nv))
        tree.terms(system, state)
        tree.body_jacobian(system, state, system.bodies[-1])
        tree.energy(system, state)
        tree.body_motion(system, state)
        tree.increment(system, state.q, state.v)
        tree.difference(system, state.q, state.q)

    def momentum() -> None:
        rank = decide(system, state)  # accelerations by the oracle, which has nothing to compile
        MomentumSolver(system, rank, Oracle().prepare(system, rank), 2).step(0.0, state.q, state.v, 1e-3)

    def elimination() -> None:
        accelerations(system, state, "graph")
        answer(*Elimination(system, state).arrays)

    jobs: dict[str, Callable[[], object]] = {
        "trees": trees,
        "relative coordinates": lambda: accelerations(system, state, "relative"),
        "elimination": elimination,
        "correction": lambda: Elimination(system, state).project(state),
        "reactions": lambda: reactions(system, state, np.zeros(system.nv)),
        "steps": lambda: simulate(system, state, (0.0, 0.1), t_eval=[0.05], progress=False).data,
        "stiff steps": lambda: simulate(system, state, (0.0, 0.01), integrator="stiff", progress=False),
        "momentum steps": momentum,
        "partitioning": lambda: accelerations(system, state, "partition"),
        "coordinate reduction": lambda: accelerations(system, state, "rcr"),
    }
    for job in CHAINS[name]:
        jobs[job]()
    return name


def main() -> None:
    """Compile the chains side by side, with a progress line."""
    from loopdyn import warm
    from loopdyn.engine import cache

    begin = time.perf_counter()
    columns = (TextColumn("compiling kernels: {task.description}"), BarColumn(), TimeElapsedColumn())
    # spawned, not forked: threads of libraries do not survive a fork
    with (
        Progress(*columns, transient=True) as progress,
        ProcessPoolExecutor(min(len(CHAINS), os.cpu_count() or 1), get_context("spawn")) as pool,
    ):
        left = {pool.submit(warm.compile_chain, name): name for name in CHAINS}
        task = progress.add_task(", ".join(left.values()), total=len(CHAINS))
        for done in as_completed(list(left)):
            done.result()
            left.pop(done)
            progress.update(task, description=", ".join(left.values()), advance=1)
    print(f"kernels ready in {time.perf_counter() - begin:.0f} s ({cache.root()})")


if __name__ == "__main__":
    main()
