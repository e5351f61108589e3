"""Runs of all mechanisms of the library by all formulations, to be compared before and after a change of the sources.

python benchmarks/same_runs.py record before.npz      with the sources before
python benchmarks/same_runs.py check before.npz       with those after: steps must be the same, numbers to rounding
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np

import loopdyn as ld

METHODS = ("auto", "graph", "partition", "absolute", "closure", "rcr", "relative", "momentum")
UNTIL = 0.1  # s
ROUNDING = 1e-9  # of one plus the number: 100 steps, each with rounding amplified by a few orders of magnitude


def runs() -> dict[str, np.ndarray]:
    """Counts of steps, rejections and evaluations, and the last state of each run; nothing for refused ones."""
    found = {}
    for name, build in ld.library.ALL.items():
        system = build().compile()
        start = ld.assemble(system)
        for method in METHODS:
            try:
                run = ld.simulate(system, start, (0, UNTIL), formulation=method, progress=False)
            except ld.LoopdynError as error:
                print(f"{name} by {method} is refused: {error}")
                continue
            s = run.statistics
            found[f"{name} {method}"] = np.concatenate(
                [[s.steps, s.rejected, s.evaluations], run.path.q[-1], run.path.v[-1]]
            )
    return found


def differences(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> list[str]:
    """Differences in words."""
    found = [f"{key}: run by one and refused by the other" for key in before.keys() ^ after.keys()]
    for key in before.keys() & after.keys():
        a, b = before[key], after[key]
        off = float(np.abs((a - b) / (1.0 + np.abs(a)))[3:].max())
        if not np.array_equal(a[:3], b[:3]) or not off < ROUNDING:
            found.append(f"{key}: steps, rejected, evaluations {a[:3]} -> {b[:3]}, numbers differ by {off:.1e}")
    return sorted(found)


def main() -> None:
    """Record runs, or compare them with those recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "check"])
    parser.add_argument("file")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ld.LoopdynWarning)
    made = runs()
    if given.what == "record":
        np.savez(given.file, **made)
        print(f"{len(made)} runs recorded")
        return
    found = differences(dict(np.load(given.file)), made)
    print(*found, f"{len(made)} runs, {len(found)} differ", sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
