"""Compile kernels in advance, so that no later call waits for them: ``loopdyn warm``.

Uses are compiled in the order in which a user needs them, by one process per core. A kernel that several uses need is
compiled once: a process that needs it while another compiles it waits (`engine.cache`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context

import numpy as np
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import loopdyn as ld
from loopdyn.engine import cache

# Uses of README's example, the demonstration, the tutorial and the gallery, in that order. Uses that share few kernels
# come first, so that all cores have work.
DEFAULT = ("elimination", "matrices", "steps", "corrections", "reactions", "accelerations", "runs")
MORE = (
    "singular passages",
    "reduction",
    "stiff runs",
    "partition",
    "closure",
    "momentum",
    "all formulations",
    "springs",
    "trees",
    "drive and statics",
    "events",
    "fixed steps",
    "contacts",
    "linear equations",
)


class Uses:
    """Computations of each use, on small mechanisms of the library."""

    def __init__(self) -> None:
        self.system = ld.library.four_bar().compile()
        self.state = self.system.state()
        # solvers write into theirs
        self.arrays = self.system.ints.copy(), self.system.floats.copy(), self.system.work()

    def run(self, **settings: object) -> object:
        """A short run."""
        return ld.simulate(self.system, self.state, (0.0, 0.02), t_eval=[0.01], progress=False, **settings)  # type: ignore[arg-type]

    def steps(self) -> None:
        """Steps with a solver that changes no speed: solvers are called by address, so all share these kernels."""
        from loopdyn.errors import LoopdynError
        from loopdyn.formulations.base import FunctionSolver, Solution, SolverKernels
        from loopdyn.integrators.loop import nothing
        from loopdyn.integrators.memory import Output
        from loopdyn.integrators.registry import chosen
        from loopdyn.integrators.stepper import Stepper

        system = self.system
        kernels = SolverKernels(nothing, nothing, *self.arrays, explain=lambda status: LoopdynError(""))
        still = FunctionSolver(lambda t, q, v: Solution(np.zeros(system.nv), np.zeros(system.nc)), kernels)
        stepper = Stepper(system, still, chosen("auto"), "projection", 0, 1e-6, 0.0)
        stepper.allow(0.0, 0.02)
        stepper.start(self.state, 0.02)
        q, v, a, work = (np.zeros((1, n)) for n in (system.nq, system.nv, system.nv, stepper.sources))
        none = np.zeros(1, np.int64)
        stepper.advance(Output(np.array([0.01]), q, v, a, work, steps=none, written=none.copy()), limit=10)

    def trees(self) -> None:
        """Functions of the tree, and motions and loads of joints."""
        from loopdyn.joints.dispatch import twists, wrenches
        from loopdyn.loops.sparse_steps import sparse_rows

        system, state = self.system, self.state
        ld.tree.open_tree_forward_dynamics(system, state)
        ld.tree.open_tree_inverse_dynamics(system, np.zeros(system.nv), state)
        ld.tree.terms(system, state)
        sparse_rows(system, state)  # of large systems, and for idle bodies
        ld.tree.open_tree_body_jacobian(system, system.bodies[-1], state)
        ld.tree.energy(system, state)
        ld.tree.body_motion(system, state)
        ld.tree.increment(system, state.q, state.v)
        ld.tree.difference(system, state.q, state.q)
        joint = next(iter(system.joints.values()))
        twists(joint.spec, np.eye(3), np.eye(3), joint.par)  # with bodies without inertia
        wrenches(joint.spec, np.eye(3), np.eye(3), joint.par)

    def passage(self) -> None:
        """Run through a singular pose, of a mechanism that folds flat."""
        flat = ld.library.n_four_bar(2).compile()
        ld.simulate(flat, ld.assemble(flat), (0.0, 1.0), progress=False)

    def springs(self) -> None:
        """Forces on joints, and all results of a run."""
        m = ld.library.four_bar()
        m.add_force("spring", ld.forces.JointSpring(joint="A", stiffness=1.0, damping=0.1))
        sprung = m.compile()
        at = sprung.state()
        ld.reactions(sprung, at)
        ld.accelerations(sprung, at, "absolute")
        ld.simulate(sprung, at, (0.0, 0.02), progress=False).data.load()

    def linear(self) -> None:
        """Kernels in complex numbers: derivatives of accelerations, points and loads."""
        m = ld.library.four_bar()
        m.add_motor("motor", "A", torque=0.0)
        system = m.compile()
        ld.linearize(system, inputs=["motor"], outputs=["A", system.topology.cuts[0] + ".speed", "motor.load", "A.fx"])

    def contacts(self) -> None:
        """A run with a stop that is closed at times."""
        m = ld.library.pendulum()
        m.add_contact("stop", ld.contacts.Stop(joint="A", lower=-0.1, upper=2.0))
        system = m.compile()
        ld.simulate(system, system.state(), (0.0, 1.0), progress=False)

    def statics(self) -> None:
        """Kinematic analysis, statics, inverse dynamics."""
        ld.equilibrium(self.system)
        ld.drive(self.system, "A", (0.0, 0.1))
        ld.inverse_dynamics(self.system, {"A": "t"}, (0.0, 0.1))


def uses() -> dict[str, Callable[[], object]]:
    """Computation of each use, by name."""
    from loopdyn.engine.pointers import pointer
    from loopdyn.formulations.registry import CLASSES
    from loopdyn.loops.elimination import passes

    on = Uses()
    system, state, run = on.system, on.state, on.run
    return {
        "elimination": lambda: pointer(passes.accelerate, *on.arrays),
        "matrices": lambda: ld.tree.terms(system, state),
        "steps": on.steps,
        "corrections": lambda: pointer(passes.correct, *on.arrays),
        "reactions": lambda: ld.reactions(system, state, np.zeros(system.nv)),
        "accelerations": lambda: ld.accelerations(system, state),
        "runs": lambda: run(),
        "singular passages": on.passage,
        "reduction": lambda: run(formulation="rcr"),
        "stiff runs": lambda: run(integrator="stiff"),
        "partition": lambda: run(formulation="partition"),
        "closure": lambda: run(formulation="closure"),
        "momentum": lambda: run(formulation="momentum"),
        "all formulations": lambda: [ld.accelerations(system, state, name) for name in CLASSES],
        "springs": on.springs,
        "trees": on.trees,
        "drive and statics": on.statics,
        "events": lambda: run(events=[ld.events.Crossing("a", coordinates={"a": "A"})]),
        "fixed steps": lambda: [
            run(integrator=each)
            for each in (ld.integrators.RK4(0.01), ld.integrators.ABM(0.01), ld.integrators.GeneralizedAlpha(0.01))
        ],
        "linear equations": on.linear,
        "contacts": on.contacts,
    }


def compile_use(name: str) -> str:
    """Compile the kernels of one use."""
    from loopdyn.engine.compile_notice import NOTICE

    NOTICE.said = True  # the progress line shows it
    uses()[name]()
    return name


def main(everything: bool = False) -> None:
    """Compile the default kernels, or those of all uses, with a line that counts kernels.

    Parameters
    ----------
    everything : bool
        Compile all that README, demonstration, tutorial and gallery use, not only `assemble`, `simulate` and
        `reactions`.

    Examples
    --------
    >>> DEFAULT[-1]
    'runs'
    """
    begin, there = time.perf_counter(), len(cache.entries())
    columns = (SpinnerColumn(), TextColumn("compiling kernels: {task.description}"), TimeElapsedColumn())
    # spawned, not forked: threads of libraries do not survive a fork
    with (
        Progress(*columns, transient=True) as progress,
        ProcessPoolExecutor(os.cpu_count() or 1, get_context("spawn")) as pool,
    ):
        from loopdyn.app import warm

        left = {pool.submit(warm.compile_use, name): name for name in DEFAULT + (MORE if everything else ())}
        task = progress.add_task("")
        while left:
            done, _ = wait(left, timeout=0.5, return_when="FIRST_COMPLETED")
            for one in done:
                one.result()
                del left[one]
            made = len(cache.entries()) - there
            progress.update(task, description=f"{made} ready; to come: {', '.join(left.values())}")
    made = len(cache.entries()) - there
    print(f"{made} kernels compiled in {time.perf_counter() - begin:.0f} s, kept in {cache.root()}")
