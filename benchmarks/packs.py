"""Kernels of the installed pack beside kernels compiled for this processor: values of evaluations, and speed.

    python benchmarks/packs.py            # in an environment with loopdyn and loopdyn-kernels, on a quiet machine
    python benchmarks/packs.py --values   # the largest difference alone

Both are taken in turn, in processes of their own; the best of several times counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from kernels import built, measured

MECHANISMS = ("four_bar", "slider_crank", "bricard", "stewart_6ups", "ladder")
FORMULATIONS = ("graph", "rcr", "partition", "closure", "relative")
ROUNDS = 4


def evaluated():
    """Accelerations by all formulations, reactions and energies of a moving state of each mechanism."""
    import loopdyn as ld
    from loopdyn.engine import packs

    found = {}
    for name in MECHANISMS:
        system, state = built(name)
        label = next(iter(system.speeds))
        state = ld.assemble(system, near=state, v={label: 1.5})
        for formulation in FORMULATIONS:
            a = ld.accelerations(system, state, formulation)
            found[f"{name} {formulation}"] = np.asarray(a).tolist()
        found[f"{name} reactions"] = ld.reactions(system, state, a).wrench.ravel().tolist()
    return {"pack": packs.found().pack is not None, "values": found}


def in_process(what, without=None):
    """Result of a process of its own; `without` is a folder in which an empty pack hides the installed one."""
    environment = dict(os.environ)
    if without is not None:
        environment["PYTHONPATH"] = os.pathsep.join([without, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-W", "ignore", __file__, "--process", what]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--process", choices=("values", "times"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.process:
        print(json.dumps(evaluated() if chosen.process == "values" else measured()))
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "loopdyn_kernels").mkdir()
        (Path(folder) / "loopdyn_kernels" / "__init__.py").touch()
        ours, here = in_process("values"), in_process("values", folder)
        if not ours["pack"] or here["pack"]:
            raise SystemExit("loopdyn-kernels is not installed, or not used: see `loopdyn doctor`.")
        worst = 0.0
        for name, values in ours["values"].items():
            x, y = np.array(values), np.array(here["values"][name])
            worst = max(worst, np.abs(x - y).max() / np.abs(y).max())
        print(f"largest difference of {len(ours['values'])} evaluations, relative: {worst:.1e}")
        if not chosen.values:
            rounds = [(in_process("times"), in_process("times", folder)) for _ in range(ROUNDS)]
            for name in rounds[0][0]:
                pack, host = (min(each[k][name] for each in rounds) for k in range(2))
                print(f"{name:40s} pack {pack:9.2f}  compiled here {host:9.2f}  ratio {pack / host:5.2f}")


if __name__ == "__main__":
    main()
