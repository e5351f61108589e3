"""Shared by the benchmarks: figures with goals, the shortest time of alternating calls, tables."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numba
import numpy as np

import loopdyn as ld


@dataclass
class Figure:
    """A measured value, and its goal."""

    name: str
    value: float
    unit: str
    goal: float | None = None  # at most
    error: float | None = None  # relative, of the accelerations

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.value <= self.goal


# ------------------------------------------------------------------------------------------------------ measuring


def shortest(calls: dict[str, Callable[[int], object]], repeats: int, seconds: float) -> dict[str, float]:
    """Shortest time per evaluation of each, in turns; call(k) does k evaluations, about `seconds` at a time.

    Slices are short, so that some of them are undisturbed on a machine that does other work.
    """
    times, best = {}, {}
    for name, call in calls.items():
        call(1)
        start = time.perf_counter()
        call(1)
        best[name] = time.perf_counter() - start
        times[name] = max(1, int(seconds / best[name]))
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call(times[name])
            best[name] = min(best[name], (time.perf_counter() - start) / times[name])
    return best


def repeated(call: Callable[[], object]) -> Callable[[int], None]:
    def calls(times: int) -> None:
        for _ in range(times):
            call()

    return calls


def in_new_process(code: str, **settings: str) -> tuple[float, str]:
    """Wall time and output of a new interpreter that runs `code`; `settings` of its environment."""
    paths = [str(Path(ld.__file__).parents[1]), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)} | settings
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    elapsed = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"a process failed:\n{done.stderr}")
    return elapsed, done.stdout


def shuffled(m: ld.Mechanism) -> ld.Mechanism:
    """The same mechanism with bodies and joints in another order."""
    rng = np.random.default_rng(0)
    other = m.model_copy(deep=True)
    for section in ("bodies", "joints"):
        items = list(getattr(other, section).items())
        setattr(other, section, {items[k][0]: items[k][1] for k in rng.permutation(len(items))})
    return other


# -------------------------------------------------------------------------------------------------------- showing


def settings(packages: Sequence[str]) -> dict[str, str]:
    """Versions of `packages`, by their names on PyPI, and the machine."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    return {
        "loopdyn": ld.__version__,
        **{{"pin": "pinocchio"}.get(name, name): version(name) for name in packages},
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": f"{cpu}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "numba threads": str(numba.get_num_threads()) + " (kernels use one)",
    }


def columns(f: Figure) -> tuple[str, ...]:
    goal = "" if f.goal is None else f"<= {f.goal:g}"
    met = {None: "", True: "yes", False: "NO"}[f.met]
    return f.name, f"{f.value:.3g} {f.unit}".strip(), goal, met, "" if f.error is None else f"{f.error:.1e}"


HEADER = ("figure", "measured", "goal", "met", "error")


def show(figures: list[Figure], facts: dict[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*HEADER, caption="\n".join(f"{k}: {v}" for k, v in facts.items()), caption_justify="left")
    for f in figures:
        table.add_row(*columns(f), style=None if f.met is not False else "bold red")
    Console(width=None if sys.stdout.isatty() else 130).print(table)


def markdown(figures: list[Figure], facts: dict[str, str]) -> str:
    rows = [HEADER, tuple("---" for _ in HEADER), *(columns(f) for f in figures)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return table + "\n\n" + "\n".join(f"- {k}: {v}" for k, v in facts.items()) + "\n"


def command_line(about: str, given: list[str] | None, plot: bool = False) -> argparse.Namespace:
    """Options that all benchmarks with figures have, and one for those with a plot."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats: to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a table there")
    if plot:
        parser.add_argument("--plot", type=Path, metavar="FILE", help="write a picture there")
    return parser.parse_args(given)


def save(figures: list[Figure], facts: dict[str, str], given: argparse.Namespace, **more: object) -> None:
    """Write the requested files; `more` goes into the JSON file."""
    if given.json:
        content = {"settings": facts, "figures": [asdict(f) for f in figures], **more}
        given.json.write_text(json.dumps(content, indent=1) + "\n")
    if given.markdown:
        given.markdown.write_text(markdown(figures, facts))
