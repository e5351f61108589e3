"""Build the wheel of `loopdyn-kernels`: all kernels, compiled for the processor levels of this kind of machine.

    python tools/kernels.py [--cache FOLDER] [--wheels FOLDER]

The same script serves every platform: `LEVELS` of `loopdyn.engine.packs` has its levels. Kernels are run where they are
compiled, so a level that this processor lacks is left out, which is said: a wheel for release is built on one that has
all. It takes some minutes of all cores for each. `kernels/` has the rest of the package.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from loopdyn.engine import packs

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "kernels" / "loopdyn_kernels"
SAME_MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}  # names that other systems have for it
# Kernels call functions of the C library by names without versions: they run wherever Numba's own wheels do.
WHEEL_PLATFORMS = {
    "Linux": "manylinux_2_17_{machine}",
    "Darwin": "macosx_11_0_{machine}",
    "Windows": "win_{machine}",
}


def main() -> None:
    """Compile, collect, build."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "kernels", help="where kernels are compiled")
    parser.add_argument("--wheels", type=Path, default=ROOT / "dist", help="where the wheel is written")
    parser.add_argument("--collect", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.collect:
        return collect()

    shutil.rmtree(PACKAGE, ignore_errors=True)
    PACKAGE.mkdir(parents=True)
    (PACKAGE / "__init__.py").write_text('"""Compiled kernels of loopdyn: it finds them by itself."""\n')
    made = {level: compiled(level, given.cache.resolve() / level.cpu) for level in levels()}
    write_manifest(made)
    options = ("-qq", "--disable-pip-version-check", "--no-deps", "--wheel-dir", str(given.wheels))
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT / "kernels")], check=True)


def levels() -> list[packs.Level]:
    """Levels of this kind of machine that its processor has."""
    machine = platform.machine()
    found = []
    for level in packs.LEVELS[SAME_MACHINE.get(machine, machine)]:
        if lacking := packs.lacking(level.needs):
            print(f"{level.cpu} is left out: this processor lacks {', '.join(lacking)}")
        else:
            found.append(level)
    return found


def compiled(level: packs.Level, cache: Path) -> tuple[str, str, str]:
    """Compile everything for a level and collect it; target of the code generator."""
    portable = {"NUMBA_CPU_NAME": level.cpu, "NUMBA_CPU_FEATURES": "", "LOOPDYN_CACHE_DIR": str(cache)}

    def run(*command: str, **options: Any) -> Any:
        return subprocess.run([sys.executable, *command], env=os.environ | portable, check=True, **options).stdout

    run("-m", "loopdyn", "warm", "--all")
    run(str(ROOT / "tools" / "first_steps.py"))
    said, target = run(__file__, "--collect", stdout=subprocess.PIPE, text=True).splitlines()
    print(said, flush=True)
    platform_, processor, features = json.loads(target)
    return platform_, processor, features


def collect() -> None:
    """Copy the entries of the cache into the package; print how many, and the target of the code generator."""
    from numba.core.registry import cpu_target

    from loopdyn.engine import cache

    target = cpu_target.target_context.codegen().magic_tuple()
    entries = cache.entries()
    for path in entries:
        folder = PACKAGE / target[1] / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / path.name)
    size = sum(path.stat().st_size for path in entries)
    print(f"{len(entries)} kernels and helpers, {size / 1e6:.1f} MB, for {target[1]}")
    print(json.dumps(target))


def write_manifest(made: dict[packs.Level, tuple[str, str, str]]) -> None:
    """Write the facts that decide where the package can be used."""
    from loopdyn.engine.compiler import ENGINE

    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    facts = packs.manifest(version, ENGINE, made)
    facts["wheel"] = WHEEL_PLATFORMS[platform.system()].format(machine=platform.machine().lower())
    (PACKAGE / packs.MANIFEST).write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
