"""Tree dynamics compared with Pinocchio in one run: time and error of the articulated-body algorithm, growth, start-up.

    python benchmarks/tree.py [--quick] [--json FILE] [--markdown FILE]

Like is compared with like: a call from Python with Pinocchio's call from Python, with the state given in arrays.
Inside a compiled loop, where loopdyn's integrators call it, there is no call from Python to pay for; its ratio to
Pinocchio's call from Python is labelled so. Both engines do the same chain of revolute joints in generic orientation,
at the same state, and their calls alternate: what disturbs the machine disturbs both, and the shortest of many repeats
counts. Pinocchio has two conventions, local (its default) and world (faster here); both are shown.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from common import Figure, command_line, in_new_process, repeated, save, settings, shortest, show

import loopdyn as ld
from loopdyn.engine.jit import kernel
from loopdyn.engine.records import open_model, open_work
from loopdyn.tree.aba import aba, articulated_body

GRAVITY = (0.0, 0.0, -9.81)
ACCURATE = 1e-9  # relative difference of the accelerations of the two engines that the tests allow


# ------------------------------------------------------------------------------------------------ the chain, twice


Link = tuple[np.ndarray, np.ndarray, float, np.ndarray, np.ndarray]


def links(n: int) -> list[Link]:
    """Data of n bodies: offset from the previous joint, axis, mass, centre of mass from the joint, inertia."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n):
        axis = rng.normal(size=3)
        A = rng.normal(size=(3, 3))
        second = 0.01 * A @ A.T + 0.02 * np.eye(3)
        inertia = np.trace(second) * np.eye(3) - second
        found.append(
            (
                0.3 * rng.normal(size=3),
                axis / np.linalg.norm(axis),
                rng.uniform(0.5, 2),
                0.1 * rng.normal(size=3),
                inertia,
            )
        )
    return found


def loopdyn_chain(chain: list[Link]) -> ld.Mechanism:
    m = ld.Mechanism("chain", gravity=GRAVITY)
    parent, at = m.ground, np.zeros(3)
    for k, (offset, axis, mass, com, inertia) in enumerate(chain):
        at = at + offset
        body = m.add_body(f"b{k}", ld.Inertia(mass, (at + com).tolist(), inertia.tolist()))
        m.add_joint(f"j{k}", ld.Revolute(axis=axis.tolist()), parent, body, at=at.tolist())
        parent = body
    return m


def pinocchio_chain(chain: list[Link]):
    import pinocchio as pin

    model = pin.Model()
    model.gravity.linear = np.array(GRAVITY)
    joint = 0
    for k, (offset, axis, mass, com, inertia) in enumerate(chain):
        place = pin.SE3(np.eye(3), offset)
        joint = model.addJoint(joint, pin.JointModelRevoluteUnaligned(axis), place, f"j{k}")
        model.appendBodyToJoint(joint, pin.Inertia(mass, com, inertia), pin.SE3.Identity())
    return model


