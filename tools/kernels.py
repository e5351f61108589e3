"""Build the wheel of `loopdyn-kernels`: all kernels, compiled for a processor level that most machines have.

    python tools/kernels.py [--cache FOLDER] [--wheels FOLDER]

The same script serves every platform: the level is that of this machine's kind (`LEVELS` of `loopdyn.engine.packs`).
It takes some minutes of all cores. `kernels/` has the rest of the package.
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

    from loopdyn.engine.packs import LEVELS

    machine = platform.machine()
    level = LEVELS[SAME_MACHINE.get(machine, machine)]
    portable = {"NUMBA_CPU_NAME": level.cpu, "NUMBA_CPU_FEATURES": "", "LOOPDYN_CACHE_DIR": str(given.cache.resolve())}

    def run(*command: str) -> None:
        subprocess.run([sys.executable, *command], env=os.environ | portable, check=True)

    run("-m", "loopdyn", "warm", "--all")
    run(str(ROOT / "tools" / "first_steps.py"))
    run(__file__, "--collect")
    options = ("-qq", "--disable-pip-version-check", "--no-deps", "--wheel-dir", str(given.wheels))
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT / "kernels")], check=True)


def collect() -> None:
    """Copy the entries of the cache into the package, and write its manifest."""
    from numba.core.registry import cpu_target

    from loopdyn.engine import cache, packs
    from loopdyn.engine.compiler import ENGINE

    shutil.rmtree(PACKAGE, ignore_errors=True)
    PACKAGE.mkdir(parents=True)
    (PACKAGE / "__init__.py").write_text('"""Compiled kernels of loopdyn: it finds them by itself."""\n')
    target = cpu_target.target_context.codegen().magic_tuple()
    level = next(one for one in packs.LEVELS.values() if one.cpu == target[1])
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    facts = packs.manifest(version, ENGINE, target, level)
    machine = platform.machine()
    facts["wheel"] = WHEEL_PLATFORMS[platform.system()].format(machine=machine.lower())
    (PACKAGE / packs.MANIFEST).write_text(json.dumps(facts, indent=1) + "\n")
    entries = cache.entries()
    for path in entries:
        folder = PACKAGE / path.parent.name
        folder.mkdir(exist_ok=True)
        shutil.copyfile(path, folder / path.name)
    size = sum(path.stat().st_size for path in entries)
    print(f"{len(entries)} kernels and helpers, {size / 1e6:.1f} MB, for {level.cpu}")


if __name__ == "__main__":
    main()
