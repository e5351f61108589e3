"""Size, time and error of the equations of Mufti 1983 for 3 to 100 bodies, dense and sparse.

The comparison that the report's conclusion calls for. Run it with ``python benchmarks/absolute.py``; with
``--write`` the table and the plot of ``docs/theory/absolute.md`` are updated.

Each time is the best of several, from lever arms, velocities and loads to all accelerations and constraint loads.
The error is the largest difference from a solution of eq. (10), (49) or (63) refined with residuals in extended
precision, over the largest acceleration. All on one core.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported: one core for all methods

import numpy as np
from scipy.linalg import block_diag

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.literature import mufti1983 as mufti  # the report, equation by equation

SIZES = (3, 5, 10, 20, 50, 100)
PAGE = Path(__file__).parents[1] / "docs" / "theory" / "absolute.md"
BEGIN, END = "<!-- table of benchmarks/absolute.py -->", "<!-- end of table -->"


def mechanism(n, kind):
    """A random tree of n bodies: ball joints; every second one a pin; or ball joints with n // 3 loops closed."""
    rng = np.random.default_rng(n)
    arcs = [(int(rng.integers(max(0, i - 3), i)), i) for i in range(1, n)]
    A = rng.normal(size=(n, 3, 3))
    second = 0.02 * A @ A.transpose(0, 2, 1) + 0.005 * np.eye(3)
    W = np.zeros((n, 3))
    W[0] = rng.normal(size=3)
    P, P_dot, Q, Q_dot, rates = [], [], [], [], []
    for j, (plus, minus) in enumerate(arcs):
        if kind == "pins" and j % 2:
            frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            axes, across = frame[:, :1], frame[:, 1:]
            turn, turn_across = np.cross(W[plus], axes.T).T, np.cross(W[plus], across.T).T
        else:
            axes, across, turn, turn_across = np.eye(3), np.zeros((3, 0)), np.zeros((3, 3)), np.zeros((3, 0))
        rate = rng.normal(size=axes.shape[1])
        W[minus] = W[plus] + axes @ rate
        for values, value in zip((P, P_dot, Q, Q_dot, rates), (axes, turn, across, turn_across, rate), strict=True):
            values.append(value)
    cuts = 0
    if kind == "closed":
        cuts = max(1, n // 3)
        for _ in range(cuts):
            a, b = sorted(rng.choice(n, size=2, replace=False).tolist())
            arcs.append((a, b))
    bodies = mufti.Bodies(
        m=rng.uniform(0.5, 3.0, n),
        I=np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second,
        W=W,
        F=rng.normal(size=(n, 3)),
        G=0.1 * rng.normal(size=(n, 3)),
        arcs=arcs,
        arms=0.5 * rng.normal(size=(len(arcs), 2, 3)),
        cuts=cuts,
        **({"P": P, "P_dot": P_dot, "Q": Q, "Q_dot": Q_dot} if kind == "pins" else {}),
    )
    return bodies, np.concatenate(rates)


def refined(b):
    """Accelerations of the whole system of equations, residuals in extended precision."""
    J, H = np.asarray(block_diag(b.M, b.Ib)), b.H
    u, g = np.concatenate([b.u1, b.u2]), b.gamma
    k = H.shape[1]
    A = np.block([[J, -H], [-H.T, np.zeros((k, k))]])
    right = np.concatenate([u, -g]).astype(np.longdouble)
    wide, inverse = A.astype(np.longdouble), np.linalg.inv(A)
    x = np.zeros(len(right), np.longdouble)
    for _ in range(6):
        x = x + inverse @ (right - wide @ x).astype(float)
    return x[: 6 * b.n].astype(float)


CASES = [
    ("(10)", "ball joints", "dense", lambda b, _: mufti.kkt(b)),
    ("(10)", "ball joints", "sparse", lambda b, _: mufti.kkt(b, sparse=True)),
    ("(14)", "ball joints", "dense", lambda b, _: mufti.hinge_forces(b)),
    ("(14)", "ball joints", "sparse", lambda b, _: mufti.hinge_forces(b, sparse=True)),
    ("(15)", "ball joints", "dense", lambda b, _: mufti.turning_and_forces(b)),
    ("(15)", "ball joints", "sparse", lambda b, _: mufti.turning_and_forces(b, sparse=True)),
    ("(38)", "ball joints", "dense", lambda b, _: mufti.turning_by_blocks(b)),
    ("(51)", "pins", "dense", lambda b, _: mufti.turning_and_torques(b)),
    ("(61)", "pins", "dense", lambda b, rates: mufti.joint_rates(b, rates)[0]),
    ("(63)", "closed", "dense", lambda b, _: mufti.kkt(b)),
    ("(63)", "closed", "sparse", lambda b, _: mufti.kkt(b, sparse=True)),
    ("(73)", "closed", "dense", lambda b, _: mufti.closed_by_cuts(b)),
]


def best_time(run, b, rates, least=0.6):
    times, start = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < least:
        fresh = replace(b)  # nothing is remembered from the last run
        t = time.perf_counter()
        run(fresh, rates)
        times.append(time.perf_counter() - t)
    return min(times)


def measure(sizes=SIZES):
    """Rows (equation, kind, form, n, order, seconds, error)."""
    rows = []
    for n in sizes:
        given = {kind: mechanism(n, kind) for kind in ("ball joints", "pins", "closed")}
        exact = {kind: refined(b) for kind, (b, _) in given.items()}
        for equation, kind, form, run in CASES:
            b, rates = given[kind]
            found = run(replace(b), rates)
            x = np.concatenate([found.rdd.ravel(), found.wd.ravel()])
            error = np.abs(x - exact[kind]).max() / np.abs(exact[kind]).max()
            rows.append((equation, kind, form, n, found.size, best_time(run, b, rates), error))
    return rows


def table(rows):
    """Markdown: a line per method, time in ms / order / error for each number of bodies."""
    sizes = sorted({r[3] for r in rows})
    lines = ["| equation | mechanism | matrices | " + " | ".join(f"n = {n}" for n in sizes) + " |"]
    lines.append("|---|---|---|" + "---|" * len(sizes))
    for equation, kind, form, _ in CASES:
        cells = {r[3]: f"{1e3 * r[5]:.2f} ms, {r[4]}, {r[6]:.0e}" for r in rows if r[:3] == (equation, kind, form)}
        lines.append(f"| {equation} | {kind} | {form} | " + " | ".join(cells[n] for n in sizes) + " |")
    return "\n".join(lines)


def plot(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for k, (equation, kind, form, _) in enumerate(CASES):
        mine = [r for r in rows if r[:3] == (equation, kind, form)]
        n = [r[3] for r in mine]
        style = {"color": f"C{k % 10}", "ls": "--" if form == "sparse" else "-", "marker": "o", "ms": 3}
        axes[0].loglog(n, [1e3 * r[5] for r in mine], label=f"{equation} {form}, {kind}", **style)
        axes[1].loglog(n, [max(r[6], 1e-17) for r in mine], **style)
    for axis, label in zip(axes, ("time of one evaluation in ms", "relative error of the accelerations"), strict=True):
        axis.set(xlabel="bodies", ylabel=label)
        axis.grid(True, which="major", alpha=0.3)
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    fig.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="renew the table and the plot in docs/theory")
    rows = measure()
    text = table(rows)
    note = f"Time, order of the largest system, relative error. {platform.machine()}, NumPy {np.__version__}."
    print(text, note, sep="\n\n")
    if parser.parse_args().write:
        page = PAGE.read_text()
        head, tail = page.split(BEGIN)[0], page.split(END)[1]
        PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{note}\n\n{END}{tail}")
        plot(rows, PAGE.with_suffix(".png"))


if __name__ == "__main__":
    main()