def state(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, tau; slow enough that the end of a long chain does not get too fast."""
    rng = np.random.default_rng(1)
    return rng.uniform(-np.pi, np.pi, n), rng.normal(size=n) / np.sqrt(n), rng.normal(size=n)


@kernel
def evaluate(ints, floats, work, times):
    """`times` evaluations inside one compiled loop; the state changes from one to the next."""
    model, data = open_model(ints, floats), open_work(ints, work)
    status = 0
    for k in range(times):
        data.q[0] += 1e-9 * (1 - 2 * (k % 2))
        status += articulated_body(model, data)
    return status


# ------------------------------------------------------------------------------------------------------ measuring


def beside_pinocchio(n: int, repeats: int, seconds: float) -> list[Figure]:
    """Time per body of one evaluation, of both engines."""
    import pinocchio as pin

    system, q, v, tau = loopdyn_chain(links(n)).compile(), *state(n)
    solve = ld.tree.TreeSolver(system)
    ints, floats, work = system.ints, system.floats, system.work()
    views = system.open_work(work)
    views.q[:], views.v[:], views.tau[:] = q, v, tau
    model = pinocchio_chain(links(n))
    data = model.createData()
    theirs = pin.aba(model, data, q, v, tau).copy()
    error = float(np.abs(solve(0.0, q, v, tau) - theirs).max() / np.abs(theirs).max())
    best = shortest(
        {
            "loop": lambda times: evaluate(ints, floats, work, times),
            "kernel": repeated(lambda: aba(ints, floats, work)),
            "solver": repeated(lambda: solve(0.0, q, v, tau)),
            "local": repeated(lambda: pin.aba(model, data, q, v, tau, pin.Convention.LOCAL)),
            "world": repeated(lambda: pin.aba(model, data, q, v, tau, pin.Convention.WORLD)),
        },
        repeats,
        seconds,
    )
    loop_goal, python_goal = {100: 0.4}.get(n), {10: 1.0, 100: 0.6}.get(n)
    figures = [
        Figure(f"n = {n}: Pinocchio, local convention (its default)", best["local"] / n * 1e6, "us per body"),
        Figure(f"n = {n}: Pinocchio, world convention", best["world"] / n * 1e6, "us per body"),
        Figure(f"n = {n}: loopdyn, compiled loop", best["loop"] / n * 1e6, "us per body", error=error),
        Figure(f"n = {n}: loopdyn, prepared call from Python", best["kernel"] / n * 1e6, "us per body", error=error),
        Figure(f"n = {n}: loopdyn, TreeSolver(t, q, v, tau)", best["solver"] / n * 1e6, "us per body", error=error),
    ]
    for peer in ("local", "world"):
        figures += [
            Figure(f"n = {n}: compiled loop / Pinocchio {peer}, from Python", best["loop"] / best[peer], "", loop_goal),
            Figure(f"n = {n}: prepared call / Pinocchio {peer}", best["kernel"] / best[peer], "", python_goal),
            Figure(f"n = {n}: TreeSolver / Pinocchio {peer}", best["solver"] / best[peer], "", python_goal),
        ]
    return figures


def growth(sizes: list[int], repeats: int, seconds: float) -> list[Figure]:
    """Time per body of chains of growing length, inside the compiled loop; sizes take turns, too."""
    calls = {}
    for n in sizes:
        system, (q, v, tau) = loopdyn_chain(links(n)).compile(), state(n)
        work = system.work()
        views = system.open_work(work)
        views.q[:], views.v[:], views.tau[:] = q, v, tau
        calls[str(n)] = lambda times, s=system, w=work: evaluate(s.ints, s.floats, w, times)
    best = shortest(calls, repeats, seconds)
    total = [best[str(n)] for n in sizes]
    exponent = float(np.polyfit(np.log(sizes), np.log(total), 1)[0])
    figures = [Figure(f"chain of {n}", t / n * 1e6, "us per body") for n, t in zip(sizes, total, strict=True)]
    return [*figures, Figure(f"growth exponent, {sizes[0]} to {sizes[-1]}", exponent, "", 1.05)]


# ------------------------------------------------------------------------------------------- in processes of their own


FIRST_RESULT = """
import loopdyn as ld
system = ld.library.four_bar().compile()
ld.tree.open_tree_forward_dynamics(system, system.state(q={"A": 0.1}, v={"A": 1.0}))
"""


def start_up(repeats: int) -> list[Figure]:
    """Wall time of whole processes, interpreter included, after one that has filled the caches."""
    codes = {"nothing": "", "import": "import loopdyn", "result": FIRST_RESULT}
    best = {}
    for name, code in codes.items():
        in_new_process(code)
        best[name] = min(in_new_process(code)[0] for _ in range(repeats))
    return [
        Figure("python that does nothing", best["nothing"], "s"),
        Figure("import loopdyn (warm)", best["import"], "s", 1.0),
        Figure("second process to its first result", best["result"], "s", 2.0),
    ]


def peak_memory() -> float:
    """Largest memory of this process so far, in GB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the process that started this one had at that time
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)


def report_large(n: int) -> None:
    """Build, compile and evaluate a chain; print times and the peak of memory (called in a process of its own)."""
    chain, (q, v, tau) = links(n), state(n)
    clocks = [(time.perf_counter(), time.process_time())]
    mechanism = loopdyn_chain(chain)
    clocks.append((time.perf_counter(), time.process_time()))
    system = mechanism.compile()
    clocks.append((time.perf_counter(), time.process_time()))
    a = ld.tree.open_tree_forward_dynamics(system, ld.State(0.0, q, v), tau)
    assert np.isfinite(a).all()
    print(json.dumps([*np.diff(clocks, axis=0).ravel().tolist(), peak_memory()]))


def large(n: int) -> list[Figure]:
    """Time to build and memory of a long chain."""
    _, output = in_new_process(f"import tree; tree.report_large({n})")
    describing, describing_cpu, compiling, compiling_cpu, peak = json.loads(output)
    return [
        Figure(f"chain of {n}: describing it", describing, "s"),
        Figure(f"chain of {n}: compile()", compiling, "s"),
        Figure(f"chain of {n}: model building in all", describing + compiling, "s", 30.0),
        Figure(f"chain of {n}: its processor time", describing_cpu + compiling_cpu, "s"),
        Figure(f"chain of {n}: peak memory of the process", peak, "GB", 2.0),
    ]


def main(arguments: list[str] | None = None) -> int:
    given = command_line(__doc__, arguments)
    quick = given.quick
    repeats, seconds = (20, 0.001) if quick else (300, 0.002)
    figures: list[Figure] = []
    for n in (10, 100) if quick else (10, 100, 300):
        figures += beside_pinocchio(n, repeats, seconds)
    figures += growth(
        [100, 300, 1000] if quick else [100, 300, 1000, 3000, 10_000, 30_000, 100_000], repeats // 6, seconds
    )
    figures += large(1000 if quick else 100_000)
    figures += start_up(1 if quick else 5)

    facts = settings(("pin", "numba", "llvmlite", "numpy"))
    show(figures, facts)
    save(figures, facts, given)
    wrong = [f.name for f in figures if f.error is not None and not f.error <= ACCURATE]
    if wrong:
        print(f"The engines differ by more than {ACCURATE:g}: {'; '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
