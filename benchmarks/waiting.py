"""What a user waits for, over the size of the mechanism: times of public calls, each with its error, as curves.

    python benchmarks/waiting.py [--quick] [--json FILE] [--markdown FILE] [--plot FILE]

The mechanism is `n_four_bar` of the library: N four-bars in a row, 2 N + 1 bodies. Its couplers only translate,
so that it is a pendulum with an inertia and a moment known in closed form: errors are those against this pendulum, and
the residual of the loops where a call closes them. Each call is measured as a second one, with compiled kernels; the
shortest of several repeats counts. Calls that prepare something do so again at each repeat.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import command_line, settings
from scipy.integrate import solve_ivp
from whole import seconds_of

import loopdyn as ld

SIZES = (1, 3, 10, 30, 100, 300)
ANGLE, SPAN, G = 0.3, 0.5, 9.81  # rad, s, m/s²: start upright, 0.3 rad aside, at rest
STYLES = {
    "compile": "o-",
    "assemble": "s--",
    "mobility": "^-.",
    "accelerations": "v:",
    "reactions": "D-",
    "simulate": "P--",
    "run.data": "X-.",
}

Row = dict[str, float | str | int]


def pendulum(n: int) -> tuple[float, float]:
    """Inertia and moment factor of N four-bars of 1 m and 1 kg: n + 1 cranks turn, n couplers translate."""
    return (n + 1) / 3 + n, G * ((n + 1) / 2 + n)


def state_of(system: ld.System, angle: float, speed: float) -> ld.State:
    """Closed state with all cranks at an angle; couplers keep their direction."""
    signs = {label: 1.0 if label.startswith("A") else -1.0 for label in system.coordinates}
    return system.state({x: s * angle for x, s in signs.items()}, {x: s * speed for x, s in signs.items()})


def end_of(n: int) -> float:
    """Angle of the pendulum after the run."""
    inertia, moment = pendulum(n)
    run = solve_ivp(lambda t, y: [y[1], moment / inertia * np.sin(y[0])], (0, SPAN), [ANGLE, 0.0], "DOP853",
                    rtol=1e-13, atol=1e-13)  # fmt: skip
    return float(run.y[0, -1])


def measured(n: int, repeats: int) -> list[Row]:
    """Times and errors of all calls for one size."""
    m = ld.library.n_four_bar(n)
    system = m.compile()
    start = state_of(system, ANGLE, 0.0)
    inertia, moment = pendulum(n)
    alpha = moment / inertia * np.sin(ANGLE)
    signs = np.array([1.0 if label.startswith("A") else -1.0 for label in system.speeds])
    close: Callable[[], ld.State] = lambda: ld.assemble(system, q={"A0": ANGLE})  # noqa: E731
    run = ld.simulate(system, start, (0.0, SPAN), progress=False)

    def again() -> ld.results.Run:
        return ld.simulate(system, start, (0.0, SPAN), progress=False)

    def tables() -> object:
        return again().data.load()

    errors = {
        "compile": np.nan,
        "assemble": np.abs(ld.terms(system, close()).phi).max(),
        "mobility": float(abs(ld.mobility(system, start).dof - 1)),
        "accelerations": np.abs(ld.accelerations(system, start) - signs * alpha).max() / alpha,
        "reactions": balance(system, start, n, alpha),
        "simulate": abs(run.path.q[-1][list(system.coordinates).index("A0")] - end_of(n)),
        "run.data": np.nan,
    }
    calls: dict[str, Callable[[], object]] = {
        "compile": m.compile,
        "assemble": close,
        "mobility": lambda: ld.mobility(system, start),
        "accelerations": lambda: ld.accelerations(system, start),
        "reactions": lambda: ld.reactions(system, start),
        "simulate": again,
    }
    times = {name: seconds_of(call, repeats) for name, call in calls.items()}
    times["run.data"] = max(seconds_of(tables, repeats) - times["simulate"], 0.0)
    bodies = 2 * n + 1
    return [
        {"call": c, "bodies": bodies, "seconds": times[c], "error": float(errors[c])}
        for c in calls | {"run.data": tables}
    ]


def balance(system: ld.System, state: ld.State, n: int, alpha: float) -> float:
    """Relative error of the sum of the ground's reactions: mass times acceleration of all bodies, minus weight."""
    found = ld.reactions(system, state)
    total = sum(found.wrench[found.joints.index(f"A{k}"), 3:] for k in range(n + 1))
    lever = (n + 1) / 2 + n  # sum of mass times distance from the pins of the cranks
    mass = 2 * n + 1
    expected = lever * alpha * np.array([-np.cos(ANGLE), -np.sin(ANGLE), 0.0]) + np.array([0.0, mass * G, 0.0])
    return float(np.abs(total - expected).max() / (mass * G))


def plot(rows: list[Row], path: Path) -> None:
    """Times and errors over the number of bodies; every call has its own marker and line style."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
    for k, (call, style) in enumerate(STYLES.items()):
        mine = [r for r in rows if r["call"] == call]
        x = np.array([r["bodies"] for r in mine], float)
        left.loglog(x, [1e3 * float(r["seconds"]) for r in mine], style, color=f"C{k}", ms=5, label=call)
        errors = np.array([r["error"] for r in mine], float)
        if np.isfinite(errors).all() and call != "mobility":
            right.loglog(x, np.maximum(errors, 1e-17), style, color=f"C{k}", ms=5, label=call)
    left.set(xlabel="bodies", ylabel="time of the call, ms", title="what a user waits for")
    right.set(xlabel="bodies", ylabel="error against the closed form", title="and how accurate it is")
    for ax in (left, right):
        ax.grid(alpha=0.3)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=len(STYLES))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def table(rows: list[Row]) -> str:
    """Markdown: a row per call, a column per size, time and error."""
    bodies = sorted({int(r["bodies"]) for r in rows})
    lines = ["| call | " + " | ".join(f"{n} bodies" for n in bodies) + " |", "|---" * (len(bodies) + 1) + "|"]
    for call in STYLES:
        cells = []
        for n in bodies:
            r = next(r for r in rows if r["call"] == call and r["bodies"] == n)
            error = float(r["error"])
            cells.append(f"{1e3 * float(r['seconds']):.3g} ms" + ("" if np.isnan(error) else f", {error:.0e}"))
        lines.append(f"| {call} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(given: list[str] | None = None) -> int:
    options = command_line(__doc__ or "", given, plot=True)
    sizes = SIZES[:3] if options.quick else SIZES
    rows = [row for n in sizes for row in measured(n, 2 if options.quick else 5)]
    facts = settings(["numpy", "numba"])
    print("\n".join(f"{k}: {v}" for k, v in facts.items()))
    print(table(rows))
    wrong = [r for r in rows if float(r["error"]) > 1e-6]
    if options.json:
        Path(options.json).write_text(json.dumps({"settings": facts, "rows": rows}, indent=1))
    if options.markdown:
        Path(options.markdown).write_text(table(rows) + "\n")
    if options.plot:
        plot(rows, Path(options.plot))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
