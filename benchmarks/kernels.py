"""Speed of the kernels, also compared with another checkout: evaluations of `graph`, runs of several formulations.

    python benchmarks/kernels.py                    # microseconds per evaluation, seconds per run
    python benchmarks/kernels.py --beside ../other  # the same with the sources of another checkout, taken in turn

The best of several times counts; on a machine that does other work, figures differ by a third and more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

EVALUATED = {"four_bar": 20000, "bricard": 20000, "ladder": 4000}  # how often in one measurement
RUNS = {  # mechanism, formulation, seconds of motion
    "four_bar by auto": ("four_bar", "auto", 20.0),
    "ladder by auto": ("ladder", "auto", 0.5),
    "andrews by graph": ("andrews", "graph", 0.03),
    "four_bar by rcr": ("four_bar", "rcr", 20.0),
    "four_bar by partition": ("four_bar", "partition", 20.0),
}
TIMES = 5


def best(function, times=TIMES):
    found = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        function()
        found = min(found, time.perf_counter() - begin)
    return found


def built(name):
    import loopdyn as ld

    made = ld.library.ladder(40) if name == "ladder" else getattr(ld.library, name)()
    system = made.compile()
    return system, ld.assemble(system, q=dict(system.start[0]) or None)


def measured():
    import loopdyn as ld

    found = {}
    for name, count in EVALUATED.items():
        system, state = built(name)
        compiled = ld.prepare(system, "graph", state).kernels
        kernel, arrays = compiled.accelerate, (compiled.ints, compiled.floats, compiled.work)

        def evaluate(kernel=kernel, arrays=arrays, count=count):
            for _ in range(count):
                kernel(*arrays)

        evaluate()
        found[f"{name}, one evaluation [us]"] = 1e6 * best(evaluate) / count
    for name, (mechanism, formulation, end) in RUNS.items():
        system, state = built(mechanism)

        def run(system=system, state=state, formulation=formulation, end=end):
            ld.simulate(system, state, (0.0, end), t_eval=[end], formulation=formulation, rtol=1e-8, progress=False)

        run()
        found[f"{name}, {end:g} s [ms]"] = 1e3 * best(run)
    return found


def of_checkout(folder):
    """Measure with the sources of another folder, by its own script: names of what is called may differ."""
    folder = Path(folder).resolve()
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    command = [sys.executable, "-W", "ignore", str(folder / "benchmarks" / "kernels.py"), "--json"]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.json:
        print(json.dumps(measured()))
    elif not chosen.beside:
        for name, value in measured().items():
            print(f"{name:40s} {value:9.2f}")
    else:
        own = Path(__file__).parents[1]
        rounds = [(of_checkout(chosen.beside), of_checkout(own)) for _ in range(3)]
        for name in rounds[0][0]:
            other, here = (min(each[k][name] for each in rounds) for k in range(2))
            print(f"{name:40s} there {other:9.2f}  here {here:9.2f}  ratio {here / other:5.2f}")


if __name__ == "__main__":
    main()
