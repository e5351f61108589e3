"""Time to compile kernels from an empty cache, use by use and kernel by kernel.

    python benchmarks/compile.py                        # the uses of `loopdyn warm --all`, one process
    python benchmarks/compile.py accelerations runs     # some of them
    python benchmarks/compile.py --save before.json
    python benchmarks/compile.py --against before.json  # compared with earlier figures
    python benchmarks/compile.py --import               # `import loopdyn` and `import numpy, scipy.linalg`
    python benchmarks/compile.py --whole                # wall time of `loopdyn warm` and `loopdyn warm --all`

CPU seconds are those of one process and do not depend on other processes; `--whole` gives wall time, which is
meaningful only on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from numba.core import event
from numba.core.codegen import JITCPUCodegen


class Counter(event.Listener):
    """CPU seconds of each compiled function, without those of the functions compiled meanwhile."""

    def __init__(self):
        self.open, self.functions = [], {}

    def on_start(self, event):
        self.open.append([time.process_time(), 0.0])

    def on_end(self, event):
        begin, inside = self.open.pop()
        taken = time.process_time() - begin
        if self.open:
            self.open[-1][1] += taken
        function = event.data["dispatcher"].py_func
        known = self.functions.setdefault(f"{function.__module__}.{function.__name__}", [0, 0.0])
        known[0] += 1
        known[1] += taken - inside


def count_libraries():
    """Number of modules for which machine code is made, counted from now on."""
    made, add = [0], JITCPUCodegen._add_module

    def counted(self, module):
        made[0] += 1
        return add(self, module)

    JITCPUCodegen._add_module = counted
    return made


def measure(names):
    from loopdyn.app import warm
    from loopdyn.engine.compile_notice import NOTICE

    NOTICE.said = True
    counter, libraries = Counter(), count_libraries()
    event.register("numba:compile", counter)
    uses, rows = warm.uses(), {}
    for name in names or uses:
        cpu, functions, made = time.process_time(), sum(n for n, _ in counter.functions.values()), libraries[0]
        uses[name]()
        after = sum(n for n, _ in counter.functions.values())
        rows[name] = (time.process_time() - cpu, after - functions, libraries[0] - made)
        print(
            f"{name:20s} {rows[name][0]:7.1f} s of CPU {rows[name][1]:5d} functions {rows[name][2]:5d} libraries",
            flush=True,
        )
    return {"uses": rows, "functions": counter.functions}


def report(found, before):
    total = [sum(column) for column in zip(*found["uses"].values(), strict=True)]
    print(f"{'all':20s} {total[0]:7.1f} s of CPU {total[1]:5d} functions {total[2]:5d} libraries")
    if before:
        known = [sum(column) for column in zip(*before["uses"].values(), strict=True)]
        print(f"{'before':20s} {known[0]:7.1f} s of CPU {known[1]:5d} functions {known[2]:5d} libraries")
        print(f"{'ratio':20s} {total[0] / known[0]:7.2f}")
    print(f"\ndistinct functions: {len(found['functions'])}; the longest:")
    for name, (times, seconds) in sorted(found["functions"].items(), key=lambda one: -one[1][1])[:25]:
        was = f"  before {before['functions'][name][1]:6.1f}" if before and name in before["functions"] else ""
        print(f"{seconds:7.1f} s {times:3d} x {name}{was}")


def whole():
    for arguments in ([], ["--all"]):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"LOOPDYN_CACHE_DIR": folder}
            begin = time.perf_counter()
            command = [sys.executable, "-m", "loopdyn", "warm", *arguments]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            print(
                f"loopdyn warm {' '.join(arguments):5s} {time.perf_counter() - begin:6.1f} s on {os.cpu_count()} cores"
            )


def imports():
    """Best of five of each, taken in turn."""
    best = {"import numpy, scipy.linalg": 1e9, "import loopdyn": 1e9}
    for _ in range(5):
        for statement in best:
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best[statement] = min(best[statement], time.perf_counter() - begin)
    first, second = best.values()
    print(f"import loopdyn takes {second:.2f} s, {second / first:.1f} x import numpy, scipy.linalg ({first:.2f} s)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("uses", nargs="*")
    parser.add_argument("--save")
    parser.add_argument("--against")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--import", dest="imports", action="store_true")
    chosen = parser.parse_args()
    if chosen.whole:
        return whole()
    if chosen.imports:
        return imports()
    before = json.loads(Path(chosen.against).read_text()) if chosen.against else None
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOOPDYN_CACHE_DIR"] = folder
        found = measure(chosen.uses)
    report(found, before)
    if chosen.save:
        with open(chosen.save, "w") as file:
            json.dump(found, file)
    return None


if __name__ == "__main__":
    main()
